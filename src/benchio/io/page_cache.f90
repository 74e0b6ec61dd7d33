!> Removal of a file's pages from the page cache of this node, and the check that the
!> kernel did remove them.
module page_cache
   use, intrinsic :: iso_c_binding, only: c_int
   use, intrinsic :: iso_fortran_env, only: int64
   use errors, only: error_t, keep_first
   use posix_api, only: shim_drop_pages, shim_errno, shim_resident_pages
   use posix_file, only: close_file, get_file_size, open_existing, sync_file, system_failure
   implicit none(type, external)
   private

   public :: flush_file, drop_file

contains

   !> Flushes the pages of a file that this node has written: the kernel does not drop
   !> dirty pages.
   subroutine flush_file(path, error)
      character(len=*), intent(in) :: path
      type(error_t), allocatable, intent(out) :: error
      type(error_t), allocatable :: trouble
      integer(c_int) :: fd

      call open_existing(path, fd, error)
      if (allocated(error)) return
      call sync_file(fd, path, error)
      call close_file(fd, path, trouble)
      call keep_first(error, trouble)
   end subroutine flush_file

   !> Drops a file's pages from this node's cache. `dropped` is true only if none is left.
   !> Remaining pages are no error: on a file system in memory there is nowhere else.
   subroutine drop_file(path, dropped, error)
      character(len=*), intent(in) :: path
      logical, intent(out) :: dropped
      type(error_t), allocatable, intent(out) :: error
      type(error_t), allocatable :: trouble
      integer(int64) :: bytes, resident
      integer(c_int) :: fd, number

      dropped = .false.
      call get_file_size(path, bytes, error)
      if (allocated(error)) return
      call open_existing(path, fd, error)
      if (allocated(error)) return
      number = shim_drop_pages(fd)
      if (number == 0) then
         resident = shim_resident_pages(fd, bytes)
         dropped = resident == 0
         if (resident < 0) call system_failure("mincore", path, shim_errno(), error)
      else
         call system_failure("posix_fadvise", path, number, error)
      end if
      call close_file(fd, path, trouble)
      call keep_first(error, trouble)
   end subroutine drop_file

end module page_cache
