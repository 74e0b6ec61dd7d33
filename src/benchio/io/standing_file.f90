!> Files that were there before the run and are there after it, empty both times:
!> how they were made, say with which stripes, is not benchio's to repeat.
module standing_file
   use, intrinsic :: iso_c_binding, only: c_null_char
   use, intrinsic :: iso_fortran_env, only: int64
   use errors, only: error_t, fail
   use posix_api, only: c_truncate, shim_errno, shim_is_regular, shim_missing
   use posix_file, only: get_file_size, system_failure
   use text, only: to_text
   implicit none(type, external)
   private

   public :: check_vacant, empty_file

contains

   !> An error unless there is such a file and it is empty, so that no data but
   !> benchio's own is ever written over.
   subroutine check_vacant(path, error)
      character(len=*), intent(in) :: path
      type(error_t), allocatable, intent(out) :: error
      integer(int64) :: bytes

      select case (shim_is_regular(path//c_null_char))
      case (1)
         call get_file_size(path, bytes, error)
         if (allocated(error) .or. bytes == 0_int64) return
         call fail(error, path//" has "//to_text(bytes)//" bytes: a file of the table must be " &
                   //"empty before it is written to")
      case (0)
         call fail(error, path//" is no regular file")
      case default
         call system_failure("stat", path, shim_errno(), error)
      end select
   end subroutine check_vacant

   !> Takes all data out of a file; it is no error when there is none.
   subroutine empty_file(path, error)
      character(len=*), intent(in) :: path
      type(error_t), allocatable, intent(out) :: error

      if (c_truncate(path//c_null_char, 0_int64) == 0) return
      if (shim_missing(shim_errno()) == 0) then
         call system_failure("truncate", path, shim_errno(), error)
      end if
   end subroutine empty_file

end module standing_file
