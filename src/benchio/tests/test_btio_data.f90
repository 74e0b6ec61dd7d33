program test_btio_data
   use, intrinsic :: iso_fortran_env, only: int64
   use benchio_btio_data, only: cells_t
   use benchio_btio_partition, only: make_partition, partition_t
   use benchio_difference, only: difference_t
   use benchio_errors, only: error_t
   use benchio_fingerprint, only: mixed_seed, value_at
   use benchio_testing, only: expect, finish
   implicit none(type, external)
   type(partition_t) :: own
   type(cells_t) :: cells
   type(difference_t) :: found
   type(error_t), allocatable :: error

   ! The last of four processes of a grid of 5 x 4 x 3: cells of 2 x 2 x 2 and of 3 x 2 x 1 points.
   call make_partition([5_int64, 4_int64, 3_int64], .true., 2, 4, 3, own, error)
   call cells%create(own, 7_int64, error)
   call cells%fill(2)
   found = differences()
   call expect("what was filled is equal", found%differing, 0_int64)
   call expect("all of it was compared", found%compared_bytes, 8_int64*5*(2*2*2 + 3*2*1))
   call expect("and nothing around it changed", (.not. found%halo_changed))
   ! The first cell begins at (3, 2, 0); the second step after 60 points.
   call expect("a value", cells%values(2, 1, 1, 1, 1), &
               value_at(5_int64*(60 + 3 + 5*2) + 1, mixed_seed(7_int64)))

   cells%values(5, 2, 2, 2, 1) = 0_int64
   found = differences()
   call expect("one value differs", found%differing, 1_int64)
   call expect("its place", found%element, 5_int64*(60 + 4 + 5*(3 + 4*1)) + 4)
   call expect("what was found", found%found, 0_int64)
   call cells%fill(2)
   ! The second cell is shorter along the third axis than the memory for the largest.
   cells%values(1, 1, 1, 2, 2) = 0_int64
   found = differences()
   call expect("memory beside the data", found%halo_changed)
   call expect("is no data", found%differing, 0_int64)
   call cells%poison()
   found = differences()
   call expect("nothing is left to be taken as read", found%differing, 5_int64*14)
   call cells%fill(1)
   found = differences()
   call expect("another step has other values", found%differing, 5_int64*14)
   call finish()

contains

   function differences() result(res)
      type(difference_t) :: res

      call cells%compare(2, res)
   end function differences

end program test_btio_data
