!> A data file, moved by POSIX calls. With `--direct` all data move by O_DIRECT, between the file
!> and the caller's aligned memory. With `--cache=direct` reads use O_DIRECT where they can: the
!> system transfers the file's blocks to an aligned buffer, from where they are copied to the
!> caller's memory. Neither read can be served from the page cache.
module benchio_data_file
   use, intrinsic :: iso_c_binding, only: c_associated, c_int, c_intptr_t, c_loc, c_null_char
   use, intrinsic :: iso_c_binding, only: c_null_ptr, c_ptr, c_size_t
   use, intrinsic :: iso_fortran_env, only: int64, int8
   use benchio_call_times, only: call_times_t
   use benchio_errors, only: error_t, fail
   use benchio_posix_api, only: c_memcpy, c_posix_memalign, iovec_t, memory_alignment, &
                                mode_existing, shim_direct_alignment, shim_open
   use benchio_posix_file, only: advanced, close_fd => close_file, move_once, move_vectors, &
                                 open_fd => open_file, sync_fd => sync_file
   use benchio_task, only: task_t
   use benchio_text, only: to_text
   implicit none(type, external)
   private

   public :: data_file_t

   ! A multiple of every block size that O_DIRECT requires in practice.
   integer(int64), parameter :: block_bytes = 4096_int64
   ! The most bytes that one call reads to the buffer.
   integer(int64), parameter :: buffer_bytes = 16_int64*1024_int64**2

   ! The aligned memory of this process, for all files; allocated on first use.
   type(c_ptr) :: buffer = c_null_ptr

   type :: data_file_t
      !> Whether it was opened with O_DIRECT.
      logical :: is_direct = .false.
      character(len=:), allocatable, private :: path
      integer(c_int), private :: fd = -1_c_int
      !> With --direct the alignment in bytes that O_DIRECT needs, else 0.
      integer(int64), private :: alignment = 0_int64
   contains
      procedure :: open_file
      procedure :: is_open
      procedure :: move_bytes
      procedure :: move
      procedure :: sync
      procedure :: close_file
   end type data_file_t

