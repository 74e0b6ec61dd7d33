!> A non-blocking write of an MPI-IO file that is under way, until it is known to
!> be complete.
!>
!> In Open MPI (4.1.4) MPI_Test and MPI_Wait crash when a file's request has failed,
!> for they look for the error handler of a file that the request does not know.
!> MPI_Request_get_status only looks; that a request failed then shows in what it
!> moved, and such a one is never completed. MPICH in turn moves no data in
!> MPI_Request_get_status.
!>
!> Open MPI's ROMIO in turn crashes in all non-blocking collective calls (its issue
!> 9432). Whether it is in use cannot be found out in every case; where it was asked
!> for, benchio refuses.
module file_request
   use, intrinsic :: iso_fortran_env, only: int64
   use errors, only: error_t, fail, keep_first
   use mpi_checks, only: check
   use mpi_f08, only: MPI_Datatype, MPI_Get_library_version, MPI_MAX_LIBRARY_VERSION_STRING, &
                      MPI_Request, MPI_Request_get_status, MPI_REQUEST_NULL, MPI_Status, &
                      MPI_STATUS_IGNORE, MPI_Test, MPI_Wait
   use mpiio_file, only: mpiio_file_t
   implicit none(type, external)
   private

   public :: file_request_t

   type :: file_request_t
      !> What MPI's calls are given; null while nothing is under way.
      type(MPI_Request) :: handle = MPI_REQUEST_NULL
      !> The call that began it, and what it is to move.
      character(len=:), allocatable :: call_name
      type(MPI_Datatype) :: datatype
      integer(int64) :: elements = 0_int64, element_bytes = 0_int64
      logical, private :: only_looks = .false.
   contains
      procedure :: set_up
      procedure :: is_under_way
      procedure :: look
      procedure :: wait
   end type file_request_t

contains

   !> Readies it for calls of a name.
   subroutine set_up(self, call_name, error)
      class(file_request_t), intent(inout) :: self
      character(len=*), intent(in) :: call_name
      type(error_t), allocatable, intent(out) :: error
      character(len=MPI_MAX_LIBRARY_VERSION_STRING) :: library
      character(len=5) :: component
      integer :: length, ierr

      self%call_name = call_name

      call MPI_Get_library_version(library, length, ierr)
      call check(ierr, "MPI_Get_library_version", error)
      if (allocated(error)) return
      self%only_looks = index(library(:length), "Open MPI") == 1
      if (.not. self%only_looks) return
      call get_environment_variable("OMPI_MCA_io", component)
      if (component == "romio") call fail(error, call_name//" crashes in Open MPI's ROMIO; " &
                                          //"OMPI_MCA_io=ompio would do")
   end subroutine set_up

   pure function is_under_way(self) result(res)
      class(file_request_t), intent(in) :: self
      logical :: res

      res = self%handle%MPI_VAL /= MPI_REQUEST_NULL%MPI_VAL
   end function is_under_way

   !> Sees whether the write is complete, for which the library may move data. It is
   !> an error when it moved too little. After an error nothing is under way.
   subroutine look(self, file, error)
      class(file_request_t), intent(inout) :: self
      type(mpiio_file_t), intent(in) :: file
      type(error_t), allocatable, intent(out) :: error
      type(error_t), allocatable :: trouble
      type(MPI_Status) :: status
      logical :: is_complete
      integer :: ierr

      if (.not. self%is_under_way()) return
      if (self%only_looks) then
         call MPI_Request_get_status(self%handle, is_complete, status, ierr)
         call check(ierr, "MPI_Request_get_status for "//self%call_name//" of "//file%path, error)
      else
         call MPI_Test(self%handle, is_complete, status, ierr)
         call check(ierr, "MPI_Test for "//self%call_name//" of "//file%path, error)
      end if
      if (.not. (is_complete .or. allocated(error))) return
      if (.not. allocated(error)) then
         call file%check_moved(self%call_name, status, self%datatype, self%elements, &
                               self%element_bytes, error)
      end if
      if (self%only_looks .and. .not. allocated(error)) then
         call MPI_Wait(self%handle, MPI_STATUS_IGNORE, ierr)
         call check(ierr, "MPI_Wait for "//self%call_name//" of "//file%path, trouble)
         call keep_first(error, trouble)
      end if
      self%handle = MPI_REQUEST_NULL
   end subroutine look

   !> Waits for the write that is under way, where one is.
   subroutine wait(self, file, error)
      class(file_request_t), intent(inout) :: self
      type(mpiio_file_t), intent(in) :: file
      type(error_t), allocatable, intent(out) :: error

      do while (self%is_under_way() .and. .not. allocated(error))
         call self%look(file, error)
      end do
   end subroutine wait

end module file_request
