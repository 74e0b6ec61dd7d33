program test_difference
   use, intrinsic :: iso_fortran_env, only: int64
   use benchio_difference, only: difference_t
   use benchio_testing, only: expect, finish
   implicit none(type, external)
   type(difference_t) :: all, first, second

   call first%count_element(7_int64, 1_int64, 2_int64)
   call first%count_element(9_int64, 3_int64, 4_int64)
   call expect("the first element is kept", [first%element, first%expected, first%found], &
               [7_int64, 1_int64, 2_int64])
   call expect("all are counted", first%differing, 2_int64)

   first%path = "a"
   first%byte = 56_int64
   first%compared_bytes = 80_int64
   second = first
   second%path = "b"
   second%halo_changed = .true.
   all%compared_bytes = 16_int64
   call all%add(first)
   call all%add(second)
   call expect("the path of the first comparison that differs", all%path, "a")
   call expect("its place", [all%byte, all%element], [56_int64, 7_int64])
   call expect("the sums", [all%compared_bytes, all%differing], [176_int64, 4_int64])
   call expect("memory beside the data", all%halo_changed)
   call finish()
end program test_difference
