!> The division of a grid of processes into groups: pure arithmetic in 64 bits.
module benchio_grouping
   use, intrinsic :: iso_fortran_env, only: int64
   use benchio_errors, only: error_t, fail, status_usage
   use benchio_layout, only: layout_t
   use benchio_text, only: to_text
   implicit none(type, external)
   private

   public :: find_group, find_grid

contains

   !> The number of a process's group, from 0, and the box of that group. Computes in 64 bits: the
   !> product of processes and groups may not fit in 31.
   pure subroutine find_group(layout, writers, group, box, error)
      type(layout_t), intent(in) :: layout
      integer, intent(in) :: writers
      integer, intent(out) :: group
      type(layout_t), intent(out) :: box
      type(error_t), allocatable, intent(out) :: error
      integer(int64) :: procs(3), place(3), first(3), past(3)
      integer :: grid(3)

      call find_grid(layout%procs, writers, grid, error)
      if (allocated(error)) return
      procs = layout%procs
      place = layout%coords*int(grid, int64)/procs
      first = (place*procs + grid - 1)/grid
      past = ((place + 1)*procs + grid - 1)/grid
      group = int(place(3) + grid(3)*(place(2) + grid(2)*place(1)))
      box = layout
      box%start = first*layout%block
      box%block = (past - first)*layout%block
   end subroutine find_group

   !> The number of groups along each axis: as many as possible along the last, which makes
   !> the box of a group the longest contiguous part of the file.
   pure subroutine find_grid(procs, groups, res, error)
      integer, intent(in) :: procs(3), groups
      integer, intent(out) :: res(3)
      type(error_t), allocatable, intent(out) :: error
      integer :: second, third

      do third = min(procs(3), groups), 1, -1
         if (mod(groups, third) /= 0) cycle
         do second = min(procs(2), groups/third), 1, -1
            if (mod(groups/third, second) /= 0) cycle
            res = [groups/third/second, second, third]
            if (res(1) <= procs(1)) return
         end do
      end do
      if (groups > product(procs)) then
         call fail(error, "is more than the "//to_text(product(procs))//" processes", status_usage)
         return
      end if
      call fail(error, "does not fit a grid of "//to_text(procs(1))//" x "//to_text(procs(2)) &
                //" x "//to_text(procs(3))//" processes; --decomposition=slab allows any number", &
                status_usage)
   end subroutine find_grid

end module benchio_grouping
