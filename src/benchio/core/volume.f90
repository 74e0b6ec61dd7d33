!> Amounts of data as products of 64-bit numbers, checked for overflow.
module benchio_volume
   use, intrinsic :: iso_fortran_env, only: int64
   use benchio_errors, only: error_t, fail, status_usage
   use benchio_text, only: to_text
   implicit none(type, external)
   private

   public :: multiply

contains

   !> The product of positive numbers; a usage error on overflow.
   pure subroutine multiply(numbers, res, error)
      integer(int64), intent(in) :: numbers(:)
      integer(int64), intent(out) :: res
      type(error_t), allocatable, intent(out) :: error
      character(len=:), allocatable :: list
      integer :: at
      logical :: fits

      res = 1_int64
      fits = .true.
      list = ""
      do at = 1, size(numbers)
         if (at > 1) list = list//" x "
         list = list//to_text(numbers(at))
         fits = fits .and. numbers(at) <= huge(res)/res
         if (fits) res = res*numbers(at)
      end do
      if (.not. fits) call fail(error, list//" bytes cannot be counted in 64 bits", status_usage)
   end subroutine multiply

end module benchio_volume
