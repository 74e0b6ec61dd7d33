!> The layers mpiio and mpiio-independent: one shared file in Fortran order of the
!> whole array, which all processes write and read through MPI-IO, together by
!> collective calls or each for itself by independent ones.
!>
!> Memory: none of its own; the MPI library's collective buffers come on top.
!> Each call moves one element of a datatype that describes the block, in memory
!> and in the file, so no count ever passes what an integer holds.
module layer_mpiio
   use, intrinsic :: iso_fortran_env, only: int64
   use backend, only: path_in
   use block_backend, only: block_backend_t
   use datatypes, only: free_datatype, make_section
   use errors, only: error_t, keep_first
   use layout, only: element_bytes
   use mpi_checks, only: check
   use mpi_f08, only: MPI_Datatype, MPI_DATATYPE_NULL, MPI_File_read, MPI_File_read_all, &
                      MPI_File_write, MPI_File_write_all, MPI_INTEGER8, MPI_Status
   use mpiio_file, only: mpiio_file_t
   use posix_file, only: release_locks
   use team, only: team_t
   implicit none(type, external)
   private

   public :: mpiio_t

   type, extends(block_backend_t) :: mpiio_t
      !> Whether the calls are collective.
      logical :: collective = .true.
      type(mpiio_file_t), private :: file
      !> The block in memory, inside its halo, and in the file.
      type(MPI_Datatype), private :: in_memory = MPI_DATATYPE_NULL
      type(MPI_Datatype), private :: in_file = MPI_DATATYPE_NULL
   contains
      procedure :: set_up
      procedure :: open_file
      procedure :: write_data
      procedure :: read_data
      procedure :: sync
      procedure :: close_file
      procedure :: take_down
   end type mpiio_t

contains

   subroutine set_up(self, team, directory, error)
      class(mpiio_t), intent(inout) :: self
      type(team_t), intent(in) :: team
      character(len=*), intent(in) :: directory
      type(error_t), allocatable, intent(out) :: error

      self%path = path_in(directory, self%name)
      self%first_path = self%path
      self%path_bytes = self%total_bytes
      self%is_whole = .true.
      self%owns_path = team%rank == 0
      self%tends_cache = team%node_rank == 0
      ! The system's own text says more than MPI's, and MPICH 4.0 may crash when
      ! MPI_File_open fails: its Fortran binding uses the handle all the same.
      self%tries_first = team%rank == 0
      self%uses_hints = .true.

      associate (layout => self%block%layout)
         call make_section(layout%block + 2, layout%block, [1_int64, 1_int64, 1_int64], &
                           self%in_memory, error)
         if (allocated(error)) return
         call make_section(layout%whole, layout%block, layout%start, self%in_file, error)
         if (allocated(error)) return
      end associate
      call self%file%set_up(team%world, self%path, self%hints_asked, error)
   end subroutine set_up

   subroutine open_file(self, writing, error)
      class(mpiio_t), intent(inout) :: self
      logical, intent(in) :: writing
      type(error_t), allocatable, intent(out) :: error

      call self%file%open_file(writing, error)
      if (.not. self%file%is_open() .or. allocated(error)) return
      call self%file%show(0_int64, MPI_INTEGER8, self%in_file, error)
   end subroutine open_file

   subroutine write_data(self, error)
      class(mpiio_t), intent(inout) :: self
      type(error_t), allocatable, intent(out) :: error
      type(error_t), allocatable :: trouble
      character(len=:), allocatable :: call_name
      type(MPI_Status) :: status
      integer :: ierr

      if (.not. self%file%is_open()) return
      call_name = trim(merge("MPI_File_write_all", "MPI_File_write    ", self%collective))
      if (self%collective) then
         call MPI_File_write_all(self%file%handle, self%block%cells, 1, self%in_memory, status, &
                                 ierr)
      else
         call MPI_File_write(self%file%handle, self%block%cells, 1, self%in_memory, status, ierr)
      end if
      call check(ierr, call_name//" of "//self%path, error)
      if (.not. allocated(error)) call check_block(self, call_name, status, error)
      if (allocated(error)) call release_locks(self%path, trouble)
   end subroutine write_data

   subroutine read_data(self, error)
      class(mpiio_t), intent(inout) :: self
      type(error_t), allocatable, intent(out) :: error
      character(len=:), allocatable :: call_name
      type(MPI_Status) :: status
      integer :: ierr

      if (.not. self%file%is_open()) return
      call_name = trim(merge("MPI_File_read_all", "MPI_File_read    ", self%collective))
      if (self%collective) then
         call MPI_File_read_all(self%file%handle, self%block%cells, 1, self%in_memory, status, &
                                ierr)
      else
         call MPI_File_read(self%file%handle, self%block%cells, 1, self%in_memory, status, ierr)
      end if
      call check(ierr, call_name//" of "//self%path, error)
      if (.not. allocated(error)) call check_block(self, call_name, status, error)
   end subroutine read_data

   subroutine check_block(self, call_name, status, error)
      class(mpiio_t), intent(in) :: self
      character(len=*), intent(in) :: call_name
      type(MPI_Status), intent(in) :: status
      type(error_t), allocatable, intent(out) :: error

      call self%file%check_moved(call_name, status, self%in_memory, &
                                 self%block%layout%block_elements(), element_bytes, error)
   end subroutine check_block

   subroutine sync(self, error)
      class(mpiio_t), intent(inout) :: self
      type(error_t), allocatable, intent(out) :: error

      call self%file%sync(error)
   end subroutine sync

   subroutine close_file(self, error)
      class(mpiio_t), intent(inout) :: self
      type(error_t), allocatable, intent(out) :: error

      call self%file%close_file(error)
      self%info_used = self%file%info_used
   end subroutine close_file

   subroutine take_down(self, error)
      class(mpiio_t), intent(inout) :: self
      type(error_t), allocatable, intent(out) :: error
      type(error_t), allocatable :: trouble

      call self%file%take_down(error)
      call free_datatype(self%in_memory, trouble)
      call keep_first(error, trouble)
      call free_datatype(self%in_file, trouble)
      call keep_first(error, trouble)
   end subroutine take_down

end module layer_mpiio
