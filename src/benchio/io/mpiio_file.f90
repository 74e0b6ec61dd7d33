!> A file that several processes have open together through MPI-IO. The layers make the
!> calls that move data; all other calls are here.
module benchio_mpiio_file
   use, intrinsic :: iso_fortran_env, only: int64
   use benchio_datatypes, only: free_datatype
   use benchio_errors, only: error_t, fail
   use benchio_mpi_checks, only: agree_to_proceed, check
   use benchio_mpi_hints, only: free_info, make_info
   use benchio_posix_path, only: library_path, remedy
   use benchio_task, only: hint_t
   use benchio_text, only: to_text
   use mpi_f08, only: MPI_Comm, MPI_COMM_NULL, MPI_COUNT_KIND, MPI_Datatype, &
                      MPI_DATATYPE_NULL, MPI_ERRORS_RETURN, MPI_File, MPI_File_close, &
                      MPI_File_get_info, MPI_FILE_NULL, MPI_File_open, &
                      MPI_File_set_errhandler, MPI_File_set_view, MPI_File_sync, &
                      MPI_Get_elements_x, MPI_Info, MPI_INFO_NULL, &
                      MPI_INTEGER8, MPI_MODE_CREATE, MPI_MODE_EXCL, MPI_MODE_RDONLY, &
                      MPI_MODE_WRONLY, MPI_OFFSET_KIND, MPI_Status
   implicit none(type, external)
   private

   public :: mpiio_file_t

   type :: mpiio_file_t
      !> MPI's handle; null while the file is closed.
      type(MPI_File) :: handle = MPI_FILE_NULL
      character(len=:), allocatable :: path
      !> Datatypes of this process's data in memory and in the file; the latter is the view, which
      !> repeats it, unless it is null. take_down frees both.
      type(MPI_Datatype) :: in_memory = MPI_DATATYPE_NULL, in_file = MPI_DATATYPE_NULL
      !> The unit of offsets in the view.
      type(MPI_Datatype) :: unit = MPI_DATATYPE_NULL
      !> The hints in effect as the library reported them; set by close_file.
      type(MPI_Info) :: info_used = MPI_INFO_NULL
      type(MPI_Comm), private :: comm = MPI_COMM_NULL
      type(MPI_Info), private :: info = MPI_INFO_NULL
   contains
      procedure :: set_up
      procedure :: open_file
      procedure :: is_open
      procedure :: check_moved
      procedure :: sync
      procedure :: close_file
      procedure :: take_down
   end type mpiio_file_t

contains

   !> Prepares a file that the processes of `comm` will open. Removes the hints that do
   !> not apply to it.
   subroutine set_up(self, comm, path, hints, error)
      class(mpiio_file_t), intent(inout) :: self
      type(MPI_Comm), intent(in) :: comm
      character(len=*), intent(in) :: path
      type(hint_t), allocatable, intent(inout) :: hints(:)
      type(error_t), allocatable, intent(out) :: error
      integer :: ierr

      self%comm = comm
      self%unit = MPI_INTEGER8
      self%path = path
      ! Errors of MPI_File_open go to the handler of the null file.
      call MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_RETURN, ierr)
      call check(ierr, "MPI_File_set_errhandler", error)
      if (allocated(error)) return
      call make_info(hints, path, self%info, error)
   end subroutine set_up

   !> Opens the file, to create it or to read an existing one; collective. It counts as
   !> open only if all processes opened it: otherwise collective calls would hang.
   subroutine open_file(self, writing, error)
      class(mpiio_file_t), intent(inout) :: self
      logical, intent(in) :: writing
      type(error_t), allocatable, intent(out) :: error
      logical :: proceed
      integer :: mode, ierr

      mode = merge(ior(ior(MPI_MODE_CREATE, MPI_MODE_EXCL), MPI_MODE_WRONLY), MPI_MODE_RDONLY, &
                   writing)
      call MPI_File_open(self%comm, library_path(self%path), mode, self%info, self%handle, ierr)
      call check(ierr, "MPI_File_open of "//self%path, error)
      if (allocated(error)) error%text = error%text//remedy(writing)
      call agree_to_proceed(self%comm, proceed, error)
      if (.not. proceed) then
         ! Closing is collective too, so the processes that opened the file leave it open.
         self%handle = MPI_FILE_NULL
         return
      end if
      call MPI_File_set_errhandler(self%handle, MPI_ERRORS_RETURN, ierr)
      call check(ierr, "MPI_File_set_errhandler", error)
      if (allocated(error) .or. self%in_file%MPI_VAL == MPI_DATATYPE_NULL%MPI_VAL) return
      call MPI_File_set_view(self%handle, 0_MPI_OFFSET_KIND, self%unit, self%in_file, "native", &
                             self%info, ierr)
      call check(ierr, "MPI_File_set_view of "//self%path, error)
   end subroutine open_file

   pure function is_open(self) result(res)
      class(mpiio_file_t), intent(in) :: self
      logical :: res

      res = self%handle%MPI_VAL /= MPI_FILE_NULL%MPI_VAL
   end function is_open

   !> An error unless a call moved exactly `elements` basic elements of a datatype. MPI
   !> does not report fewer as a failure.
   subroutine check_moved(self, call_name, status, datatype, elements, element_bytes, error)
      class(mpiio_file_t), intent(in) :: self
      character(len=*), intent(in) :: call_name
      type(MPI_Status), intent(in) :: status
      type(MPI_Datatype), intent(in) :: datatype
      integer(int64), intent(in) :: elements, element_bytes
      type(error_t), allocatable, intent(out) :: error
      integer(MPI_COUNT_KIND) :: moved
      integer :: ierr

      call MPI_Get_elements_x(status, datatype, moved, ierr)
      call check(ierr, "MPI_Get_elements_x", error)
      if (allocated(error)) return
      if (moved == elements) return
      call fail(error, call_name//" of "//self%path//" failed: it moved " &
                //to_text(int(moved, int64)*element_bytes)//" of " &
                //to_text(elements*element_bytes)//" bytes")
      error%has_other_size = .true.
   end subroutine check_moved

   !> Flushes the data to the file system; collective.
   subroutine sync(self, error)
      class(mpiio_file_t), intent(in) :: self
      type(error_t), allocatable, intent(out) :: error
      integer :: ierr

      if (.not. self%is_open()) return
      call MPI_File_sync(self%handle, ierr)
      call check(ierr, "MPI_File_sync of "//self%path, error)
   end subroutine sync

   !> Closes the file if it is open; collective. Only queries the info object of the
   !> hints; its content is read outside the phase.
   subroutine close_file(self, error)
      class(mpiio_file_t), intent(inout) :: self
      type(error_t), allocatable, intent(out) :: error
      integer :: ierr

      if (.not. self%is_open()) return
      call MPI_File_get_info(self%handle, self%info_used, ierr)
      call check(ierr, "MPI_File_get_info of "//self%path, error)
      call MPI_File_close(self%handle, ierr)
      call check(ierr, "MPI_File_close of "//self%path, error)
      self%handle = MPI_FILE_NULL
   end subroutine close_file

   !> Undoes set_up, and closes the file if it is still open.
   subroutine take_down(self, error)
      class(mpiio_file_t), intent(inout) :: self
      type(error_t), allocatable, intent(out) :: error

      call self%close_file(error)
      call free_datatype(self%in_memory, error)
      call free_datatype(self%in_file, error)
      call free_info(self%info, error)
   end subroutine take_down

end module benchio_mpiio_file
