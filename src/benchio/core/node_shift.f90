!> The ranks that processes take to read what another node wrote (`--cache=shift`).
module benchio_node_shift
   use, intrinsic :: iso_fortran_env, only: int64
   use benchio_sorting, only: order_of
   implicit none(type, external)
   private

   public :: shifted_rank

contains

   !> The rank whose data a process reads. With the processes in the order of their nodes, the
   !> shift is the number of processes on the largest node. If no node has more than half of the
   !> processes, the rank is on another node. `nodes` lists the node of each rank, from 0.
   pure function shifted_rank(nodes, rank) result(res)
      integer, intent(in) :: nodes(0:), rank
      integer :: res
      integer(int64) :: order(size(nodes)), place
      integer :: sizes(minval(nodes):maxval(nodes)), at

      sizes = 0
      do at = 0, size(nodes) - 1
         sizes(nodes(at)) = sizes(nodes(at)) + 1
      end do
      order = order_of(int(nodes, int64)) - 1
      place = findloc(order, int(rank, int64), 1) - 1
      res = int(order(mod(place + maxval(sizes), size(nodes, kind=int64)) + 1))
   end function shifted_rank

end module benchio_node_shift
