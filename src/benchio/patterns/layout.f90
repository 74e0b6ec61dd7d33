!> The division of the global array into one block per process: pure arithmetic in 64 bits.
module benchio_layout
   use, intrinsic :: iso_fortran_env, only: int64
   use benchio_errors, only: error_t, fail, status_usage
   use benchio_text, only: to_text
   implicit none(type, external)
   private

   public :: layout_t, make_layout, coords_of, rank_of

   !> Bytes of an element.
   integer(int64), parameter, public :: element_bytes = 8_int64

   ! MPI takes the length of an axis as a default integer, and by default a block has a halo.
   integer(int64), parameter :: longest_axis = int(huge(1) - 2, int64)

   ! The bytes of more elements would not fit 64 bits.
   integer(int64), parameter :: most_elements = shiftr(huge(1_int64), 3)

   type :: layout_t
      !> Processes along each axis.
      integer :: procs(3) = 1
      !> The coordinates of this process among them, from 0.
      integer :: coords(3) = 0
      !> Elements of a block along each axis, without halo.
      integer(int64) :: block(3) = 0_int64
      !> Elements of the whole array along each axis.
      integer(int64) :: whole(3) = 0_int64
      !> Elements of the whole array before the block along each axis.
      integer(int64) :: start(3) = 0_int64
   contains
      procedure :: global_index
      procedure :: index_in_block
      procedure :: block_elements
      procedure :: whole_elements
   end type layout_t

contains

   !> Cuts an array for process `rank` of a grid of `procs` processes. `sizes` describe the
   !> whole array if `is_global`, else a block. Sizes that cannot be cut evenly or addressed
   !> are a usage error.
   pure subroutine make_layout(sizes, is_global, procs, rank, res, error)
      integer(int64), intent(in) :: sizes(3)
      logical, intent(in) :: is_global
      integer, intent(in) :: procs(3), rank
      type(layout_t), intent(out) :: res
      type(error_t), allocatable, intent(out) :: error
      integer :: axis

      res%procs = procs
      res%coords = coords_of(procs, rank)
      do axis = 1, 3
         if (is_global) then
            call check_divides(axis, sizes(axis), procs(axis), error)
            if (allocated(error)) return
            res%block(axis) = sizes(axis)/procs(axis)
         else
            res%block(axis) = sizes(axis)
         end if
         if (res%block(axis) > longest_axis/procs(axis)) then
            call fail(error, "N"//to_text(axis)//"="//to_text(sizes(axis))//" is too large: " &
                      //"an axis of the whole array holds at most " &
                      //to_text(longest_axis)//" elements", status_usage)
            return
         end if
         res%whole(axis) = res%block(axis)*procs(axis)
      end do
      res%start = res%coords*res%block
      call check_total(res%whole, error)
   end subroutine make_layout

   !> The coordinates of process `rank` in the grid: the last axis varies fastest, as in
   !> MPI's Cartesian topologies.
   pure function coords_of(procs, rank) result(res)
      integer, intent(in) :: procs(3), rank
      integer :: res(3)

      res(3) = mod(rank, procs(3))
      res(2) = mod(rank/procs(3), procs(2))
      res(1) = rank/(procs(3)*procs(2))
   end function coords_of

   !> The process with these coordinates, from 0: the inverse of `coords_of`.
   pure function rank_of(procs, coords) result(res)
      integer, intent(in) :: procs(3), coords(3)
      integer :: res

      res = coords(3) + procs(3)*(coords(2) + procs(2)*coords(1))
   end function rank_of

   !> The 0-based index in the whole array, in Fortran order, of the element
   !> (i, j, k) of this process's block, counted from 1.
   pure function global_index(self, i, j, k) result(res)
      class(layout_t), intent(in) :: self
      integer(int64), intent(in) :: i, j, k
      integer(int64) :: res

      associate (start => self%start)
         res = start(1) + i - 1 &
               + self%whole(1)*(start(2) + j - 1 + self%whole(2)*(start(3) + k - 1))
      end associate
   end function global_index

   !> The 0-based index in this process's block of the element with index `global` in the array.
   pure function index_in_block(self, global) result(res)
      class(layout_t), intent(in) :: self
      integer(int64), intent(in) :: global
      integer(int64) :: res
      integer(int64) :: at(3)

      associate (n => self%whole)
         at = [mod(global, n(1)), mod(global/n(1), n(2)), global/n(1)/n(2)] - self%start
      end associate
      res = at(1) + self%block(1)*(at(2) + self%block(2)*at(3))
   end function index_in_block

   !> Elements of a block, without halo.
   pure function block_elements(self) result(res)
      class(layout_t), intent(in) :: self
      integer(int64) :: res

      res = product(self%block)
   end function block_elements

   !> Elements of the whole array.
   pure function whole_elements(self) result(res)
      class(layout_t), intent(in) :: self
      integer(int64) :: res

      res = product(self%whole)
   end function whole_elements

   pure subroutine check_divides(axis, length, parts, error)
      integer, intent(in) :: axis, parts
      integer(int64), intent(in) :: length
      type(error_t), allocatable, intent(out) :: error
      integer(int64) :: below
      character(len=:), allocatable :: advice

      if (mod(length, int(parts, int64)) == 0) return
      below = length - mod(length, int(parts, int64))
      advice = to_text(parts)
      if (below > 0) then
         advice = to_text(below)
         if (below <= longest_axis - parts) advice = advice//" or "//to_text(below + parts)
      end if
      call fail(error, "N"//to_text(axis)//"="//to_text(length)//" cannot be divided among the " &
                //to_text(parts)//" processes on axis "//to_text(axis)//"; use "//advice, &
                status_usage)
   end subroutine check_divides

   !> An error if the bytes of the whole array do not fit 64 bits.
   pure subroutine check_total(whole, error)
      integer(int64), intent(in) :: whole(3)
      type(error_t), allocatable, intent(out) :: error

      if (whole(1) <= most_elements/whole(2)/whole(3)) return
      call fail(error, "an array of "//to_text(whole(1))//" x "//to_text(whole(2))//" x " &
                //to_text(whole(3))//" elements of "//to_text(element_bytes) &
                //" bytes is too large: its bytes cannot be counted in 64 bits", status_usage)
   end subroutine check_total

end module benchio_layout
