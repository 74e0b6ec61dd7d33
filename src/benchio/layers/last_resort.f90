!> The end of a run whose processes can no longer come together: one has failed
!> inside a library, where the others wait for it and nothing reaches them. All
!> other errors are carried up to the main program.
module last_resort
   use, intrinsic :: iso_c_binding, only: c_int
   use, intrinsic :: iso_fortran_env, only: error_unit, output_unit
   use errors, only: status_failed
   use mpi_f08, only: MPI_Abort, MPI_SUCCESS
   use posix_api, only: c_exit
   use team, only: team_t
   use text, only: to_text
   implicit none(type, external)
   private

   public :: abandon_run

contains

   !> Says what happened to this process and ends all of them. Does not return.
   subroutine abandon_run(team, message)
      type(team_t), intent(in) :: team
      character(len=*), intent(in) :: message
      integer :: ierr

      flush (output_unit)
      write (error_unit, "(a)") "benchio: rank "//to_text(team%rank)//" on host "//team%host &
         //": "//message
      write (error_unit, "(a)") "benchio: the other processes wait for this one in a call that " &
         //"cannot end: the run is aborted, and its files stay"
      flush (error_unit)
      call MPI_Abort(team%world, status_failed, ierr)
      if (ierr /= MPI_SUCCESS) call c_exit(int(status_failed, c_int))
   end subroutine abandon_run

end module last_resort