contains

   !> Opens the file in one of the modes of posix_api.
   subroutine open_file(self, path, mode, task, error)
      class(data_file_t), intent(inout) :: self
      character(len=*), intent(in) :: path
      integer(c_int), intent(in) :: mode
      type(task_t), intent(in) :: task
      type(error_t), allocatable, intent(out) :: error

      self%path = path
      self%alignment = 0_int64
      self%fd = -1_c_int
      if (task%direct) then
         call open_direct(self, mode, error)
      else if (task%reads_direct .and. mode == mode_existing) then
         self%fd = shim_open(path//c_null_char, mode, 1_c_int)
      end if
      if (allocated(error)) return
      self%is_direct = self%fd >= 0
      ! If O_DIRECT was not the reason, this open fails too, and returns the error.
      if (.not. self%is_direct) call open_fd(path, mode, self%fd, error)
   end subroutine open_file

   !> Opens the file with O_DIRECT; an error on file systems that are only a page cache (tmpfs).
   subroutine open_direct(self, mode, error)
      class(data_file_t), intent(inout) :: self
      integer(c_int), intent(in) :: mode
      type(error_t), allocatable, intent(out) :: error

      call open_fd(self%path, mode, self%fd, error, direct=.true.)
      if (allocated(error)) return
      self%alignment = shim_direct_alignment(self%fd)
      if (self%alignment > 0_int64) return
      call close_fd(self%fd, self%path, error)
      call fail(error, "--direct is not possible for "//self%path//": its file system keeps " &
                //"files in memory only, such as tmpfs")
   end subroutine open_direct

   pure function is_open(self) result(res)
      class(data_file_t), intent(in) :: self
      logical :: res

      res = self%fd >= 0
   end function is_open

   !> Writes contiguous memory at byte `offset`, or fills it from there on.
   subroutine move_bytes(self, writing, memory, offset, times, error)
      class(data_file_t), intent(in) :: self
      logical, intent(in) :: writing
      integer(int8), intent(inout), target, contiguous :: memory(:)
      integer(int64), intent(in) :: offset
      type(call_times_t), intent(inout) :: times
      type(error_t), allocatable, intent(out) :: error

      call self%move(writing, [iovec_t(c_loc(memory), size(memory, kind=c_size_t))], offset, &
                     times, error)
   end subroutine move_bytes

   !> Writes all vectors, one after the other, at byte `offset`; or fills them from there on. It is
   !> an error if the file ends before they are full.
   subroutine move(self, writing, vectors, offset, times, error)
      class(data_file_t), intent(in) :: self
      logical, intent(in) :: writing
      type(iovec_t), intent(in), contiguous :: vectors(:)
      integer(int64), intent(in) :: offset
      type(call_times_t), intent(inout) :: times
      type(error_t), allocatable, intent(out) :: error

      if (self%is_direct .and. self%alignment == 0_int64) then
         call read_by_buffer(self, vectors, offset, times, error)
         return
      end if
      if (self%is_direct) call check_aligned(self, vectors, offset, error)
      if (allocated(error)) return
      call move_vectors(writing, self%fd, self%path, vectors, offset, error, times)
   end subroutine move

   !> An error if O_DIRECT cannot move these vectors. Checked before the call, because some systems
   !> would silently use the page cache.
   subroutine check_aligned(self, vectors, offset, error)
      class(data_file_t), intent(in) :: self
      type(iovec_t), intent(in) :: vectors(:)
      integer(int64), intent(in) :: offset
      type(error_t), allocatable, intent(out) :: error
      integer(int64) :: at

      do at = 1_int64, size(vectors, kind=int64)
         associate (base => int(transfer(vectors(at)%base, 0_c_intptr_t), int64), &
                    length => int(vectors(at)%length, int64))
            if (all(mod([offset, length, base], self%alignment) == 0_int64)) cycle
            call fail(error, "O_DIRECT is not possible for "//self%path//": it moves multiples " &
                      //"of "//to_text(self%alignment)//" bytes, not "//to_text(length) &
                      //" bytes at byte "//to_text(offset) &
                      //"; choose other sizes, or leave --direct out")
            return
         end associate
      end do
   end subroutine check_aligned

   !> Fills the vectors through the buffer.
   subroutine read_by_buffer(self, vectors, offset, times, error)
      class(data_file_t), intent(in) :: self
      type(iovec_t), intent(in) :: vectors(:)
      integer(int64), intent(in) :: offset
      type(call_times_t), intent(inout) :: times
      type(error_t), allocatable, intent(out) :: error
      type(c_ptr) :: same
      integer(int64) :: left, at, skip, got, used, next, filled, part

      if (.not. c_associated(buffer)) then
         if (c_posix_memalign(buffer, memory_alignment, buffer_bytes) /= 0) then
            call fail(error, "no memory for a buffer of "//to_text(buffer_bytes)//" bytes")
            return
         end if
      end if
      left = sum(int(vectors%length, int64))
      at = offset
      next = 1_int64
      filled = 0_int64
      do while (left > 0_int64)
         skip = mod(at, block_bytes)
         part = min(buffer_bytes, (skip + left + block_bytes - 1)/block_bytes*block_bytes)
         call move_once(.false., self%fd, self%path, [iovec_t(buffer, part)], at - skip, got, &
                        error, times)
         if (allocated(error)) return
         got = min(got - skip, left)
         if (got <= 0_int64) then
            call fail(error, "read of "//self%path//" failed: the file ends at byte "//to_text(at))
            return
         end if
         used = 0_int64
         do while (used < got)
            part = min(got - used, int(vectors(next)%length, int64) - filled)
            same = c_memcpy(advanced(vectors(next)%base, filled), advanced(buffer, skip + used), &
                            int(part, c_size_t))
            used = used + part
            filled = filled + part
            if (filled < vectors(next)%length) cycle
            next = next + 1_int64
            filled = 0_int64
         end do
         at = at + got
         left = left - got
      end do
   end subroutine read_by_buffer

   !> Flushes the file's data to stable storage, if it is open.
   subroutine sync(self, error)
      class(data_file_t), intent(in) :: self
      type(error_t), allocatable, intent(out) :: error

      if (self%is_open()) call sync_fd(self%fd, self%path, error)
   end subroutine sync

   !> Closes the file if it is open.
   subroutine close_file(self, error)
      class(data_file_t), intent(inout) :: self
      type(error_t), allocatable, intent(out) :: error

      if (self%is_open()) call close_fd(self%fd, self%path, error)
   end subroutine close_file

end module benchio_data_file
