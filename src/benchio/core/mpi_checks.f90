!> The status of MPI calls as errors. MPI's default is to abort, which leaves
!> files behind and names nothing; benchio has every call return its status.
module mpi_checks
   use errors, only: error_t, fail
   use mpi_f08, only: MPI_Error_string, MPI_MAX_ERROR_STRING, MPI_SUCCESS
   implicit none(type, external)
   private

   public :: check, mpi_text

contains

   !> Makes an error of the status of an MPI call. `what` names the call, and
   !> the path where there is one.
   subroutine check(status, what, error)
      integer, intent(in) :: status
      character(len=*), intent(in) :: what
      type(error_t), allocatable, intent(out) :: error

      if (status /= MPI_SUCCESS) call fail(error, what//" failed: "//mpi_text(status))
   end subroutine check

   !> What the MPI library says of an error code.
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

end module mpi_checks
