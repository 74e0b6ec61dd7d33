program test_grouping
   use, intrinsic :: iso_fortran_env, only: int64
   use benchio_errors, only: error_t
   use benchio_grouping, only: find_grid, find_group
   use benchio_layout, only: layout_t, make_layout
   use benchio_testing, only: expect, expect_refused, finish
   implicit none(type, external)
   integer, parameter :: many = 2**17
   type(layout_t) :: layout, box
   type(error_t), allocatable :: error
   integer :: grid(3), group

   call find_grid([1, 2, 3], 6, grid, error)
   call expect("each process is a group", all(grid == [1, 2, 3]))
   call find_grid([2, 4, 4], 8, grid, error)
   call expect("as many as possible along the last axis", all(grid == [1, 2, 4]))
   call find_grid([1, 2, 3], 5, grid, error)
   call expect_refused("5 groups of 1 x 2 x 3", error)
   call find_grid([1, 2, 3], 7, grid, error)
   call expect_refused("7 groups of 1 x 2 x 3", error)

   ! Of three parts along the last axis the first group has two.
   call make_layout([3_int64, 5_int64, 9_int64], .false., [1, 2, 3], 1, layout, error)
   call find_group(layout, 2, group, box, error)
   call expect("the second of six processes", group, 0)
   call expect("its box begins", box%start, [0_int64, 0_int64, 0_int64])
   call expect("its box has", box%block, [3_int64, 10_int64, 18_int64])
   call make_layout([3_int64, 5_int64, 9_int64], .false., [1, 2, 3], 5, layout, error)
   call find_group(layout, 2, group, box, error)
   call expect("the last process", group, 1)
   call expect("its box begins", box%start, [0_int64, 0_int64, 18_int64])
   call expect("its box has", box%block, [3_int64, 10_int64, 9_int64])

   ! The product of processes and groups needs more than 31 bits.
   call make_layout([1_int64, 1_int64, int(many, int64)], .true., [1, 1, many], many - 1, layout, &
                    error)
   call find_group(layout, many/2, group, box, error)
   call expect("the last of many groups", group, many/2 - 1)
   call expect("its box", [box%global_index(1_int64, 1_int64, 1_int64), box%block(3)], &
               [many - 2_int64, 2_int64])
   call finish()
end program test_grouping
