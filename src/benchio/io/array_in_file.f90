!> The name of the array in files of HDF5, netCDF and PnetCDF, and the check of an existing
!> file's array.
module benchio_array_in_file
   use, intrinsic :: iso_fortran_env, only: int64
   use benchio_errors, only: error_t, fail
   use benchio_text, only: to_text
   implicit none(type, external)
   private

   public :: check_shape

   !> The name of the array, and of its axes where they have names.
   character(len=*), parameter, public :: array_name = "data"
   character(len=*), parameter, public :: axis_names(3) = ["n1", "n2", "n3"]

contains

   !> An error unless the array found in a file has the lengths of this run's array. If not, the
   !> file was kept by a run with other sizes.
   subroutine check_shape(path, found, wanted, error)
      character(len=*), intent(in) :: path
      integer(int64), intent(in) :: found(:), wanted(:)
      type(error_t), allocatable, intent(out) :: error

      if (size(found) == size(wanted)) then
         if (all(found == wanted)) return
      end if
      call fail(error, path//" has an array of "//product_of(found)//" elements, not of " &
                //product_of(wanted))
   end subroutine check_shape

   pure function product_of(lengths) result(res)
      integer(int64), intent(in) :: lengths(:)
      character(len=:), allocatable :: res
      integer :: axis

      res = ""
      do axis = 1, size(lengths)
         if (axis > 1) res = res//" x "
         res = res//to_text(lengths(axis))
      end do
   end function product_of

end module benchio_array_in_file
