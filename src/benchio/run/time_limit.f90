!> The time limit of a run, --max-seconds. It is checked between phases, so that no phase is
!> cut off.
module benchio_time_limit
   use, intrinsic :: iso_fortran_env, only: real64
   use benchio_errors, only: error_t, fail, status_stopped
   use benchio_mpi_checks, only: check
   use benchio_team, only: team_t
   use benchio_text, only: decimal, to_text
   use mpi_f08, only: MPI_Bcast, MPI_LOGICAL, MPI_Wtime
   implicit none(type, external)
   private

   public :: time_limit_t

   type :: time_limit_t
      !> Whether the limit was reached.
      logical :: is_reached = .false.
      real(real64), private :: began = 0.0_real64, limit = 0.0_real64
   contains
      procedure :: start
      procedure :: check_phase
   end type time_limit_t

contains

   !> Starts a limit of this many seconds; 0 for none.
   subroutine start(self, limit)
      class(time_limit_t), intent(inout) :: self
      real(real64), intent(in) :: limit

      self%began = MPI_Wtime()
      self%limit = limit
   end subroutine start

   !> An error if the limit is reached before this phase, which the error then reports as not
   !> measured. Collective, by the clock of rank 0, with the same error on all processes.
   subroutine check_phase(self, team, operation, path, repeat, error)
      class(time_limit_t), intent(inout) :: self
      type(team_t), intent(in) :: team
      character(len=*), intent(in) :: operation, path
      integer, intent(in) :: repeat
      type(error_t), allocatable, intent(out) :: error
      integer :: ierr

      if (self%limit <= 0.0_real64) return
      self%is_reached = MPI_Wtime() - self%began >= self%limit
      call MPI_Bcast(self%is_reached, 1, MPI_LOGICAL, 0, team%world, ierr)
      call check(ierr, "MPI_Bcast", error)
      if (allocated(error) .or. .not. self%is_reached) return
      call fail(error, "stopped after "//decimal(self%limit)//" s (--max-seconds); not measured: " &
                //operation//" of "//path//", repeat "//to_text(repeat)//", and all later phases", &
                status_stopped)
   end subroutine check_phase

end module benchio_time_limit
