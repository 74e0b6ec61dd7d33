!> Shared by the tests of the modules. A test program states what it expects, and ends with
!> `finish`, with exit status 1 if an expectation was not met; standard error lists these. It
!> prints the texts of the errors that it provokes.
module benchio_testing
   use, intrinsic :: iso_fortran_env, only: error_unit, int64, output_unit, real64
   use benchio_errors, only: error_t, status_usage
   use benchio_text, only: to_text
   implicit none(type, external)
   private

   public :: expect, expect_refused, finish

   !> Expects that a condition holds, or that a result equals an expected one.
   interface expect
      module procedure expect_that
      module procedure expect_text
      module procedure expect_integer
      module procedure expect_integer64
      module procedure expect_integers64
      module procedure expect_real
   end interface expect

   integer :: met = 0, not_met = 0

contains

   subroutine expect_that(what, holds)
      character(len=*), intent(in) :: what
      logical, intent(in) :: holds

      if (holds) then
         met = met + 1
      else
         not_met = not_met + 1
         write (error_unit, "(a)") "not met: "//what
      end if
   end subroutine expect_that

   subroutine expect_text(what, found, expected)
      character(len=*), intent(in) :: what, found, expected

      call expect_that(what//": '"//found//"', not '"//expected//"'", &
                       found == expected .and. len(found) == len(expected))
   end subroutine expect_text

   subroutine expect_integer(what, found, expected)
      character(len=*), intent(in) :: what
      integer, intent(in) :: found, expected

      call expect_that(what//": "//to_text(found)//", not "//to_text(expected), found == expected)
   end subroutine expect_integer

   subroutine expect_integer64(what, found, expected)
      character(len=*), intent(in) :: what
      integer(int64), intent(in) :: found, expected

      call expect_that(what//": "//to_text(found)//", not "//to_text(expected), found == expected)
   end subroutine expect_integer64

   subroutine expect_integers64(what, found, expected)
      character(len=*), intent(in) :: what
      integer(int64), intent(in) :: found(:), expected(:)

      if (size(found) == size(expected)) then
         call expect_that(what//": "//listed(found)//", not "//listed(expected), &
                          all(found == expected))
      else
         call expect_that(what//": "//listed(found)//", not "//listed(expected), .false.)
      end if
   end subroutine expect_integers64

   !> `within` is the largest relative difference allowed.
   subroutine expect_real(what, found, expected, within)
      character(len=*), intent(in) :: what
      real(real64), intent(in) :: found, expected, within
      character(len=64) :: both

      write (both, "(es24.16, a, es24.16)") found, ", not", expected
      call expect_that(what//":"//trim(both), abs(found - expected) <= within*abs(expected))
   end subroutine expect_real

   !> Expects an error with exit status `status`, by default a usage error, and prints its text.
   subroutine expect_refused(what, error, status)
      character(len=*), intent(in) :: what
      type(error_t), allocatable, intent(in) :: error
      integer, intent(in), optional :: status
      integer :: expected

      call expect_that(what//": no error", allocated(error))
      if (.not. allocated(error)) return
      expected = status_usage
      if (present(status)) expected = status
      call expect_integer(what//": status", error%status, expected)
      write (output_unit, "(a)") what//": "//error%text
   end subroutine expect_refused

   subroutine finish()
      if (met + not_met == 0) error stop "nothing was expected"
      write (error_unit, "(a)") to_text(met)//" met, "//to_text(not_met)//" not"
      if (not_met > 0) error stop 1
   end subroutine finish

   pure function listed(numbers) result(res)
      integer(int64), intent(in) :: numbers(:)
      character(len=:), allocatable :: res
      integer :: at

      res = ""
      do at = 1, size(numbers)
         res = res//" "//to_text(numbers(at))
      end do
   end function listed

end module benchio_testing
