!> A non-blocking write through MPI-IO, until it is known to be complete.
!>
!> In Open MPI 4.1.4 MPI_Test and MPI_Wait crash on a failed file request: they look up an
!> error handler that the request does not have. There MPI_Request_get_status is used
!> first; the bytes moved show whether the request failed, and a failed one is never
!> completed. With MPICH, MPI_Request_get_status does not progress the data, so MPI_Test
!> is used.
!>
!> ROMIO in Open MPI crashes in all non-blocking collective calls (its issue 9432).
!> Whether ROMIO is in use cannot always be determined; benchio refuses if it was selected
!> by OMPI_MCA_io.
module benchio_file_request
   use, intrinsic :: iso_fortran_env, only: int64
   use benchio_errors, only: error_t, fail
   use benchio_mpi_checks, only: check
   use benchio_mpiio_file, only: mpiio_file_t
   use benchio_wait_limit, only: limit_wait
   use mpi_f08, only: MPI_Datatype, MPI_Get_library_version, MPI_MAX_LIBRARY_VERSION_STRING, &
                      MPI_Request, MPI_Request_get_status, MPI_REQUEST_NULL, MPI_Status, &
                      MPI_STATUS_IGNORE, MPI_Test, MPI_Wait
   implicit none(type, external)
   private

   public :: file_request_t

   !> The call that posts the write.
   character(len=*), parameter, public :: post_name = "MPI_File_iwrite_all"

   type :: file_request_t
      !> MPI's request; null if no write is pending.
      type(MPI_Request) :: handle = MPI_REQUEST_NULL
      !> The data that it moves.
      type(MPI_Datatype) :: datatype
      integer(int64) :: elements = 0_int64, element_bytes = 0_int64
      logical, private :: uses_get_status = .false.
   contains
      procedure :: set_up
      procedure :: is_pending
      procedure :: test
      procedure :: wait
   end type file_request_t

contains

   !> Determines what completes a write in this MPI library. An error where its ROMIO is selected.
   subroutine set_up(self, error)
      class(file_request_t), intent(inout) :: self
      type(error_t), allocatable, intent(out) :: error
      character(len=MPI_MAX_LIBRARY_VERSION_STRING) :: library
      character(len=5) :: component
      integer :: length, ierr

      call MPI_Get_library_version(library, length, ierr)
      call check(ierr, "MPI_Get_library_version", error)
      if (allocated(error)) return
      self%uses_get_status = index(library(:length), "Open MPI") == 1
      if (.not. self%uses_get_status) return
      call get_environment_variable("OMPI_MCA_io", component)
      if (component == "romio") call fail(error, post_name//" crashes in Open MPI's ROMIO; " &
                                          //"set OMPI_MCA_io=ompio")
   end subroutine set_up

   pure function is_pending(self) result(res)
      class(file_request_t), intent(in) :: self
      logical :: res

      res = self%handle%MPI_VAL /= MPI_REQUEST_NULL%MPI_VAL
   end function is_pending

   !> Tests whether the write is complete; the library may progress it meanwhile. A write that
   !> moved too little is an error. After an error no write is pending.
   subroutine test(self, file, error)
      class(file_request_t), intent(inout) :: self
      type(mpiio_file_t), intent(in) :: file
      type(error_t), allocatable, intent(out) :: error
      type(MPI_Status) :: status
      logical :: is_complete
      integer :: ierr

      if (.not. self%is_pending()) return
      if (self%uses_get_status) then
         call MPI_Request_get_status(self%handle, is_complete, status, ierr)
         call check(ierr, "MPI_Request_get_status for "//post_name//" of "//file%path, error)
      else
         call MPI_Test(self%handle, is_complete, status, ierr)
         call check(ierr, "MPI_Test for "//post_name//" of "//file%path, error)
      end if
      if (.not. (is_complete .or. allocated(error))) return
      if (.not. allocated(error)) then
         call file%check_moved(post_name, status, self%datatype, self%elements, &
                               self%element_bytes, error)
      end if
      call limit_wait(error)
      if (self%uses_get_status .and. .not. allocated(error)) then
         call MPI_Wait(self%handle, MPI_STATUS_IGNORE, ierr)
         call check(ierr, "MPI_Wait for "//post_name//" of "//file%path, error)
      end if
      self%handle = MPI_REQUEST_NULL
   end subroutine test

   !> Waits for the pending write, if there is one.
   subroutine wait(self, file, error)
      class(file_request_t), intent(inout) :: self
      type(mpiio_file_t), intent(in) :: file
      type(error_t), allocatable, intent(out) :: error

      do while (self%is_pending() .and. .not. allocated(error))
         call self%test(file, error)
      end do
   end subroutine wait

end module benchio_file_request
