program test_btio_partition
   use, intrinsic :: iso_fortran_env, only: int64
   use benchio_btio_partition, only: make_partition, partition_t
   use benchio_errors, only: error_t
   use benchio_testing, only: expect, expect_refused, finish
   use benchio_text, only: to_text
   implicit none(type, external)
   type(partition_t) :: own
   type(error_t), allocatable :: error
   integer :: cell, rank

   call the_cells_are_those_of_nas_bt([5, 5, 5], 1)
   call the_cells_are_those_of_nas_bt([2, 2, 2], 2)
   call the_cells_are_those_of_nas_bt([7, 11, 13], 3)
   call the_cells_are_those_of_nas_bt([9, 4, 5], 4)
   call the_cells_are_those_of_nas_bt([10, 23, 17], 5)

   ! The published case: 2048 x 1024 x 256 points on 256 processes.
   do rank = 0, 255, 17
      call make_partition([2048_int64, 1024_int64, 256_int64], .true., 0, 256, rank, own, error)
      do cell = 1, 16
         call expect("cells of 128 x 64 x 16", own%cells(cell)%points, &
                     [128_int64, 64_int64, 16_int64])
      end do
      call expect("on its diagonal", own%cells(2)%start(1), 128_int64*mod(rank + 1, 16))
   end do

   call make_partition([3_int64, 5_int64, 7_int64], .false., 0, 4, 2, own, error)
   call expect("local sizes are a process's share", own%grid, [6_int64, 10_int64, 7_int64])
   call expect("its values", own%own_values(), 5_int64*3*5*7)
   call expect("the largest cell", own%most_points(), [3_int64, 5_int64, 4_int64])
   call expect("five steps by default", own%steps, 5)
   call expect("the bytes of a step", own%step_bytes(), 8_int64*5*6*10*7)
   ! Its second cell begins at (3, 0, 4).
   call expect("a value of the second step", own%element_of(2, 2, [1_int64, 2_int64, 1_int64]), &
               5_int64*(3 + 6*(1 + 10*(4 + 7))))

   call refused("2 processes", [8_int64, 8_int64, 8_int64], .true., 2)
   call refused("3 processes", [8_int64, 8_int64, 8_int64], .true., 3)
   call refused("255 processes", [8_int64, 8_int64, 8_int64], .true., 255)
   call refused("3 points in 4 parts", [8_int64, 8_int64, 3_int64], .true., 16)
   call refused("an axis of 2**31", [2_int64**31, 1_int64, 1_int64], .true., 1)
   call refused("twice 2**30", [2_int64**30, 2_int64, 2_int64], .false., 4)
   call refused("2**60 points", [2_int64**20, 2_int64**20, 2_int64**20], .true., 1)
   call finish()

contains

   !> A process has one cell in each layer, one part further along x and back along y than in the
   !> layer before; the first parts of an indivisible axis are longer by one. No two cells of a
   !> process share a part of any axis, so that a sweep along it keeps all processes busy.
   subroutine the_cells_are_those_of_nas_bt(grid, side)
      integer, intent(in) :: grid(3), side
      character(len=:), allocatable :: what
      integer :: owners(grid(1), grid(2), grid(3)), axis, layer, number, parts(3)
      integer(int64) :: past(3)
      logical :: is_taken(0:side - 1, 3)

      owners = 0
      do number = 0, side*side - 1
         call make_partition(int(grid, int64), .true., 0, side*side, number, own, error)
         what = "rank "//to_text(number)//" of "//to_text(side*side)
         call expect(what//": cells", size(own%cells), side)
         is_taken = .false.
         do layer = 0, side - 1
            parts = [mod(mod(number, side) + layer, side), modulo(number/side - layer, side), layer]
            associate (cell => own%cells(layer + 1))
               past = cell%start + cell%points
               do axis = 1, 3
                  call expect(what//": start", int(cell%start(axis)), &
                              start_of(grid(axis), side, parts(axis)))
                  call expect(what//": end", int(past(axis)), &
                              start_of(grid(axis), side, parts(axis) + 1))
                  call expect(what//": a part of its own", (.not. is_taken(parts(axis), axis)))
                  is_taken(parts(axis), axis) = .true.
               end do
               associate (some => owners(cell%start(1) + 1:past(1), cell%start(2) + 1:past(2), &
                                         cell%start(3) + 1:past(3)))
                  some = some + 1
               end associate
            end associate
         end do
      end do
      call expect("each point is in one cell", all(owners == 1))
   end subroutine the_cells_are_those_of_nas_bt

   !> Where a part of an axis begins, by counting.
   pure function start_of(length, parts, part) result(res)
      integer, intent(in) :: length, parts, part
      integer :: res
      integer :: at

      res = 0
      do at = 0, part - 1
         res = res + length/parts
         if (at < mod(length, parts)) res = res + 1
      end do
   end function start_of

   subroutine refused(what, sizes, is_global, processes)
      character(len=*), intent(in) :: what
      integer(int64), intent(in) :: sizes(3)
      logical, intent(in) :: is_global
      integer, intent(in) :: processes

      call make_partition(sizes, is_global, 0, processes, 0, own, error)
      call expect_refused(what, error)
   end subroutine refused

end program test_btio_partition
