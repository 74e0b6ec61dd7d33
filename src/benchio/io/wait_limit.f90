!> Ends a run in which the processes would wait for one another without end. An I/O library's
!> collective call may return on one process as soon as its own part has failed, for example on a
!> full file system, while the others wait inside the call; and this process then waits in its next
!> collective call, of benchio or of the library. It cannot ask the others where they are, and an
!> agreement after each call would add to the measured time. So it sets an alarm, which the end of
!> the phase stops.
module benchio_wait_limit
   use, intrinsic :: iso_c_binding, only: c_funloc, c_int, c_null_char
   use benchio_errors, only: error_t, status_failed
   use benchio_posix_api, only: c_exit, shim_limit_wait, shim_start_limits
   use benchio_team, only: team_t
   use mpi_f08, only: MPI_Abort, MPI_COMM_WORLD, MPI_SUCCESS
   implicit none(type, external)
   private

   public :: start_limits, limit_wait

contains

   !> Begins a phase.
   subroutine start_limits(team)
      type(team_t), intent(in) :: team

      call shim_start_limits(team%speaker()//c_null_char, c_funloc(abort_run))
   end subroutine start_limits

   !> Limits the wait for the other processes after an error in a call that they take part in.
   subroutine limit_wait(error)
      type(error_t), allocatable, intent(in) :: error

      if (allocated(error)) call shim_limit_wait(error%text//c_null_char)
   end subroutine limit_wait

   !> Ends all processes. Does not return.
   subroutine abort_run() bind(c)
      integer :: ierr

      call MPI_Abort(MPI_COMM_WORLD, status_failed, ierr)
      if (ierr /= MPI_SUCCESS) call c_exit(int(status_failed, c_int))
   end subroutine abort_run

end module benchio_wait_limit
