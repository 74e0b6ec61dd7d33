program test_block_data
   use, intrinsic :: iso_fortran_env, only: int64
   use benchio_block_data, only: block_t
   use benchio_difference, only: difference_t
   use benchio_errors, only: error_t
   use benchio_fingerprint, only: mixed_seed, value_at
   use benchio_layout, only: layout_t, make_layout
   use benchio_testing, only: expect, finish
   use benchio_text, only: to_text
   implicit none(type, external)
   integer(int64), parameter :: seed = 7_int64, before = 1000_int64
   type(layout_t) :: layout
   type(block_t) :: block
   type(difference_t) :: found
   type(error_t), allocatable :: error
   integer :: halo

   ! The second of two blocks of an array of 3 x 4 x 10.
   call make_layout([3_int64, 4_int64, 10_int64], .true., [1, 1, 2], 1, layout, error)
   do halo = 0, 2
      call block%create(layout, halo, seed, error)
      call expect("memory with a halo of "//to_text(halo), block%room(), &
                  [3_int64, 4_int64, 5_int64] + 2_int64*halo)
      call block%fill(before)
      call expect("a value", block%cells(2, 3, 4), &
                  value_at(before + 1 + 3*(2 + 4*(5 + 3)), mixed_seed(seed)))
      found = block%compare(before)
      call expect("what was filled is equal", found%differing, 0_int64)
      call expect("all of it was compared", found%compared_bytes, 8_int64*60)
      found = block%compare(before + 1)
      call expect("other arrays before it, other values", found%differing, 60_int64)
      block%cells(3, 4, 5) = 0_int64
      found = block%compare(before)
      call expect("one element differs", found%differing, 1_int64)
      call expect("its place", found%element, before + 119)
      call block%poison()
      found = block%compare(before)
      call expect("nothing is left to be taken as read", found%differing, 60_int64)
      call expect("the halo is unchanged", (.not. found%halo_changed))
      call block%free()
   end do

   ! Each side of the halo.
   call block%create(layout, 1, seed, error)
   call changed(0, 1, 1)
   call changed(4, 1, 1)
   call changed(1, 0, 1)
   call changed(1, 5, 1)
   call changed(1, 1, 0)
   call changed(1, 1, 6)
   call block%free()
   call finish()

contains

   subroutine changed(i, j, k)
      integer, intent(in) :: i, j, k

      call block%fill(before)
      block%cells(i, j, k) = 0_int64
      found = block%compare(before)
      call expect("a change of the halo is seen", found%halo_changed)
      call expect("and is not one of the data", found%differing, 0_int64)
   end subroutine changed

end program test_block_data
