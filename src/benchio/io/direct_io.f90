!> The files of the data past the page cache (O_DIRECT). With `--direct` nothing else moves data,
!> from and to the caller's aligned memory. With `--cache=direct` reads use it where they can: the
!> system transfers the file's blocks to aligned memory, from where they are copied to the
!> caller's. Either read cannot find its data in memory.
module direct_io
   use, intrinsic :: iso_c_binding, only: c_associated, c_int, c_intptr_t, c_loc, c_null_char
   use, intrinsic :: iso_c_binding, only: c_null_ptr, c_ptr, c_size_t
   use, intrinsic :: iso_fortran_env, only: int64, int8
   use errors, only: error_t, fail
   use io_calls, only: io_calls_t
   use posix_api, only: c_free, c_memcpy, c_posix_memalign, c_preadv, iovec_t, memory_alignment, &
                        mode_existing, shim_direct_alignment, shim_errno, shim_interrupted, &
                        shim_open
   use posix_file, only: close_file, open_file, read_in_place => read_vectors
   use posix_path, only: remedy, system_failure
   use task, only: task_t
   use text, only: to_text
   implicit none(type, external)
   private

   public :: direct_reader_t, open_to_read, open_to_write

   ! A multiple of every block size that O_DIRECT requires in practice.
   integer(int64), parameter :: alignment = 4096_int64
   ! The most bytes that one call reads.
   integer(int64), parameter :: chunk = 16_int64*1024_int64**2

   !> The aligned buffer; allocated on first use.
   type :: direct_reader_t
      private
      type(c_ptr) :: start = c_null_ptr
   contains
      procedure :: read_vectors
      procedure :: read_bytes
      procedure :: free
   end type direct_reader_t

