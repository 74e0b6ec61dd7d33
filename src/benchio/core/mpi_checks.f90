!> Turns the status of MPI calls into errors. By default MPI aborts on an error, leaves files behind
!> and does not say what failed; in benchio every call returns its status.
module benchio_mpi_checks
   use benchio_errors, only: error_t, fail
   use mpi_f08, only: MPI_Allreduce, MPI_Comm, MPI_Error_string, MPI_IN_PLACE, MPI_LAND, &
                      MPI_LOGICAL, MPI_MAX_ERROR_STRING, MPI_SUCCESS
   implicit none(type, external)
   private

   public :: check, mpi_text, agree_to_proceed

contains

   !> Turns the status of an MPI call into an error, unless there already is one. `what`
   !> names the call, and the path if there is one.
   subroutine check(status, what, error)
      integer, intent(in) :: status
      character(len=*), intent(in) :: what
      type(error_t), allocatable, intent(inout) :: error

      if (status == MPI_SUCCESS .or. allocated(error)) return
      call fail(error, what//" failed: "//mpi_text(status))
   end subroutine check

   !> The MPI library's text for an error code.
   function mpi_text(status) result(res)
      integer, intent(in) :: status
      character(len=:), allocatable :: res
      character(len=MPI_MAX_ERROR_STRING) :: buffer
      integer :: length, ierr

      call MPI_Error_string(status, buffer, length, ierr)
      if (ierr == MPI_SUCCESS) then
         res = trim(buffer(:length))
      else
         res = "an error without a text"
      end if
   end function mpi_text

   !> Sets `proceed` if no process of `comm` has an error and all are `ready`;
   !> collective. After a failed open, for example, the other processes must not enter
   !> collective calls that would never return.
   subroutine agree_to_proceed(comm, proceed, error, ready)
      type(MPI_Comm), intent(in) :: comm
      logical, intent(out) :: proceed
      type(error_t), allocatable, intent(inout) :: error
      logical, intent(in), optional :: ready
      integer :: ierr

      proceed = .not. allocated(error)
      if (present(ready)) proceed = proceed .and. ready
      call MPI_Allreduce(MPI_IN_PLACE, proceed, 1, MPI_LOGICAL, MPI_LAND, comm, ierr)
      call check(ierr, "MPI_Allreduce", error)
      if (allocated(error)) proceed = .false.
   end subroutine agree_to_proceed

end module benchio_mpi_checks
