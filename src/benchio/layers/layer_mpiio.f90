!> The layers mpiio and mpiio-independent: one shared file with the whole array in Fortran
!> order, which all processes write and read through MPI-IO, by collective or independent
!> calls.
!>
!> Memory: none beside the MPI library's collective buffers. Each call moves one element of a
!> datatype that describes the block in memory and in the file, so that no count overflows
!> a default integer.
module layer_mpiio
   use errors, only: error_t
   use mpi_checks, only: check
   use mpi_f08, only: MPI_File_read, MPI_File_read_all, MPI_File_write, MPI_File_write_all, &
                      MPI_Status
   use mpiio_backend, only: mpiio_backend_t
   implicit none(type, external)
   private

   public :: mpiio_t

   type, extends(mpiio_backend_t) :: mpiio_t
      !> Whether the calls are collective.
      logical :: collective = .true.
   contains
      procedure :: write_data
      procedure :: read_data
   end type mpiio_t

contains

   subroutine write_data(self, error)
      class(mpiio_t), intent(inout) :: self
      type(error_t), allocatable, intent(out) :: error
      character(len=:), allocatable :: call_name
      type(MPI_Status) :: status
      integer :: ierr

      if (.not. self%file%is_open()) return
      call_name = trim(merge("MPI_File_write_all", "MPI_File_write    ", self%collective))
      call self%outcome%calls%times%begin()
      if (self%collective) then
         call MPI_File_write_all(self%file%handle, self%block%cells, 1, self%file%in_memory, &
                                 status, ierr)
      else
         call MPI_File_write(self%file%handle, self%block%cells, 1, self%file%in_memory, status, &
                             ierr)
      end if
      call check(ierr, call_name//" of "//self%path, error)
      call self%outcome%calls%times%finish()
      if (.not. allocated(error)) call self%check_block(call_name, status, error)
      call self%free_locks(error)
   end subroutine write_data

   subroutine read_data(self, error)
      class(mpiio_t), intent(inout) :: self
      type(error_t), allocatable, intent(out) :: error
      character(len=:), allocatable :: call_name
      type(MPI_Status) :: status
      integer :: ierr

      if (.not. self%file%is_open()) return
      call_name = trim(merge("MPI_File_read_all", "MPI_File_read    ", self%collective))
      call self%outcome%calls%times%begin()
      if (self%collective) then
         call MPI_File_read_all(self%file%handle, self%block%cells, 1, self%file%in_memory, &
                                status, ierr)
      else
         call MPI_File_read(self%file%handle, self%block%cells, 1, self%file%in_memory, status, &
                            ierr)
      end if
      call check(ierr, call_name//" of "//self%path, error)
      call self%outcome%calls%times%finish()
      if (.not. allocated(error)) call self%check_block(call_name, status, error)
   end subroutine read_data

end module layer_mpiio
