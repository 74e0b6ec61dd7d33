program test_node_shift
   use, intrinsic :: iso_fortran_env, only: int64
   use benchio_node_shift, only: shifted_rank
   use benchio_testing, only: expect, finish
   implicit none(type, external)

   ! By node the ranks are 0 3, 1 2.
   call expect_shift("two nodes of two", [0, 1, 1, 0], [1, 0, 3, 2])
   ! 0 1 2, 3 4 5.
   call expect_shift("node by node", [0, 0, 0, 1, 1, 1], [3, 4, 5, 0, 1, 2])
   ! 0 3, 1 4, 2 5.
   call expect_shift("round robin", [0, 1, 2, 0, 1, 2], [1, 2, 0, 4, 5, 3])
   ! 1 3 4, 0 5, 2: by three.
   call expect_shift("nodes of different sizes", [1, 0, 2, 0, 0, 1], [1, 0, 4, 5, 2, 3])
   ! 0 3 4, 1 2: by three, so that rank 4 stays on its node.
   call expect_shift("more than half on one node", [0, 1, 1, 0, 0], [1, 3, 4, 2, 0])
   call expect_shift("one node", [0, 0], [0, 1])
   call finish()

contains

   !> Expects that the ranks 0, 1, ... on these `nodes` take the ranks `taken`.
   subroutine expect_shift(what, nodes, taken)
      character(len=*), intent(in) :: what
      integer, intent(in) :: nodes(:), taken(:)
      integer :: rank

      call expect(what, [(int(shifted_rank(nodes, rank), int64), rank=0, size(nodes) - 1)], &
                  int(taken, int64))
   end subroutine expect_shift

end program test_node_shift
