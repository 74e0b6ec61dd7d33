!> Work inside a phase that is not I/O, such as generating the next data or comparing
!> the last. All processes begin and end it together, and the phase's times exclude it.
module benchio_untimed
   use, intrinsic :: iso_fortran_env, only: real64
   use benchio_errors, only: error_t
   use benchio_mpi_checks, only: agree_to_proceed, check
   use mpi_f08, only: MPI_Barrier, MPI_Comm, MPI_Wtime
   implicit none(type, external)
   private

   public :: untimed_t

   type :: untimed_t
      !> Seconds of untimed work in the current phase.
      real(real64) :: seconds = 0.0_real64
      real(real64), private :: began = 0.0_real64
   contains
      procedure :: begin
      procedure :: finish
   end type untimed_t

contains

   !> Stops the clock; collective. The wait for the processes with the slowest I/O is
   !> part of the I/O. With `proceed`, the processes then agree whether to go on, as in
   !> agree_to_proceed.
   subroutine begin(self, comm, error, proceed, ready)
      class(untimed_t), intent(inout) :: self
      type(MPI_Comm), intent(in) :: comm
      type(error_t), allocatable, intent(inout) :: error
      logical, intent(out), optional :: proceed
      logical, intent(in), optional :: ready
      integer :: ierr

      call MPI_Barrier(comm, ierr)
      self%began = MPI_Wtime()
      call check(ierr, "MPI_Barrier", error)
      if (present(proceed)) call agree_to_proceed(comm, proceed, error, ready)
   end subroutine begin

   !> Starts the clock again; collective. The wait for the processes with the most
   !> untimed work is not part of the I/O.
   subroutine finish(self, comm, error)
      class(untimed_t), intent(inout) :: self
      type(MPI_Comm), intent(in) :: comm
      type(error_t), allocatable, intent(inout) :: error
      integer :: ierr

      call MPI_Barrier(comm, ierr)
      self%seconds = self%seconds + MPI_Wtime() - self%began
      call check(ierr, "MPI_Barrier", error)
   end subroutine finish

end module benchio_untimed
