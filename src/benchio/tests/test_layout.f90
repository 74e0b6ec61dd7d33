program test_layout
   use, intrinsic :: iso_fortran_env, only: int64
   use benchio_errors, only: error_t
   use benchio_layout, only: coords_of, layout_t, make_layout, rank_of
   use benchio_testing, only: expect, expect_refused, finish
   implicit none(type, external)

   call blocks_of_a_small_array()
   call indices_beyond_31_bits()
   call what_cannot_be_cut()
   call finish()

contains

   subroutine blocks_of_a_small_array()
      type(layout_t) :: layout
      type(error_t), allocatable :: error
      integer(int64) :: i, j, k, owners(6*4*9)
      integer :: rank

      call expect("the last axis varies fastest", int(coords_of([2, 3, 4], 7), int64), &
                  [0_int64, 1_int64, 3_int64])
      call expect("the rank of coordinates", rank_of([2, 3, 4], [1, 0, 2]), 14)
      call make_layout([3_int64, 5_int64, 7_int64], .false., [2, 3, 4], 23, layout, error)
      call expect("local sizes describe a block", layout%whole, [6_int64, 15_int64, 28_int64])
      call expect("the last block", layout%start, [3_int64, 10_int64, 21_int64])
      call expect("its elements", layout%block_elements(), 105_int64)
      call expect("the elements of all", layout%whole_elements(), 2520_int64)

      owners = 0_int64
      do rank = 0, 5
         call make_layout([6_int64, 4_int64, 9_int64], .true., [1, 2, 3], rank, layout, error)
         do k = 1, 3
            do j = 1, 2
               do i = 1, 6
                  associate (at => layout%global_index(i, j, k))
                     owners(at + 1) = owners(at + 1) + 1
                     call expect("and back", layout%index_in_block(at), &
                                 i - 1 + 6*(j - 1 + 2*(k - 1)))
                  end associate
               end do
            end do
         end do
      end do
      call expect("each element is in one block", all(owners == 1_int64))
   end subroutine blocks_of_a_small_array

   subroutine indices_beyond_31_bits()
      call expect("2048**3 on 8 x 16 x 16", ends_of(2048_int64, 2048_int64, [8, 16, 16]), &
                  [8056997632_int64, 8589934591_int64])
      call expect("one block of 2**37 elements", ends_of(4096_int64, 8192_int64, [1, 1, 1]), &
                  [0_int64, 137438953471_int64])
      call expect("nearly 2**60 elements", ends_of(1048576_int64, 1048574_int64, [2, 4, 2]), &
                  [576460477426040832_int64, 1152919305583591423_int64])
   end subroutine indices_beyond_31_bits

   !> The indices of the first and the last element of the last block.
   function ends_of(length, depth, procs) result(res)
      integer(int64), intent(in) :: length, depth
      integer, intent(in) :: procs(3)
      integer(int64) :: res(2)
      type(layout_t) :: layout
      type(error_t), allocatable :: error

      call make_layout([length, length, depth], .true., procs, product(procs) - 1, layout, &
                       error)
      associate (n => layout%block)
         res = [layout%global_index(1_int64, 1_int64, 1_int64), &
                layout%global_index(n(1), n(2), n(3))]
      end associate
   end function ends_of

   subroutine what_cannot_be_cut()
      call refused("9 among 2", [8_int64, 8_int64, 9_int64], .true., [1, 1, 2])
      call refused("7 among 2", [8_int64, 7_int64, 8_int64], .true., [1, 2, 2])
      call refused("2 among 3", [8_int64, 8_int64, 2_int64], .true., [1, 1, 3])
      call refused("an axis of 2**31", [2_int64**31, 4_int64, 4_int64], .false., [1, 1, 1])
      call refused("blocks of such an axis", [2_int64**30, 4_int64, 4_int64], .false., [2, 1, 1])
      call refused("2**66 elements", [2_int64**22, 2_int64**22, 2_int64**22], .false., [1, 1, 1])
   end subroutine what_cannot_be_cut

   subroutine refused(what, sizes, is_global, procs)
      character(len=*), intent(in) :: what
      integer(int64), intent(in) :: sizes(3)
      logical, intent(in) :: is_global
      integer, intent(in) :: procs(3)
      type(layout_t) :: layout
      type(error_t), allocatable :: error

      call make_layout(sizes, is_global, procs, 0, layout, error)
      call expect_refused(what, error)
   end subroutine refused

end program test_layout
