!> Checks of files and file systems before and after a phase: that a file can be created,
!> is empty or is complete, and that there is enough space.
module benchio_file_checks
   use, intrinsic :: iso_c_binding, only: c_int, c_null_char
   use, intrinsic :: iso_fortran_env, only: int64
   use benchio_errors, only: error_t, fail, keep_first
   use benchio_posix_api, only: c_sleep, guard_removes, mode_existing, mode_new, shim_errno, &
                                shim_file_limit, shim_first_hole, shim_free_bytes, shim_guard, &
                                shim_is_open_to_others, shim_is_regular, shim_room, &
                                shim_unguard
   use benchio_posix_file, only: close_file, open_file
   use benchio_posix_path, only: get_file_size, remove_file, system_failure
   use benchio_text, only: to_text
   implicit none(type, external)
   private

   public :: check_closed_to_others, check_creatable, check_empty, check_complete, check_room
   public :: check_free, check_limit

   !> Seconds to wait for the space of removed files to be freed.
   integer(c_int), parameter :: longest_wait = 5_c_int

contains

   !> An error if others may write to a directory and replace its files: not
   !> every library can be asked to follow no links.
   subroutine check_closed_to_others(directory, error)
      character(len=*), intent(in) :: directory
      type(error_t), allocatable, intent(out) :: error

      if (shim_is_open_to_others(directory//c_null_char) == 0_c_int) return
      call fail(error, directory//" may be written to by others and is not sticky, so that they " &
                //"could replace files; use chmod o-w or chmod +t")
   end subroutine check_closed_to_others

   !> An error unless a file can be created; removes it again, even if a signal ends the process
   !> in between. No path is guarded afterwards.
   subroutine check_creatable(path, error)
      character(len=*), intent(in) :: path
      type(error_t), allocatable, intent(out) :: error
      integer(c_int) :: fd

      call shim_guard(path//c_null_char, guard_removes)
      call open_file(path, mode_new, fd, error)
      if (.not. allocated(error)) call close_file(fd, path, error)
      if (.not. allocated(error)) call remove_file(path, error)
      call shim_unguard()
   end subroutine check_creatable

   !> An error unless the file exists and is empty, so that nobody's data are overwritten.
   subroutine check_empty(path, error)
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
         call fail(error, path//" is not a regular file")
      case default
         call system_failure("stat", path, shim_errno(), error)
      end select
   end subroutine check_empty

   !> An error unless the file has this many bytes, or at least as many if `or_more` (a
   !> library's own format), and no holes in the data. MPI libraries have returned success
   !> for data that never reached a full device; later data then follow a hole, and the size
   !> is right. The library's `header` before the data may have holes, since a
   !> library may align the data to a stripe.
   subroutine check_complete(path, bytes, or_more, error, header)
      character(len=*), intent(in) :: path
      integer(int64), intent(in) :: bytes
      logical, intent(in) :: or_more
      type(error_t), allocatable, intent(out) :: error
      integer(int64), intent(in), optional :: header
      type(error_t), allocatable :: trouble
      integer(int64) :: least, size, found
      integer(c_int) :: fd

      call get_file_size(path, size, error)
      if (allocated(error)) return
      least = bytes
      if (present(header)) least = bytes + header
      if (size < least .or. (size > bytes .and. .not. or_more)) then
         call fail(error, path//" has "//to_text(size)//" bytes and should have " &
                   //to_text(least)//trim(merge(" or more", "        ", or_more)))
         error%has_other_size = .true.
         return
      end if
      call open_file(path, mode_existing, fd, error)
      if (allocated(error)) return
      found = shim_first_hole(fd, size - bytes)
      if (found < 0_int64) then
         call system_failure("lseek", path, shim_errno(), error)
      else if (found < size) then
         call fail(error, path//" has a hole: nothing was written at byte "//to_text(found))
         error%has_hole = .true.
      end if
      call close_file(fd, path, trouble)
      call keep_first(error, trouble)
   end subroutine check_complete

   !> An error if the file system of a directory has no space for this many bytes. Retries for some
   !> seconds, because the space of removed files may be freed late.
   subroutine check_room(directory, bytes, error)
      character(len=*), intent(in) :: directory
      integer(int64), intent(in) :: bytes
      type(error_t), allocatable, intent(out) :: error
      integer(int64) :: room
      integer(c_int) :: seconds, rest

      rest = 0_c_int
      do seconds = 1_c_int, longest_wait
         room = shim_room(directory//c_null_char)
         ! If the query fails, opening a file there gives the better message.
         if (room >= bytes .or. room < 0_int64) return
         if (seconds < longest_wait) rest = c_sleep(1_c_int)
      end do
      call fail(error, directory//" has "//to_text(room)//" bytes free, and "//to_text(bytes) &
                //" are to be written")
   end subroutine check_room

   !> An error if a file of `bytes` bytes would exceed the limit of this process.
   subroutine check_limit(path, bytes, error)
      character(len=*), intent(in) :: path
      integer(int64), intent(in) :: bytes
      type(error_t), allocatable, intent(out) :: error

      if (bytes > shim_file_limit()) then
         call fail(error, path//" will have "//to_text(bytes)//" bytes, and a file may have " &
                   //to_text(shim_file_limit())//" (ulimit -f)")
      end if
   end subroutine check_limit

   !> An error if writing `wanted` bytes would leave fewer than `floor` bytes free.
   subroutine check_free(directory, wanted, floor, error)
      character(len=*), intent(in) :: directory
      integer(int64), intent(in) :: wanted, floor
      type(error_t), allocatable, intent(out) :: error
      integer(int64) :: free

      free = shim_free_bytes(directory//c_null_char)
      if (free < 0_int64) then
         call system_failure("statvfs", directory, shim_errno(), error)
      else if (free - wanted < floor) then
         call fail(error, directory//" has "//to_text(free)//" bytes free: "//to_text(wanted) &
                   //" more would leave less than --min-free="//to_text(floor))
      end if
   end subroutine check_free

end module benchio_file_checks
