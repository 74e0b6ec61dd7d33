!> Files through POSIX calls. Every status is checked; a failure becomes an error with the
!> call, the path and the system's text.
module benchio_posix_file
   use, intrinsic :: iso_c_binding, only: c_int, c_intptr_t, c_null_char, c_ptr
   use, intrinsic :: iso_fortran_env, only: int64
   use benchio_call_times, only: call_times_t
   use benchio_errors, only: error_t, fail
   use benchio_posix_api, only: c_close, c_fsync, c_preadv, c_pwritev, iovec_t, mode_existing, &
                                mode_shared_existing, shim_errno, shim_interrupted, shim_missing, &
                                shim_open, shim_unwritable
   use benchio_posix_path, only: remedy, system_failure
   use benchio_text, only: to_text
   implicit none(type, external)
   private

   public :: open_file, close_file, move_vectors, move_once, advanced, sync_file, release_locks

   ! The most vectors that Linux takes in one call (IOV_MAX).
   integer(int64), parameter :: vectors_per_call = 1024_int64

contains

   !> Opens a file in one of the modes of posix_api, with O_DIRECT if `direct`. A new file must not
   !> exist, so that no link is followed that another user has put there.
   subroutine open_file(path, mode, fd, error, direct)
      character(len=*), intent(in) :: path
      integer(c_int), intent(in) :: mode
      integer(c_int), intent(out) :: fd
      type(error_t), allocatable, intent(out) :: error
      logical, intent(in), optional :: direct
      character(len=:), allocatable :: call_name
      integer(c_int) :: number

      call_name = "open"
      if (present(direct)) call_name = "open with O_DIRECT"
      fd = shim_open(path//c_null_char, mode, merge(1_c_int, 0_c_int, present(direct)))
      if (fd >= 0) return
      number = shim_errno()
      call system_failure(call_name, path, number, error)
      if (mode == mode_existing) then
         if (shim_missing(number) /= 0) error%text = error%text//remedy(.false.)
      else if (mode /= mode_shared_existing) then
         if (shim_unwritable(number) /= 0) error%text = error%text//remedy(.true.)
      end if
   end subroutine open_file

   !> Writes all vectors, one after the other, at byte `offset`; or fills them from there on. It is
   !> an error if the file ends before they are full. A call may move less than requested: the rest
   !> of a partly moved vector is moved by a separate call, so that the other vectors can be used
   !> as they are.
   subroutine move_vectors(writing, fd, path, vectors, offset, error, times)
      logical, intent(in) :: writing
      integer(c_int), intent(in) :: fd
      character(len=*), intent(in) :: path
      type(iovec_t), intent(in), contiguous :: vectors(:)
      integer(int64), intent(in) :: offset
      type(error_t), allocatable, intent(out) :: error
      type(call_times_t), intent(inout), optional :: times
      integer(int64) :: at, next, last, moved, cut

      at = offset
      next = 1_int64
      cut = 0_int64
      do while (next <= size(vectors, kind=int64))
         if (cut > 0_int64) then
            call move_once(writing, fd, path, [iovec_t(advanced(vectors(next)%base, cut), &
                                                       vectors(next)%length - cut)], &
                           at, moved, error, times)
         else
            last = min(size(vectors, kind=int64), next + vectors_per_call - 1)
            call move_once(writing, fd, path, vectors(next:last), at, moved, error, times)
         end if
         if (allocated(error)) return
         if (moved == 0_int64) then
            call fail(error, trim(merge("write", "read ", writing))//" of "//path//" failed: " &
                      //trim(merge("nothing was written at", "the file ends at      ", writing)) &
                      //" byte "//to_text(at))
            return
         end if
         at = at + moved
         moved = moved + cut
         cut = 0_int64
         do while (moved > 0_int64)
            if (moved < vectors(next)%length) then
               cut = moved
               exit
            end if
            moved = moved - vectors(next)%length
            next = next + 1_int64
         end do
      end do
   end subroutine move_vectors

   !> One call, made again when a signal interrupts it; returns the bytes that it moved.
   subroutine move_once(writing, fd, path, vectors, offset, moved, error, times)
      logical, intent(in) :: writing
      integer(c_int), intent(in) :: fd
      character(len=*), intent(in) :: path
      type(iovec_t), intent(in), contiguous :: vectors(:)
      integer(int64), intent(in) :: offset
      integer(int64), intent(out) :: moved
      type(error_t), allocatable, intent(out) :: error
      type(call_times_t), intent(inout), optional :: times
      integer(c_int) :: number

      do
         if (present(times)) call times%begin()
         if (writing) then
            moved = c_pwritev(fd, vectors, size(vectors, kind=c_int), offset)
         else
            moved = c_preadv(fd, vectors, size(vectors, kind=c_int), offset)
         end if
         if (moved >= 0_int64) exit
         number = shim_errno()
         if (shim_interrupted(number) /= 0) cycle
         call system_failure(trim(merge("write", "read ", writing)), path, number, error)
         return
      end do
      if (present(times)) call times%finish()
   end subroutine move_once

   !> An address advanced by a number of bytes.
   function advanced(address, bytes) result(res)
      type(c_ptr), intent(in) :: address
      integer(int64), intent(in) :: bytes
      type(c_ptr) :: res

      res = transfer(transfer(address, 0_c_intptr_t) + int(bytes, c_intptr_t), res)
   end function advanced

   !> Flushes the file's data to stable storage.
   subroutine sync_file(fd, path, error)
      integer(c_int), intent(in) :: fd
      character(len=*), intent(in) :: path
      type(error_t), allocatable, intent(out) :: error
      integer(c_int) :: number

      do
         if (c_fsync(fd) == 0) return
         number = shim_errno()
         if (shim_interrupted(number) == 0) exit
      end do
      call system_failure("fsync", path, number, error)
   end subroutine sync_file

   !> Closes a file. Not retried on failure: the descriptor is gone in any case.
   subroutine close_file(fd, path, error)
      integer(c_int), intent(inout) :: fd
      character(len=*), intent(in) :: path
      type(error_t), allocatable, intent(out) :: error

      if (c_close(fd) /= 0) call system_failure("close", path, shim_errno(), error)
      fd = -1_c_int
   end subroutine close_file

   !> Releases all locks that this process holds on a file, as closing any descriptor of it
   !> does. ROMIO keeps its lock after a failed write, and the other processes would wait
   !> for it without end.
   subroutine release_locks(path, error)
      character(len=*), intent(in) :: path
      type(error_t), allocatable, intent(out) :: error
      integer(c_int) :: fd

      call open_file(path, mode_existing, fd, error)
      if (.not. allocated(error)) call close_file(fd, path, error)
   end subroutine release_locks

end module benchio_posix_file
