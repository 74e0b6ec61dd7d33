!> The time that a run may take. It is looked at between phases, so that nothing
!> is cut off that has begun.
module stop_watch
   use, intrinsic :: iso_fortran_env, only: real64
   use errors, only: error_t, fail, status_stopped
   use mpi_checks, only: check
   use mpi_f08, only: MPI_Bcast, MPI_LOGICAL, MPI_Wtime
   use team, only: team_t
   use text, only: decimal, to_text
   implicit none(type, external)
   private

   public :: stop_watch_t

   type :: stop_watch_t
      !> Whether the time was found to be up.
      logical :: has_stopped = .false.
      real(real64), private :: began = 0.0_real64, limit = 0.0_real64
   contains
      procedure :: start
      procedure :: look
   end type stop_watch_t

contains

   !> From now on the run may take `limit` seconds; for ever when that is 0.
   subroutine start(self, limit)
      class(stop_watch_t), intent(inout) :: self
      real(real64), intent(in) :: limit

      self%began = MPI_Wtime()
      self%limit = limit
   end subroutine start

   !> An error when the time is up before this phase, which it then names as not
   !> measured; collective, with rank 0's clock, and so is its error.
   subroutine look(self, team, operation, path, repeat, error)
      class(stop_watch_t), intent(inout) :: self
      type(team_t), intent(in) :: team
      character(len=*), intent(in) :: operation, path
      integer, intent(in) :: repeat
      type(error_t), allocatable, intent(out) :: error
      integer :: ierr

      if (self%limit <= 0.0_real64) return
      self%has_stopped = MPI_Wtime() - self%began >= self%limit
      call MPI_Bcast(self%has_stopped, 1, MPI_LOGICAL, 0, team%world, ierr)
      call check(ierr, "MPI_Bcast", error)
      if (allocated(error) .or. .not. self%has_stopped) return
      call fail(error, "stopped after "//decimal(self%limit)//" s, as --max-seconds asks; not " &
                //"measured: "//operation//" of "//path//", repeat "//to_text(repeat) &
                //", and what follows", &
                status_stopped)
   end subroutine look

end module stop_watch
