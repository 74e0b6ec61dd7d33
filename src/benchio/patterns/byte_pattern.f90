!> The data as one stream of bytes, for layers with records of any length: byte `at` of
!> the stream is byte mod(at, 8) of element at/8, in this machine's byte order. However
!> the stream is cut, the file is the same as for the whole 3-D array.
module benchio_byte_pattern
   use, intrinsic :: iso_fortran_env, only: int64, int8
   use benchio_difference, only: difference_t
   use benchio_fingerprint, only: value_at
   implicit none(type, external)
   private

   public :: put_bytes, compare_bytes

   ! Elements that are generated at a time; few, since a record may be a single byte.
   integer(int64), parameter :: chunk = 256_int64, element = 8_int64

contains

   !> Fills memory with the bytes of the stream from `start` on.
   pure subroutine put_bytes(memory, start, mixed)
      integer(int8), intent(out), contiguous :: memory(:)
      integer(int64), intent(in) :: start, mixed
      integer(int64) :: values(chunk)
      integer(int8) :: bytes(element*chunk)
      integer(int64) :: done, skip, part

      done = 0_int64
      do while (done < size(memory, kind=int64))
         call make_chunk(start + done, size(memory, kind=int64) - done, mixed, values, skip, part)
         bytes = transfer(values, bytes)
         memory(done + 1:done + part) = bytes(skip + 1:skip + part)
         done = done + part
      end do
   end subroutine put_bytes

   !> Compares memory with the bytes of the stream from `start` on. `res` gives the first byte that
   !> differs, counted from the start of the stream, and the expected and found value of its
   !> element. Bytes of the element outside the memory are assumed to be correct.
   pure subroutine compare_bytes(memory, start, mixed, res)
      integer(int8), intent(in), contiguous :: memory(:)
      integer(int64), intent(in) :: start, mixed
      type(difference_t), intent(out) :: res
      integer(int64) :: values(chunk), found(chunk)
      integer(int8) :: bytes(element*chunk)
      integer(int64) :: done, skip, part, at

      res%compared_bytes = size(memory, kind=int64)
      done = 0_int64
      do while (done < size(memory, kind=int64))
         call make_chunk(start + done, size(memory, kind=int64) - done, mixed, values, skip, part)
         bytes = transfer(values, bytes)
         bytes(skip + 1:skip + part) = memory(done + 1:done + part)
         found = transfer(bytes, found)
         do at = 1, chunk
            if (found(at) == values(at)) cycle
            call res%count_element((start + done)/element + at - 1, values(at), found(at))
            if (res%differing > 1) cycle
            res%byte = element*res%element + first_byte(values(at), found(at))
         end do
         done = done + part
      end do
   end subroutine compare_bytes

   !> Generates the elements that contain the bytes from `start` on, up to one chunk: the
   !> wanted bytes begin after `skip` bytes, and there are `part` of them.
   pure subroutine make_chunk(start, wanted, mixed, values, skip, part)
      integer(int64), intent(in) :: start, wanted, mixed
      integer(int64), intent(out) :: values(chunk), skip, part
      integer(int64) :: at, count

      skip = mod(start, element)
      part = min(element*chunk - skip, wanted)
      count = (skip + part + element - 1)/element
      do at = 1, count
         values(at) = value_at(start/element + at - 1, mixed)
      end do
      values(count + 1:) = 0_int64
   end subroutine make_chunk

   !> The number, from 0, of the first byte in which two elements differ.
   pure function first_byte(left, right) result(res)
      integer(int64), intent(in) :: left, right
      integer(int64) :: res
      integer(int8) :: bytes(element)

      bytes = transfer(ieor(left, right), bytes)
      res = findloc(bytes /= 0_int8, .true., 1) - 1
   end function first_byte

end module benchio_byte_pattern
