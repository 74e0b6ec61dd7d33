program test_byte_pattern
   use, intrinsic :: iso_fortran_env, only: int64, int8
   use benchio_byte_pattern, only: compare_bytes, put_bytes
   use benchio_difference, only: difference_t
   use benchio_fingerprint, only: mixed_seed, value_at
   use benchio_testing, only: expect, finish
   implicit none(type, external)
   integer(int64), parameter :: length = 5000_int64
   integer(int8) :: stream(length), memory(length)
   integer(int64) :: at, start, count, mixed, step
   type(difference_t) :: found

   mixed = mixed_seed(11_int64)
   stream = transfer([(value_at(at, mixed), at=0, length/8 - 1)], stream)
   ! Whatever the cut, the bytes equal the stream.
   start = 0_int64
   step = 1_int64
   do while (start < length)
      count = min(step, length - start)
      call put_bytes(memory(start + 1:start + count), start, mixed)
      start = start + count
      step = mod(3*step, 2347_int64)
   end do
   call expect("pieces of any length", all(memory == stream))

   call compare_bytes(memory(4:), 3_int64, mixed, found)
   call expect("no difference", [found%compared_bytes, found%differing], [length - 3, 0_int64])
   memory(2047) = ieor(memory(2047), 16_int8)
   memory(4001) = ieor(memory(4001), 1_int8)
   call compare_bytes(memory(4:), 3_int64, mixed, found)
   call expect("two elements differ", found%differing, 2_int64)
   call expect("the first byte", [found%byte, found%element], [2046_int64, 255_int64])
   call expect("what was expected", found%expected, value_at(255_int64, mixed))
   ! Byte 6 of the element, whose lowest byte comes first.
   call expect("what was found", found%found, &
               ieor(found%expected, shiftl(16_int64, 8*6)))
   call compare_bytes(memory(2048:4000), 2047_int64, mixed, found)
   call expect("the rest of that element is equal", found%differing, 0_int64)
   call finish()
end program test_byte_pattern
