!> Operations on all files of a directory that a library creates. They do not descend into
!> subdirectories and do not follow links, so that they touch nothing outside it.
module benchio_directory_files
   use, intrinsic :: iso_c_binding, only: c_associated, c_char, c_int, c_null_char, c_ptr, c_size_t
   use, intrinsic :: iso_fortran_env, only: int64
   use benchio_errors, only: error_t, fail
   use benchio_posix_api, only: c_closedir, c_rmdir, shim_errno, shim_missing, shim_next_name
   use benchio_posix_api, only: shim_open_directory
   use benchio_posix_path, only: get_file_size, remedy, remove_file, system_failure
   use benchio_text, only: append, string_t
   implicit none(type, external)
   private

   public :: remove_directory, list_existing, sum_of_sizes

   ! Longer than any file name on Linux.
   integer, parameter :: longest_name = 1024

contains

   !> The paths of the entries of a directory. A missing directory sets `missing` and is
   !> no error.
   subroutine list_files(path, res, missing, error)
      character(len=*), intent(in) :: path
      type(string_t), allocatable, intent(out) :: res(:)
      logical, intent(out) :: missing
      type(error_t), allocatable, intent(out) :: error
      character(kind=c_char, len=longest_name) :: name
      type(c_ptr) :: directory
      integer(c_int) :: number, length

      allocate (res(0))
      directory = shim_open_directory(path//c_null_char)
      missing = .false.
      if (.not. c_associated(directory)) then
         number = shim_errno()
         missing = shim_missing(number) /= 0
         if (.not. missing) call system_failure("opening", path, number, error)
         return
      end if
      do
         length = shim_next_name(directory, name, int(len(name), c_size_t))
         if (length <= 0) exit
         call append(res, path//"/"//name(:length))
      end do
      if (length < 0) call system_failure("reading", path, shim_errno(), error)
      if (c_closedir(directory) /= 0 .and. .not. allocated(error)) then
         call system_failure("closing", path, shim_errno(), error)
      end if
   end subroutine list_files

   !> The paths of the entries of a directory that must exist.
   subroutine list_existing(path, res, error)
      character(len=*), intent(in) :: path
      type(string_t), allocatable, intent(out) :: res(:)
      type(error_t), allocatable, intent(out) :: error
      logical :: missing

      call list_files(path, res, missing, error)
      if (.not. missing) return
      call system_failure("opening", path, shim_errno(), error)
      error%text = error%text//remedy(.false.)
   end subroutine list_existing

   !> Removes a directory and its files. If the name of some file begins with none of
   !> `beginnings`, it is not the library's, and nothing is removed. A missing directory is
   !> no error.
   subroutine remove_directory(path, beginnings, error)
      character(len=*), intent(in) :: path, beginnings(:)
      type(error_t), allocatable, intent(out) :: error
      type(string_t), allocatable :: files(:)
      logical :: missing
      integer :: at

      call list_files(path, files, missing, error)
      if (missing .or. allocated(error)) return
      do at = 1, size(files)
         if (begins(files(at)%value(len(path) + 2:), beginnings)) cycle
         call fail(error, path//" is not removed: it has other files than the layer's, such as " &
                   //files(at)%value)
         return
      end do
      do at = 1, size(files)
         call remove_file(files(at)%value, error)
         if (allocated(error)) return
      end do
      if (c_rmdir(path//c_null_char) /= 0) call system_failure("removal", path, shim_errno(), error)
   end subroutine remove_directory

   pure function begins(name, beginnings) result(res)
      character(len=*), intent(in) :: name, beginnings(:)
      logical :: res
      integer :: at

      res = .false.
      do at = 1, size(beginnings)
         res = res .or. index(name, trim(beginnings(at))) == 1
      end do
   end function begins

   !> The number of files in a directory whose names begin with `beginning`, and their
   !> total bytes.
   subroutine sum_of_sizes(path, beginning, files, bytes, error)
      character(len=*), intent(in) :: path, beginning
      integer, intent(out) :: files
      integer(int64), intent(out) :: bytes
      type(error_t), allocatable, intent(out) :: error
      type(string_t), allocatable :: paths(:)
      integer(int64) :: size_of_one
      integer :: at

      files = 0
      bytes = 0_int64
      call list_existing(path, paths, error)
      if (allocated(error)) return
      do at = 1, size(paths)
         if (index(paths(at)%value(len(path) + 2:), beginning) /= 1) cycle
         call get_file_size(paths(at)%value, size_of_one, error)
         if (allocated(error)) return
         files = files + 1
         bytes = bytes + size_of_one
      end do
   end subroutine sum_of_sizes

end module benchio_directory_files
