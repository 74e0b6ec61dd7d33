!> Reading past the page cache, with O_DIRECT: the system brings the file's blocks
!> straight to aligned memory, from where they are copied to their place. So a
!> read cannot find its data in memory, be it there or not.
module direct_read
   use, intrinsic :: iso_c_binding, only: c_int, c_intptr_t, c_loc, c_null_char, c_ptr, c_size_t
   use, intrinsic :: iso_fortran_env, only: int64
   use errors, only: error_t, fail
   use posix_api, only: c_memcpy, c_preadv, iovec_t, shim_errno, shim_interrupted, &
                        shim_open_direct
   use posix_file, only: open_existing, system_failure
   use text, only: to_text
   implicit none(type, external)
   private

   public :: direct_reader_t, open_to_read

   ! Every block size that O_DIRECT asks for in practice divides this.
   integer(int64), parameter :: alignment = 4096_int64
   ! Bytes that a call reads at most.
   integer(int64), parameter :: chunk = 16_int64*1024_int64**2

   !> Memory to read through; taken when it is first used.
   type :: direct_reader_t
      private
      integer(int64), pointer, contiguous :: memory(:) => null()
      type(c_ptr) :: start
   contains
      procedure :: read_vectors
      procedure :: free
   end type direct_reader_t

contains

   !> Opens a file for reading, past the page cache if that is wanted and
   !> possible. `is_direct` tells whether it is.
   subroutine open_to_read(path, wants_direct, fd, is_direct, error)
      character(len=*), intent(in) :: path
      logical, intent(in) :: wants_direct
      integer(c_int), intent(out) :: fd
      logical, intent(out) :: is_direct
      type(error_t), allocatable, intent(out) :: error

      fd = -1_c_int
      if (wants_direct) fd = shim_open_direct(path//c_null_char)
      is_direct = fd >= 0
      ! Why it could not be opened so, if not for O_DIRECT, is then said here.
      if (.not. is_direct) call open_existing(path, fd, error)
   end subroutine open_to_read

   !> Fills all of the vectors, one after the other, from byte `offset` of a file
   !> that was opened with O_DIRECT. It is an error when the file ends before.
   subroutine read_vectors(self, fd, path, vectors, offset, error)
      class(direct_reader_t), intent(inout) :: self
      integer(c_int), intent(in) :: fd
      character(len=*), intent(in) :: path
      type(iovec_t), intent(in), contiguous :: vectors(:)
      integer(int64), intent(in) :: offset
      type(error_t), allocatable, intent(out) :: error
      integer(int64) :: left, at, skip, got, used, next, filled, part

      call take_memory(self, error)
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
            call copy(moved(vectors(next)%base, filled), moved(self%start, skip + used), part)
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

   subroutine take_memory(self, error)
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
      if (beyond > 0_int64) self%start = moved(self%start, alignment - beyond)
   end subroutine take_memory

   !> Reads from an aligned byte on, `wanted` bytes and what is behind them to the
   !> next aligned one, or as many as the memory holds or the file has.
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

   !> The address so many bytes further on.
   function moved(address, bytes) result(res)
      type(c_ptr), intent(in) :: address
      integer(int64), intent(in) :: bytes
      type(c_ptr) :: res

      res = transfer(transfer(address, 0_c_intptr_t) + int(bytes, c_intptr_t), res)
   end function moved

   !> memcpy returns what it was given.
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
