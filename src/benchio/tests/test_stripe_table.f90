program test_stripe_table
   use, intrinsic :: iso_fortran_env, only: int64
   use benchio_errors, only: error_t
   use benchio_stripe_table, only: assume_table, divide_data, parse_table, striped_file_t
   use benchio_testing, only: expect, expect_refused, finish
   implicit none(type, external)
   character(len=*), parameter :: newline = new_line("a"), tab = achar(9)
   type(striped_file_t), allocatable, save :: files(:)
   type(error_t), allocatable, save :: error

   call parse_table("t", "# path stripe_size target"//newline//newline//"a 64 3 1"//newline &
                    //"  b"//tab//"128"//tab//" 2"//achar(13)//newline//" # c 1 1"//newline &
                    //"d 1048576 2147483647", files, error)
   call expect("three files", size(files), 3)
   call expect("paths", files(1)%path//files(2)%path//files(3)%path, "abd")
   call expect("stripe sizes", files%stripe_bytes, [64_int64, 128_int64, 1048576_int64])
   call expect("targets in their order", int(files(1)%targets, int64), [3_int64, 1_int64])
   call expect("a carriage return is a blank", int(files(2)%targets, int64), [2_int64])
   call expect("the largest target", files(3)%targets(1), huge(1))

   ! 50 elements: 17, 17 and 16.
   call divide_data(50_int64, files, error)
   call expect("bytes", files%bytes, [136_int64, 136_int64, 128_int64])
   call expect("where they begin", files%start, [0_int64, 136_int64, 272_int64])
   call expect("stripes before", files%stripes_before, [0_int64, 3_int64, 5_int64])
   call divide_data(2_int64, files, error)
   call expect_refused("2 elements in 3 files", error)

   call assume_table("d", "aligned", 3, 64_int64, 2, files)
   call expect("the last of three", files(3)%path, "d/aligned000002.dat")
   call expect("begins on the target after", int(files(2)%targets, int64), [1_int64, 0_int64])
   call expect("and around", int(files(3)%targets, int64), [0_int64, 1_int64])
   call assume_table("d", "aligned", 1, 64_int64, 1, files)
   call expect("one alone has no number", files(1)%path, "d/aligned.dat")

   call refused("no file", "# nothing"//newline//newline//"  "//tab//newline)
   call refused("no target", "a 64"//newline)
   call refused("no stripe size", "a 64 0"//newline//newline//"b"//newline)
   call refused("stripes of 0 bytes", "a 0 0")
   call refused("a unit", "a 1M 0")
   call refused("a negative target", "a 64 -1")
   call refused("a target that is no number", "a 64 0 x")
   call refused("a target beyond 31 bits", "a 64 99999999999")
   call refused("a path that is there already", "a 64 0"//newline//"b 64 0"//newline//" a 32 1")
   call finish()

contains

   subroutine refused(what, text)
      character(len=*), intent(in) :: what, text

      call parse_table("layout.txt", text, files, error)
      call expect_refused(what, error)
   end subroutine refused

end program test_stripe_table
