program test_text
   use, intrinsic :: iso_fortran_env, only: int64, real64
   use benchio_testing, only: expect, finish
   use benchio_text, only: append, decimal, has_word, joined, nearest_word, read_integer, &
                           string_t, to_text
   implicit none(type, external)

   call numbers_become_text()
   call decimals_have_no_exponent()
   call text_becomes_numbers()
   call lists_of_words()
   call the_nearest_word()
   call finish()

contains

   subroutine numbers_become_text()
      call expect("zero", to_text(0), "0")
      call expect("the least", to_text(-huge(1_int64) - 1), "-9223372036854775808")
      call expect("the largest", to_text(huge(1_int64)), "9223372036854775807")
   end subroutine numbers_become_text

   subroutine decimals_have_no_exponent()
      call expect("nothing", decimal(0.0_real64), "0.000000")
      call expect("a microsecond", decimal(4.7e-7_real64), "0.000000470000")
      call expect("a rate", decimal(0.047_real64), "0.0470000")
      call expect("nearly one", decimal(0.99999999_real64), "1.000000")
      call expect("one", decimal(1.0_real64), "1.00000")
      call expect("nine and a half", decimal(9.5_real64), "9.50000")
      call expect("a fast one", decimal(123456.789_real64), "123456.789")
      call expect("a very fast one", decimal(1e12_real64), "1000000000000.000")
      call expect("tiny", index(decimal(1e-30_real64), "0."//repeat("0", 29)//"1"), 1)
      call expect("huge: digits before the point", index(decimal(1e300_real64), "."), 302)
   end subroutine decimals_have_no_exponent

   subroutine text_becomes_numbers()
      call expect("0", number_in("0"), 0_int64)
      call expect("leading zeros", number_in("007"), 7_int64)
      call expect("2**63 - 1", number_in("9223372036854775807"), huge(1_int64))
      call expect("2**63", number_in("9223372036854775808"), -1_int64)
      call expect("nothing", number_in(""), -1_int64)
      call expect("a sign", number_in("-1"), -1_int64)
      call expect("a blank", number_in("4 "), -1_int64)
      call expect("a list", number_in("1,2"), -1_int64)
      call expect("a repetition", number_in("3*4"), -1_int64)
      call expect("a point", number_in("4.0"), -1_int64)
   end subroutine text_becomes_numbers

   subroutine lists_of_words()
      type(string_t), allocatable :: words(:)

      allocate (words(0))
      call expect("none", joined(words), "")
      call append(words, "serial")
      call append(words, "proc ")
      call expect("two", joined(words), "serial proc ")
      call expect("is there", has_word(words, "serial"))
      call expect("but not with a blank", (.not. has_word(words, "serial ")))
      call expect("nor without", (.not. has_word(words, "proc")))
   end subroutine lists_of_words

   subroutine the_nearest_word()
      type(string_t) :: words(4)

      words = [string_t("serial"), string_t("proc"), string_t("mpiio"), string_t("ab")]
      call expect("two swapped", nearest_word("serail", words), "serial")
      call expect("one too many", nearest_word("mpiioo", words), "mpiio")
      call expect("none is like it", nearest_word("xyzzy", words), "")
      call expect("other letters, all of them", nearest_word("xy", words), "")
   end subroutine the_nearest_word

   !> The number that a word denotes; -1 if it is refused.
   function number_in(word) result(res)
      character(len=*), intent(in) :: word
      integer(int64) :: res
      logical :: ok

      call read_integer(word, res, ok)
      if (.not. ok) res = -1_int64
   end function number_in

end program test_text
