!> The messages at the end of a simulation's time step: each process exchanges the faces of its
!> block with its neighbours along each axis, periodically, and all take part in a reduction.
module benchio_face_exchange
   use, intrinsic :: iso_fortran_env, only: int64
   use benchio_errors, only: error_t, fail, status_usage
   use benchio_layout, only: layout_t, rank_of
   use benchio_mpi_checks, only: check
   use benchio_team, only: team_t
   use benchio_text, only: to_text
   use mpi_f08, only: MPI_Allreduce, MPI_INTEGER8, MPI_MAX, MPI_Sendrecv, MPI_STATUS_IGNORE
   implicit none(type, external)
   private

   public :: face_exchange_t

   integer, parameter :: tag = 3

   type :: face_exchange_t
      private
      type(team_t) :: team
      !> Along each axis: the elements of a face, 0 without a neighbour, and the ranks before and
      !> after this one. Then the buffers: a face to send and one to receive.
      integer :: elements(3) = 0, before(3) = 0, after(3) = 0
      integer(int64), allocatable :: sent(:), received(:)
   contains
      procedure :: set_up
      procedure :: exchange
      procedure :: take_down
   end type face_exchange_t

contains

   !> Finds the neighbours, and allocates the memory for the faces.
   subroutine set_up(self, team, layout, error)
      class(face_exchange_t), intent(inout) :: self
      type(team_t), intent(in) :: team
      type(layout_t), intent(in) :: layout
      type(error_t), allocatable, intent(out) :: error
      integer(int64) :: elements
      integer :: at(3), axis, status

      self%team = team
      do axis = 1, 3
         if (layout%procs(axis) == 1) cycle
         elements = product(layout%block)/layout%block(axis)
         if (elements > huge(1)) then
            call fail(error, "--exchange: a face of "//to_text(elements)//" elements is too " &
                      //"large for a message", status_usage)
            return
         end if
         self%elements(axis) = int(elements)
         at = layout%coords
         at(axis) = modulo(layout%coords(axis) - 1, layout%procs(axis))
         self%before(axis) = rank_of(layout%procs, at)
         at(axis) = modulo(layout%coords(axis) + 1, layout%procs(axis))
         self%after(axis) = rank_of(layout%procs, at)
      end do
      allocate (self%sent(maxval(self%elements)), source=0_int64, stat=status)
      if (status == 0) allocate (self%received(size(self%sent)), source=0_int64, stat=status)
      if (status /= 0) call fail(error, "no memory for the faces of a block")
   end subroutine set_up

   subroutine exchange(self, error)
      class(face_exchange_t), intent(inout) :: self
      type(error_t), allocatable, intent(out) :: error
      integer(int64) :: mine, largest
      integer :: axis, ierr

      do axis = 1, 3
         associate (n => self%elements(axis), before => self%before(axis), &
                    after => self%after(axis))
            if (n == 0) cycle
            call MPI_Sendrecv(self%sent, n, MPI_INTEGER8, after, tag, self%received, n, &
                              MPI_INTEGER8, before, tag, self%team%world, MPI_STATUS_IGNORE, ierr)
            call check(ierr, "MPI_Sendrecv", error)
            call MPI_Sendrecv(self%sent, n, MPI_INTEGER8, before, tag, self%received, n, &
                              MPI_INTEGER8, after, tag, self%team%world, MPI_STATUS_IGNORE, ierr)
            call check(ierr, "MPI_Sendrecv", error)
         end associate
      end do
      mine = int(self%team%rank, int64)
      call MPI_Allreduce(mine, largest, 1, MPI_INTEGER8, MPI_MAX, self%team%world, ierr)
      call check(ierr, "MPI_Allreduce", error)
   end subroutine exchange

   subroutine take_down(self)
      class(face_exchange_t), intent(inout) :: self

      if (allocated(self%sent)) deallocate (self%sent)
      if (allocated(self%received)) deallocate (self%received)
   end subroutine take_down

end module benchio_face_exchange
