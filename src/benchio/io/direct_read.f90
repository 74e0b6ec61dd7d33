!> Reads that bypass the page cache (O_DIRECT): the system transfers the file's blocks to
!> aligned memory, from where they are copied to the caller's. Such a read cannot find its
!> data in memory.
module direct_read
   use, intrinsic :: iso_c_binding, only: c_int, c_intptr_t, c_loc, c_null_char, c_null_ptr
   use, intrinsic :: iso_c_binding, only: c_ptr, c_size_t
   use, intrinsic :: iso_fortran_env, only: int64, int8
   use errors, only: error_t, fail
   use posix_api, only: c_memcpy, c_preadv, iovec_t, mode_direct, shim_errno, shim_interrupted, &
                        shim_open
   use posix_file, only: open_existing, read_through_cache => read_vectors, system_failure
   use text, only: to_text
   implicit none(type, external)
   private

   public :: direct_reader_t, open_to_read

   ! A multiple of every block size that O_DIRECT requires in practice.
   integer(int64), parameter :: alignment = 4096_int64
   ! The most bytes that one call reads.
   integer(int64), parameter :: chunk = 16_int64*1024_int64**2

   !> The aligned buffer; allocated on first use.
   type :: direct_reader_t
      private
      integer(int64), pointer, contiguous :: memory(:) => null()
      type(c_ptr) :: start = c_null_ptr
   contains
      procedure :: read_vectors
      procedure :: read_bytes
      procedure :: free
   end type direct_reader_t

contains

   !> Opens a file for reading, with O_DIRECT if that is requested and possible;
   !> `is_direct` returns whether it is.
   subroutine open_to_read(path, wants_direct, fd, is_direct, error)
      character(len=*), intent(in) :: path
      logical, intent(in) :: wants_direct
      integer(c_int), intent(out) :: fd
      logical, intent(out) :: is_direct
      type(error_t), allocatable, intent(out) :: error

      fd = -1_c_int
      if (wants_direct) fd = shim_open(path//c_null_char, mode_direct)
      is_direct = fd >= 0
      ! If O_DIRECT was not the reason, this open fails too, and returns the error.
      if (.not. is_direct) call open_existing(path, fd, error)
   end subroutine open_to_read

   !> Fills contiguous memory from byte `offset` on, as `read_vectors` does.
   subroutine read_bytes(self, direct, fd, path, memory, offset, error)
      class(direct_reader_t), intent(inout) :: self
      logical, intent(in) :: direct
      integer(c_int), intent(in) :: fd
      character(len=*), intent(in) :: path
      integer(int8), intent(inout), target, contiguous :: memory(:)
      integer(int64), intent(in) :: offset
      type(error_t), allocatable, intent(out) :: error

      call self%read_vectors(direct, fd, path, &
                             [iovec_t(c_loc(memory), size(memory, kind=c_size_t))], offset, error)
   end subroutine read_bytes

   !> Fills all of the vectors, one after the other, from byte `offset` on: through the
   !> aligned buffer if `direct`. It is an error when the file ends before that.
   subroutine read_vectors(self, direct, fd, path, vectors, offset, error)
      class(direct_reader_t), intent(inout) :: self
      logical, intent(in) :: direct
      integer(c_int), intent(in) :: fd
      character(len=*), intent(in) :: path
      type(iovec_t), intent(in), contiguous :: vectors(:)
      integer(int64), intent(in) :: offset
      type(error_t), allocatable, intent(out) :: error
      integer(int64) :: left, at, skip, got, used, next, filled, part

      if (.not. direct) then
         call read_through_cache(fd, path, vectors, offset, error)
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
         call read_chunk(self, fd, path, at - skip, skip + left, got, error)
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
      integer(int64) :: beyond
      integer :: status

      if (associated(self%memory)) return
      allocate (self%memory((chunk + alignment)/8_int64), stat=status)
      if (status /= 0) then
         call fail(error, "no memory for a buffer of "//to_text(chunk)//" bytes")
         return
      end if
      self%start = c_loc(self%memory)
      beyond = mod(int(transfer(self%start, 0_c_intptr_t), int64), alignment)
      if (beyond > 0_int64) self%start = advanced(self%start, alignment - beyond)
   end subroutine allocate_memory

   !> Reads from the aligned byte `at` on: `wanted` bytes, rounded up to the alignment, or
   !> as many as the buffer holds or the file has.
   subroutine read_chunk(self, fd, path, at, wanted, got, error)
      class(direct_reader_t), intent(in) :: self
      integer(c_int), intent(in) :: fd
      character(len=*), intent(in) :: path
      integer(int64), intent(in) :: at, wanted
      integer(int64), intent(out) :: got
      type(error_t), allocatable, intent(out) :: error
      type(iovec_t) :: vector(1)
      integer(c_int) :: number

      vector(1)%base = self%start
      vector(1)%length = int(min(chunk, (wanted + alignment - 1)/alignment*alignment), c_size_t)
      do
         got = c_preadv(fd, vector, 1_c_int, at)
         if (got >= 0_int64) return
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

      if (associated(self%memory)) deallocate (self%memory)
   end subroutine free

end module direct_read
