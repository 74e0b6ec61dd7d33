!> Removes a file's pages from the page cache of this node, and checks that the kernel did so. Other
!> caches, such as ZFS's own or those of servers, cannot be seen.
module benchio_page_cache
   use, intrinsic :: iso_c_binding, only: c_int
   use, intrinsic :: iso_fortran_env, only: int64
   use benchio_errors, only: error_t, keep_first
   use benchio_posix_api, only: mode_existing, shim_drop_pages, shim_errno, shim_resident_pages
   use benchio_posix_file, only: close_file, open_file, sync_file
   use benchio_posix_path, only: get_file_size, system_failure
   implicit none(type, external)
   private

   public :: flush_file, drop_file, count_pages

contains

   !> Flushes the pages of a file that this node has written: the kernel does not drop
   !> dirty pages.
   subroutine flush_file(path, error)
      character(len=*), intent(in) :: path
      type(error_t), allocatable, intent(out) :: error
      type(error_t), allocatable :: trouble
      integer(c_int) :: fd

      call open_file(path, mode_existing, fd, error)
      if (allocated(error)) return
      call sync_file(fd, path, error)
      call close_file(fd, path, trouble)
      call keep_first(error, trouble)
   end subroutine flush_file

   !> Drops a file's pages from this node's cache. `dropped` is true only if none is left.
   !> Remaining pages are no error: a file system in memory keeps its data nowhere else.
   subroutine drop_file(path, dropped, error)
      character(len=*), intent(in) :: path
      logical, intent(out) :: dropped
      type(error_t), allocatable, intent(out) :: error
      type(error_t), allocatable :: trouble
      integer(int64) :: pages
      integer(c_int) :: fd, number

      dropped = .false.
      call open_file(path, mode_existing, fd, error)
      if (allocated(error)) return
      number = shim_drop_pages(fd)
      if (number /= 0) call system_failure("posix_fadvise", path, number, error)
      call close_file(fd, path, trouble)
      call keep_first(error, trouble)
      if (allocated(error)) return
      call count_pages(path, pages, error)
      dropped = pages == 0_int64
   end subroutine drop_file

   !> The number of a file's pages in this node's cache.
   subroutine count_pages(path, pages, error)
      character(len=*), intent(in) :: path
      integer(int64), intent(out) :: pages
      type(error_t), allocatable, intent(out) :: error
      type(error_t), allocatable :: trouble
      integer(int64) :: bytes
      integer(c_int) :: fd

      pages = -1_int64
      call get_file_size(path, bytes, error)
      if (allocated(error)) return
      call open_file(path, mode_existing, fd, error)
      if (allocated(error)) return
      pages = shim_resident_pages(fd, bytes)
      if (pages < 0_int64) call system_failure("mincore", path, shim_errno(), error)
      call close_file(fd, path, trouble)
      call keep_first(error, trouble)
   end subroutine count_pages

end module benchio_page_cache