contains

   !> Opens a file to write it, in one of the modes of posix_api.
   subroutine open_to_write(path, mode, task, fd, calls, error)
      character(len=*), intent(in) :: path
      integer(c_int), intent(in) :: mode
      type(task_t), intent(in) :: task
      integer(c_int), intent(out) :: fd
      type(io_calls_t), intent(inout) :: calls
      type(error_t), allocatable, intent(out) :: error

      if (task%direct) then
         call open_direct(path, mode, fd, calls, error)
      else
         call open_file(path, mode, fd, error)
      end if
   end subroutine open_to_write

   !> Opens a file to read it; `is_direct` returns whether with O_DIRECT.
   subroutine open_to_read(path, task, fd, calls, is_direct, error)
      character(len=*), intent(in) :: path
      type(task_t), intent(in) :: task
      integer(c_int), intent(out) :: fd
      type(io_calls_t), intent(inout) :: calls
      logical, intent(out) :: is_direct
      type(error_t), allocatable, intent(out) :: error

      is_direct = .false.
      if (task%direct) then
         call open_direct(path, mode_existing, fd, calls, error)
         is_direct = .not. allocated(error)
         return
      end if
      fd = -1_c_int
      if (task%reads_direct) fd = shim_open(path//c_null_char, mode_existing, 1_c_int)
      is_direct = fd >= 0
      ! If O_DIRECT was not the reason, this open fails too, and returns the error.
      if (.not. is_direct) call open_file(path, mode_existing, fd, error)
   end subroutine open_to_read

   !> Opens a file with O_DIRECT. An error where the file system has only the page cache.
   subroutine open_direct(path, mode, fd, calls, error)
      character(len=*), intent(in) :: path
      integer(c_int), intent(in) :: mode
      integer(c_int), intent(out) :: fd
      type(io_calls_t), intent(inout) :: calls
      type(error_t), allocatable, intent(out) :: error

      fd = shim_open(path//c_null_char, mode, 1_c_int)
      if (fd < 0) then
         call system_failure("open with O_DIRECT", path, shim_errno(), error)
         error%text = error%text//remedy(mode /= mode_existing)
         return
      end if
      calls%alignment = shim_direct_alignment(fd)
      if (calls%alignment > 0) return
      call close_file(fd, path, error)
      call fail(error, "--direct is not possible for "//path//": its file system keeps files in " &
                //"memory only, such as tmpfs")
   end subroutine open_direct

   !> Fills contiguous memory from byte `offset` on, as `read_vectors` does.
   subroutine read_bytes(self, direct, fd, path, memory, offset, calls, error)
      class(direct_reader_t), intent(inout) :: self
      logical, intent(in) :: direct
      integer(c_int), intent(in) :: fd
      character(len=*), intent(in) :: path
      integer(int8), intent(inout), target, contiguous :: memory(:)
      integer(int64), intent(in) :: offset
      type(io_calls_t), intent(inout) :: calls
      type(error_t), allocatable, intent(out) :: error

      call self%read_vectors(direct, fd, path, &
                             [iovec_t(c_loc(memory), size(memory, kind=c_size_t))], offset, &
                             calls, error)
   end subroutine read_bytes

   !> Fills all of the vectors, one after the other, from byte `offset` on: through the
   !> aligned buffer if `direct`, unless they are known to be aligned. It is an error when
   !> the file ends before that.
   subroutine read_vectors(self, direct, fd, path, vectors, offset, calls, error)
      class(direct_reader_t), intent(inout) :: self
      logical, intent(in) :: direct
      integer(c_int), intent(in) :: fd
      character(len=*), intent(in) :: path
      type(iovec_t), intent(in), contiguous :: vectors(:)
      integer(int64), intent(in) :: offset
      type(io_calls_t), intent(inout) :: calls
      type(error_t), allocatable, intent(out) :: error
      integer(int64) :: left, at, skip, got, used, next, filled, part

      if (.not. direct .or. calls%alignment > 0_int64) then
         call read_in_place(fd, path, vectors, offset, calls, error)
         return
      end if
      call allocate_memory(self, error)
      if (allocated(error)) return
      left = sum(int(vectors%length, int64))
      at = offset
      next = 1_int64
      filled = 0_int64
      do while (left > 0_int64)
         skip = mod(at, alignment)
         call read_chunk(self, fd, path, at - skip, skip + left, calls, got, error)
         if (allocated(error)) return
         got = min(got - skip, left)
         if (got <= 0_int64) then
            call fail(error, "read of "//path//" failed: the file ends at byte "//to_text(at))
            return
         end if
         used = 0_int64
         do while (used < got)
            part = min(got - used, int(vectors(next)%length, int64) - filled)
            call copy(advanced(vectors(next)%base, filled), advanced(self%start, skip + used), part)
            used = used + part
            filled = filled + part
            if (filled < vectors(next)%length) cycle
            next = next + 1_int64
            filled = 0_int64
         end do
         at = at + got
         left = left - got
      end do
   end subroutine read_vectors

   subroutine allocate_memory(self, error)
      class(direct_reader_t), intent(inout) :: self
      type(error_t), allocatable, intent(out) :: error

      if (c_associated(self%start)) return
      if (c_posix_memalign(self%start, memory_alignment, chunk) /= 0) then
         call fail(error, "no memory for a buffer of "//to_text(chunk)//" bytes")
      end if
   end subroutine allocate_memory

   !> Reads from the aligned byte `at` on: `wanted` bytes, rounded up to the alignment, or
   !> as many as the buffer holds or the file has.
   subroutine read_chunk(self, fd, path, at, wanted, calls, got, error)
      class(direct_reader_t), intent(in) :: self
      integer(c_int), intent(in) :: fd
      character(len=*), intent(in) :: path
      integer(int64), intent(in) :: at, wanted
      type(io_calls_t), intent(inout) :: calls
      integer(int64), intent(out) :: got
      type(error_t), allocatable, intent(out) :: error
      type(iovec_t) :: vector(1)
      integer(c_int) :: number

      vector(1)%base = self%start
      vector(1)%length = int(min(chunk, (wanted + alignment - 1)/alignment*alignment), c_size_t)
      do
         call calls%times%begin()
         got = c_preadv(fd, vector, 1_c_int, at)
         if (got >= 0_int64) then
            call calls%times%finish()
            return
         end if
         number = shim_errno()
         if (shim_interrupted(number) == 0) exit
      end do
      call system_failure("read", path, number, error)
   end subroutine read_chunk

   !> An address advanced by a number of bytes.
   function advanced(address, bytes) result(res)
      type(c_ptr), intent(in) :: address
      integer(int64), intent(in) :: bytes
      type(c_ptr) :: res

      res = transfer(transfer(address, 0_c_intptr_t) + int(bytes, c_intptr_t), res)
   end function advanced

   !> memcpy, without its result.
   subroutine copy(to, from, bytes)
      type(c_ptr), intent(in) :: to, from
      integer(int64), intent(in) :: bytes
      type(c_ptr) :: same

      same = c_memcpy(to, from, int(bytes, c_size_t))
   end subroutine copy

   subroutine free(self)
      class(direct_reader_t), intent(inout) :: self

      if (c_associated(self%start)) call c_free(self%start)
      self%start = c_null_ptr
   end subroutine free

end module direct_io
