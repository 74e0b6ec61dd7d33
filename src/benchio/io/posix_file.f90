!> Files through POSIX calls. Every status is checked; a failure becomes an error with the
!> call, the path and the system's text.
module posix_file
   use, intrinsic :: iso_c_binding, only: c_int, c_intptr_t, c_loc, c_null_char, c_size_t
   use, intrinsic :: iso_fortran_env, only: int64, int8
   use errors, only: error_t, fail
   use io_calls, only: io_calls_t
   use posix_api, only: c_close, c_fsync, c_preadv, c_pwritev, iovec_t, mode_existing, &
                        mode_shared_existing, shim_errno, shim_interrupted, shim_missing, shim_open
   use posix_path, only: remedy, system_failure
   use text, only: to_text
   implicit none(type, external)
   private

   public :: open_file, close_file
   public :: write_vectors, write_bytes, read_vectors, sync_file, release_locks

   ! The most vectors that Linux takes in one call (IOV_MAX).
   integer, parameter :: vectors_per_call = 1024

contains

   !> Opens a file in one of the modes of posix_api. A new file must not exist, so that no link is
   !> followed that another user has put there.
   subroutine open_file(path, mode, fd, error)
      character(len=*), intent(in) :: path
      integer(c_int), intent(in) :: mode
      integer(c_int), intent(out) :: fd
      type(error_t), allocatable, intent(out) :: error
      integer(c_int) :: number

      fd = shim_open(path//c_null_char, mode, 0_c_int)
      if (fd >= 0) return
      number = shim_errno()
      call system_failure("open", path, number, error)
      if (mode == mode_existing) then
         if (shim_missing(number) /= 0) error%text = error%text//remedy(.false.)
      else if (mode /= mode_shared_existing) then
         error%text = error%text//remedy(.true.)
      end if
   end subroutine open_file

   ! `calls` says what the calls must fulfil, and gets their times.

   !> Writes all of the vectors, one after the other, at byte `offset`.
   subroutine write_vectors(fd, path, vectors, offset, calls, error)
      integer(c_int), intent(in) :: fd
      character(len=*), intent(in) :: path
      type(iovec_t), intent(in), contiguous :: vectors(:)
      integer(int64), intent(in) :: offset
      type(io_calls_t), intent(inout) :: calls
      type(error_t), allocatable, intent(out) :: error

      call transfer_vectors(.true., fd, path, vectors, offset, calls, error)
   end subroutine write_vectors

   !> Writes contiguous memory at byte `offset`.
   subroutine write_bytes(fd, path, memory, offset, calls, error)
      integer(c_int), intent(in) :: fd
      character(len=*), intent(in) :: path
      integer(int8), intent(in), target, contiguous :: memory(:)
      integer(int64), intent(in) :: offset
      type(io_calls_t), intent(inout) :: calls
      type(error_t), allocatable, intent(out) :: error

      call write_vectors(fd, path, [iovec_t(c_loc(memory), size(memory, kind=c_size_t))], offset, &
                         calls, error)
   end subroutine write_bytes

   !> Fills all of the vectors, one after the other, from byte `offset` on. It is an
   !> error when the file ends before that.
   subroutine read_vectors(fd, path, vectors, offset, calls, error)
      integer(c_int), intent(in) :: fd
      character(len=*), intent(in) :: path
      type(iovec_t), intent(in), contiguous :: vectors(:)
      integer(int64), intent(in) :: offset
      type(io_calls_t), intent(inout) :: calls
      type(error_t), allocatable, intent(out) :: error

      call transfer_vectors(.false., fd, path, vectors, offset, calls, error)
   end subroutine read_vectors

   !> A call may move less than requested. The rest of a partly moved vector is moved by a
   !> call of its own, so that the other vectors are used as they are.
   subroutine transfer_vectors(writing, fd, path, vectors, offset, calls, error)
      logical, intent(in) :: writing
      integer(c_int), intent(in) :: fd
      character(len=*), intent(in) :: path
      type(iovec_t), intent(in), contiguous :: vectors(:)
      integer(int64), intent(in) :: offset
      type(io_calls_t), intent(inout) :: calls
      type(error_t), allocatable, intent(out) :: error
      integer(c_size_t) :: moved, cut
      integer(int64) :: at, next
      integer(c_int) :: batch, number

      call calls%check_aligned(path, vectors, offset, error)
      if (allocated(error)) return
      at = offset
      next = 1_int64
      cut = 0_c_size_t
      do while (next <= size(vectors, kind=int64))
         call calls%times%begin()
         if (cut > 0_c_size_t) then
            moved = one_call(writing, fd, [rest_of(vectors(next), cut)], 1_c_int, at)
         else
            batch = int(min(int(vectors_per_call, int64), &
                            size(vectors, kind=int64) - next + 1_int64), c_int)
            moved = one_call(writing, fd, vectors(next:next + batch - 1), batch, at)
         end if
         if (moved > 0_c_size_t) call calls%times%finish()
         if (moved <= 0_c_size_t) then
            number = shim_errno()
            if (moved < 0_c_size_t) then
               if (shim_interrupted(number) /= 0) cycle
            end if
            call transfer_failure(writing, path, at, moved, number, error)
            return
         end if
         at = at + moved
         moved = moved + cut
         cut = 0_c_size_t
         do while (moved > 0_c_size_t)
            if (moved < vectors(next)%length) then
               cut = moved
               exit
            end if
            moved = moved - vectors(next)%length
            next = next + 1_int64
         end do
      end do
   end subroutine transfer_vectors

   function one_call(writing, fd, vectors, count, offset) result(res)
      logical, intent(in) :: writing
      integer(c_int), intent(in) :: fd, count
      type(iovec_t), intent(in), contiguous :: vectors(:)
      integer(int64), intent(in) :: offset
      integer(c_size_t) :: res

      if (writing) then
         res = c_pwritev(fd, vectors, count, offset)
      else
         res = c_preadv(fd, vectors, count, offset)
      end if
   end function one_call

   !> The vector without its first `cut` bytes.
   function rest_of(vector, cut) result(res)
      type(iovec_t), intent(in) :: vector
      integer(c_size_t), intent(in) :: cut
      type(iovec_t) :: res

      res%base = transfer(transfer(vector%base, 0_c_intptr_t) + int(cut, c_intptr_t), res%base)
      res%length = vector%length - cut
   end function rest_of

   subroutine transfer_failure(writing, path, at, moved, number, error)
      logical, intent(in) :: writing
      character(len=*), intent(in) :: path
      integer(int64), intent(in) :: at
      integer(c_size_t), intent(in) :: moved
      integer(c_int), intent(in) :: number
      type(error_t), allocatable, intent(out) :: error

      if (moved < 0_c_size_t) then
         call system_failure(trim(merge("write", "read ", writing)), path, number, error)
      else if (writing) then
         call fail(error, "write of "//path//" failed: nothing was written at byte "//to_text(at))
      else
         call fail(error, "read of "//path//" failed: the file ends at byte "//to_text(at))
      end if
   end subroutine transfer_failure

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

end module posix_file
