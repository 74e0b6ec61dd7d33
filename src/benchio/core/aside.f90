!> Work between the steps of a transfer that is not I/O, such as making the next
!> data or comparing the last. All processes begin and end it together, and the
!> clock of the phase leaves it out. Knows of no files.
module aside
   use, intrinsic :: iso_fortran_env, only: real64
   use errors, only: error_t
   use mpi_checks, only: check
   use mpi_f08, only: MPI_Barrier, MPI_Comm, MPI_Wtime
   implicit none(type, external)
   private

   public :: aside_t

   type :: aside_t
      !> What was spent aside since this was last 0.
      real(real64) :: seconds = 0.0_real64
      real(real64), private :: began = 0.0_real64
   contains
      procedure :: begin
      procedure :: finish
   end type aside_t

contains

   !> From here on the clock stands still; collective. Waiting for those whose
   !> I/O takes longer is part of the I/O.
   subroutine begin(self, comm, error)
      class(aside_t), intent(inout) :: self
      type(MPI_Comm), intent(in) :: comm
      type(error_t), allocatable, intent(out) :: error
      integer :: ierr

      call MPI_Barrier(comm, ierr)
      self%began = MPI_Wtime()
      call check(ierr, "MPI_Barrier", error)
   end subroutine begin

   !> The clock goes on; collective. Waiting for those whose work aside takes
   !> longer is none of the I/O.
   subroutine finish(self, comm, error)
      class(aside_t), intent(inout) :: self
      type(MPI_Comm), intent(in) :: comm
      type(error_t), allocatable, intent(out) :: error
      integer :: ierr

      call MPI_Barrier(comm, ierr)
      self%seconds = self%seconds + MPI_Wtime() - self%began
      call check(ierr, "MPI_Barrier", error)
   end subroutine finish

end module aside
