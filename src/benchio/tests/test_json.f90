program test_json
   use, intrinsic :: iso_fortran_env, only: int64, real64
   use benchio_json, only: json_object_t, quoted
   use benchio_testing, only: expect, finish
   implicit none(type, external)
   type(json_object_t) :: empty, inner, object

   call expect("no members", empty%complete(), "{}")
   call inner%add_logical("is", .true.)
   call inner%add_logical("is not", .false.)
   call object%add_text("layer", "mpiio")
   call object%add_integer("bytes", huge(1_int64))
   call object%add_null("sync")
   call object%add_object("settings", inner)
   call object%add_object("hints", empty)
   call expect("in the order of their addition", object%complete(), &
               '{"layer": "mpiio", "bytes": 9223372036854775807, "sync": null, ' &
               //'"settings": {"is": true, "is not": false}, "hints": {}}')
   call expect("quotes and backslashes", quoted('a "b" \c'), '"a \"b\" \\c"')
   call expect("control characters", quoted(achar(9)//achar(10)//achar(127)), &
               '"\u0009\u000A\u007F"')
   call expect("UTF-8", quoted("é"), '"é"')
   call expect("UTF-8 of four bytes", quoted(char(240)//char(159)//char(152)//char(128)), &
               '"'//char(240)//char(159)//char(152)//char(128)//'"')
   call expect("a byte that is no UTF-8", quoted("a"//char(255)//"é"), '"a\uFFFDé"')
   call expect("a character cut short", quoted("a"//char(195)), '"a\uFFFD"')
   call expect("a surrogate", quoted(char(237)//char(160)//char(128)), '"\uFFFD\uFFFD\uFFFD"')
   call expect("a real number is read back exactly", is_exact(0.1_real64))
   call expect("however small", is_exact(tiny(1.0_real64)))
   call finish()

contains

   function is_exact(number) result(res)
      real(real64), intent(in) :: number
      logical :: res
      type(json_object_t) :: one
      character(len=:), allocatable :: text
      real(real64) :: read_back

      call one%add_real("x", number)
      text = one%complete()
      read (text(index(text, ":") + 1:len(text) - 1), *) read_back
      res = abs(read_back - number) <= 0.0_real64
   end function is_exact

end program test_json
