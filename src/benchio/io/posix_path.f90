!> Files by their paths: removal, size, identity, and the error of a system call.
module benchio_posix_path
   use, intrinsic :: iso_c_binding, only: c_int, c_null_char
   use, intrinsic :: iso_fortran_env, only: int64
   use benchio_c_text, only: from_c
   use benchio_errors, only: error_t, fail
   use benchio_posix_api, only: c_strerror, c_truncate, c_unlink, shim_errno, shim_file_size, &
                                shim_identity, shim_is_same_file, shim_missing
   use benchio_sorting, only: order_of
   use benchio_text, only: string_t, to_text
   implicit none(type, external)
   private

   public :: find_same_files, remove_file, empty_file, get_file_size, is_same_file, library_path
   public :: remedy, system_failure

contains

   !> Removes a file; a missing one is no error.
   subroutine remove_file(path, error)
      character(len=*), intent(in) :: path
      type(error_t), allocatable, intent(out) :: error
      integer(c_int) :: number

      if (c_unlink(path//c_null_char) == 0) return
      number = shim_errno()
      if (shim_missing(number) == 0) call system_failure("removal", path, number, error)
   end subroutine remove_file

   !> Truncates a file to 0 bytes; a missing one is no error.
   subroutine empty_file(path, error)
      character(len=*), intent(in) :: path
      type(error_t), allocatable, intent(out) :: error
      integer(c_int) :: number

      if (c_truncate(path//c_null_char, 0_int64) == 0) return
      number = shim_errno()
      if (shim_missing(number) == 0) call system_failure("truncate", path, number, error)
   end subroutine empty_file

   !> The size of a file in bytes.
   subroutine get_file_size(path, bytes, error)
      character(len=*), intent(in) :: path
      integer(int64), intent(out) :: bytes
      type(error_t), allocatable, intent(out) :: error
      integer(c_int) :: number

      bytes = shim_file_size(path//c_null_char)
      if (bytes >= 0_int64) return
      number = shim_errno()
      call system_failure("stat", path, number, error)
      error%is_missing = shim_missing(number) /= 0_c_int
   end subroutine get_file_size

   !> Whether two paths lead to the same existing file.
   function is_same_file(one, other) result(res)
      character(len=*), intent(in) :: one, other
      logical :: res

      res = shim_is_same_file(one//c_null_char, other//c_null_char) /= 0_c_int
   end function is_same_file

   !> The positions of two paths that lead to the same existing file; 0 if there are none.
   subroutine find_same_files(paths, first, second)
      type(string_t), intent(in) :: paths(:)
      integer, intent(out) :: first, second
      integer(int64) :: devices(size(paths)), numbers(size(paths)), order(size(paths))
      integer :: at, other

      do at = 1, size(paths)
         if (shim_identity(paths(at)%value//c_null_char, devices(at), numbers(at)) == 0) cycle
         ! A missing file gets an identity that no other file has.
         devices(at) = -int(at, int64)
         numbers(at) = 0_int64
      end do
      order = order_of(numbers)
      do at = 2, size(paths)
         do other = at - 1, 1, -1
            first = int(order(other))
            second = int(order(at))
            if (numbers(first) /= numbers(second)) exit
            if (devices(first) == devices(second)) return
         end do
      end do
      first = 0
      second = 0
   end subroutine find_same_files

   !> A path in the form that is safe for I/O libraries: some drop leading blanks, and take
   !> the part before a colon for the name of a file system.
   pure function library_path(path) result(res)
      character(len=*), intent(in) :: path
      character(len=:), allocatable :: res

      res = path
      if (path(1:1) == " " .or. index(path, ":") > 0 .and. path(1:1) /= "/") res = "./"//path
   end function library_path

   !> What to add to an error in creating a file, or in opening one for reading.
   pure function remedy(writing) result(res)
      logical, intent(in) :: writing
      character(len=:), allocatable :: res

      if (writing) then
         res = "; does the directory exist and may you write there?"
      else
         res = "; was it kept by a run of the same layer?"
      end if
   end function remedy

   !> The error of a call that failed on a path with this errno.
   subroutine system_failure(what, path, number, error)
      character(len=*), intent(in) :: what, path
      integer(c_int), intent(in) :: number
      type(error_t), allocatable, intent(out) :: error

      call fail(error, what//" of "//path//" failed: "//from_c(c_strerror(number))//" (errno " &
                //to_text(int(number))//")")
   end subroutine system_failure

end module benchio_posix_path
