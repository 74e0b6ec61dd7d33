!> The multi-partition of NAS BT: how it cuts its grid among a square number of processes,
!> and the order of its values in the file. With q x q processes the grid is cut into q
!> parts along each axis, and each process has one of the q x q cells of every layer along
!> the third axis, on a diagonal, so that a sweep along any axis keeps all processes busy.
!> Where q does not divide an axis, its first parts are one point longer.
module benchio_btio_partition
   use, intrinsic :: iso_fortran_env, only: int64
   use benchio_errors, only: error_t, fail, status_usage
   use benchio_layout, only: element_bytes
   use benchio_text, only: to_text
   implicit none(type, external)
   private

   public :: partition_t, make_partition

   !> The values of each grid point.
   integer(int64), parameter, public :: values_per_point = 5_int64
   !> The width of a cell's halo in memory.
   integer(int64), parameter, public :: halo_points = 2_int64

   !> The default number of time steps, as in NAS BT.
   integer, parameter :: usual_steps = 5

   ! MPI takes the length of an axis as a default integer, and a cell has a halo.
   integer(int64), parameter :: longest_axis = int(huge(1), int64) - 2_int64*halo_points

   !> A cell: its first point in the grid, from 0, and its points along each axis.
   type :: cell_t
      integer(int64) :: start(3) = 0_int64, points(3) = 0_int64
   end type cell_t

   type :: partition_t
      !> Points of the grid along each axis.
      integer(int64) :: grid(3) = 0_int64
      !> Time steps; each is a whole grid in the file.
      integer :: steps = usual_steps
      !> The cells of this process, in the order in which they lie in the file.
      type(cell_t), allocatable :: cells(:)
   contains
      procedure :: element_of
      procedure :: most_points
      procedure :: own_values
      procedure :: step_bytes
   end type partition_t

contains

   !> Cuts a grid of `sizes` points for process `rank` of `processes`. Unless `is_global`,
   !> `sizes` are for each process, and the grid is larger along its first two axes. `steps`
   !> is 0 for the default. A grid that cannot be cut, or whose bytes do not fit 64 bits, is
   !> a usage error.
   pure subroutine make_partition(sizes, is_global, steps, processes, rank, res, error)
      integer(int64), intent(in) :: sizes(3)
      logical, intent(in) :: is_global
      integer, intent(in) :: steps, processes, rank
      type(partition_t), intent(out) :: res
      type(error_t), allocatable, intent(out) :: error
      integer :: side, layer

      call find_side(processes, side, error)
      if (allocated(error)) return
      if (steps > 0) res%steps = steps
      call set_grid(sizes, is_global, side, res, error)
      if (allocated(error)) return
      allocate (res%cells(side))
      ! From one layer to the next the cell moves forward along the first axis and backward
      ! along the second, both periodic.
      do layer = 0, side - 1
         res%cells(layer + 1) = cell_at([modulo(mod(rank, side) + layer, side), &
                                         modulo(rank/side - layer, side), layer], side, res%grid)
      end do
   end subroutine make_partition

   !> The square root of the number of processes.
   pure subroutine find_side(processes, side, error)
      integer, intent(in) :: processes
      integer, intent(out) :: side
      type(error_t), allocatable, intent(out) :: error

      side = 1
      do while (int(side + 1, int64)**2 <= processes)
         side = side + 1
      end do
      if (side*side == processes) return
      call fail(error, "btio needs a square number of processes, not "//to_text(processes) &
                //"; use "//to_text(side*side)//" or "//to_text(int(side + 1, int64)**2), &
                status_usage)
   end subroutine find_side

   pure subroutine set_grid(sizes, is_global, side, res, error)
      integer(int64), intent(in) :: sizes(3)
      logical, intent(in) :: is_global
      integer, intent(in) :: side
      type(partition_t), intent(inout) :: res
      type(error_t), allocatable, intent(out) :: error
      integer(int64) :: most
      integer :: axis, factors(3)

      factors = 1
      if (.not. is_global) factors(:2) = side
      do axis = 1, 3
         if (sizes(axis) > longest_axis/factors(axis)) then
            call fail(error, "N"//to_text(axis)//"="//to_text(sizes(axis))//" is too large: an " &
                      //"axis of the grid holds at most "//to_text(longest_axis)//" points", &
                      status_usage)
            return
         end if
         res%grid(axis) = sizes(axis)*factors(axis)
         if (res%grid(axis) < side) then
            call fail(error, "N"//to_text(axis)//"="//to_text(sizes(axis))//" is too small: btio " &
                      //"cuts each axis into "//to_text(side)//" parts", status_usage)
            return
         end if
      end do
      most = huge(most)
      most = most/values_per_point/element_bytes/res%steps
      associate (grid => res%grid)
         if (grid(1) <= most/grid(2)/grid(3)) return
         call fail(error, to_text(res%steps)//" steps of "//to_text(grid(1))//" x " &
                   //to_text(grid(2))//" x "//to_text(grid(3))//" points are too many: their " &
                   //"bytes cannot be counted in 64 bits", status_usage)
      end associate
   end subroutine set_grid

   !> The cell at `place`, from 0, of the `side` parts of each axis.
   pure function cell_at(place, side, grid) result(res)
      integer, intent(in) :: place(3), side
      integer(int64), intent(in) :: grid(3)
      type(cell_t) :: res
      integer(int64) :: longer(3)

      longer = mod(grid, int(side, int64))
      res%points = grid/side + merge(1, 0, place < longer)
      res%start = place*(grid/side) + min(int(place, int64), longer)
   end function cell_at

   !> The index in all data, from 0, of the first value of a point; step, cell and point
   !> count from 1.
   pure function element_of(self, step, cell, point) result(res)
      class(partition_t), intent(in) :: self
      integer, intent(in) :: step, cell
      integer(int64), intent(in) :: point(3)
      integer(int64) :: res
      integer(int64) :: at(3)

      at = self%cells(cell)%start + point - 1
      associate (grid => self%grid)
         res = values_per_point*(at(1) + grid(1)*(at(2) + grid(2)*(at(3) + grid(3)*(step - 1))))
      end associate
   end function element_of

   !> The most points of any cell of this process along each axis.
   pure function most_points(self) result(res)
      class(partition_t), intent(in) :: self
      integer(int64) :: res(3)
      integer :: at

      res = 0_int64
      do at = 1, size(self%cells)
         res = max(res, self%cells(at)%points)
      end do
   end function most_points

   !> The number of values of this process in a step.
   pure function own_values(self) result(res)
      class(partition_t), intent(in) :: self
      integer(int64) :: res
      integer :: at

      res = 0_int64
      do at = 1, size(self%cells)
         res = res + values_per_point*product(self%cells(at)%points)
      end do
   end function own_values

   !> Bytes of a step in the file.
   pure function step_bytes(self) result(res)
      class(partition_t), intent(in) :: self
      integer(int64) :: res

      res = values_per_point*element_bytes*product(self%grid)
   end function step_bytes

end module benchio_btio_partition
