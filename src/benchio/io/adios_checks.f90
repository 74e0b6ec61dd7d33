!> Turns the status of ADIOS2 calls into errors, and exchanges errors after a call from which
!> some process may never return.
module benchio_adios_checks
   use, intrinsic :: iso_c_binding, only: c_int
   use, intrinsic :: iso_fortran_env, only: error_unit, output_unit, real64
   use benchio_errors, only: error_t, fail, keep_first, status_failed
   use benchio_mpi_checks, only: check
   use benchio_posix_api, only: c_exit
   use benchio_team, only: team_t
   use benchio_text, only: to_text
   use mpi_f08, only: MPI_Abort, MPI_Iallreduce, MPI_INTEGER, MPI_MAX, MPI_Request, &
                      MPI_STATUS_IGNORE, MPI_SUCCESS, MPI_Test, MPI_Wtime
   implicit none(type, external)
   private

   public :: check_adios, agree_or_abort

   !> Seconds that a process with an error waits for the others.
   real(real64), parameter :: longest_wait = 10.0_real64

contains

   !> Turns the status of an ADIOS2 call into an error, unless there already is one. ADIOS2
   !> only prints the reason, on standard error.
   subroutine check_adios(status, what, error)
      integer, intent(in) :: status
      character(len=*), intent(in) :: what
      type(error_t), allocatable, intent(inout) :: error

      if (status == 0 .or. allocated(error)) return
      call fail(error, what//" failed: ADIOS2 returned "//to_text(status) &
                //"; it prints the reason itself, if any")
   end subroutine check_adios

   !> Sets `failed` if some process has an error; collective. Aborts the run if this
   !> process has one and the others do not arrive: they wait for it inside ADIOS2 and
   !> will never return.
   subroutine agree_or_abort(team, failed, error)
      type(team_t), intent(in) :: team
      logical, intent(out) :: failed
      type(error_t), allocatable, intent(inout) :: error
      type(error_t), allocatable :: trouble
      type(MPI_Request) :: request
      integer, asynchronous :: mine, worst
      real(real64) :: start, waited
      logical :: done
      integer :: ierr

      mine = merge(1, 0, allocated(error))
      worst = 1
      call MPI_Iallreduce(mine, worst, 1, MPI_INTEGER, MPI_MAX, team%world, request, ierr)
      call check(ierr, "MPI_Iallreduce", trouble)
      start = MPI_Wtime()
      done = .false.
      do while (.not. (done .or. allocated(trouble)))
         call MPI_Test(request, done, MPI_STATUS_IGNORE, ierr)
         call check(ierr, "MPI_Test", trouble)
         waited = MPI_Wtime() - start
         if (mine /= 0 .and. .not. done .and. waited > longest_wait) then
            call abort_run(team, error%text)
         end if
      end do
      failed = worst /= 0
      call keep_first(error, trouble)
   end subroutine agree_or_abort

   !> Prints the error of this process and ends all processes. Does not return.
   subroutine abort_run(team, message)
      type(team_t), intent(in) :: team
      character(len=*), intent(in) :: message
      integer :: ierr

      flush (output_unit)
      write (error_unit, "(a)") "benchio: "//team%speaker()//": "//message
      write (error_unit, "(a)") "benchio: the other processes wait for this one in a call that " &
         //"cannot end: the run is aborted, and its files stay"
      flush (error_unit)
      call MPI_Abort(team%world, status_failed, ierr)
      if (ierr /= MPI_SUCCESS) call c_exit(int(status_failed, c_int))
   end subroutine abort_run

end module benchio_adios_checks
