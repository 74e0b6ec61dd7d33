!> A PnetCDF file with one array that several processes have open together. The layers
!> make the calls that move data; all other calls are here.
module benchio_pnetcdf_file
   use, intrinsic :: iso_fortran_env, only: int64
   use benchio_array_in_file, only: array_name, axis_names, check_shape
   use benchio_errors, only: error_t, fail
   use benchio_mpi_checks, only: agree_to_proceed, check
   use benchio_mpi_hints, only: free_info, make_info
   use benchio_pnetcdf_api, only: check_pnetcdf, nf_64bit_data, nf_int64, nf_noclobber, nf_nofill, &
                                  nf_nowrite, nfmpi_close, nfmpi_create, nfmpi_def_dim, &
                                  nfmpi_def_var, nfmpi_enddef, nfmpi_inq_dimlen, &
                                  nfmpi_inq_file_info, nfmpi_inq_vardimid, nfmpi_inq_varid, &
                                  nfmpi_inq_varndims, nfmpi_inq_varoffset, nfmpi_open, &
                                  nfmpi_set_fill, nfmpi_sync
   use benchio_posix_path, only: library_path, remedy
   use benchio_task, only: hint_t
   use mpi_f08, only: MPI_Comm, MPI_COMM_NULL, MPI_Info, MPI_INFO_NULL, &
                      MPI_Info_set, MPI_OFFSET_KIND
   implicit none(type, external)
   private

   public :: pnetcdf_file_t

   ! The length of an unlimited axis.
   integer(MPI_OFFSET_KIND), parameter :: unlimited = 0_MPI_OFFSET_KIND

   type :: pnetcdf_file_t
      !> The library's identifiers, while the file is open.
      integer :: file = -1, variable = -1
      !> The names of the axes, and whether the last one is unlimited.
      character(len=8), allocatable :: axes(:)
      logical :: is_unlimited = .false.
      !> The byte where the array begins; set by open_file.
      integer(int64) :: data_start = 0_int64
      !> The hints in effect as the library reported them; set by close_file.
      type(MPI_Info) :: info_used = MPI_INFO_NULL
      character(len=:), allocatable, private :: path
      type(MPI_Comm), private :: comm = MPI_COMM_NULL
      type(MPI_Info), private :: info = MPI_INFO_NULL
      logical, private :: is_open = .false.
   contains
      procedure :: set_up
      procedure :: set_default_hint
      procedure :: open_file
      procedure :: sync
      procedure :: close_file
      procedure :: take_down
   end type pnetcdf_file_t

contains

   !> Prepares a file that the processes of `comm` will open. Removes the hints that do
   !> not apply to it.
   subroutine set_up(self, comm, path, hints, error)
      class(pnetcdf_file_t), intent(inout) :: self
      type(MPI_Comm), intent(in) :: comm
      character(len=*), intent(in) :: path
      type(hint_t), allocatable, intent(inout) :: hints(:)
      type(error_t), allocatable, intent(out) :: error

      self%comm = comm
      self%path = path
      if (index(path, ":") > 0) then
         call fail(error, "PnetCDF takes the part before a colon for the name of a file system: " &
                   //path)
         return
      end if
      if (.not. allocated(self%axes)) allocate (self%axes, source=[character(len=8) :: axis_names])
      call make_info(hints, path, self%info, error)
   end subroutine set_up

   !> Sets a hint unless the user set the same one.
   subroutine set_default_hint(self, hints, key, value, error)
      class(pnetcdf_file_t), intent(in) :: self
      type(hint_t), intent(in) :: hints(:)
      character(len=*), intent(in) :: key, value
      type(error_t), allocatable, intent(out) :: error
      integer :: at, ierr

      do at = 1, size(hints)
         if (hints(at)%key == key) return
      end do
      call MPI_Info_set(self%info, key, value, ierr)
      call check(ierr, "MPI_Info_set of "//key, error)
   end subroutine set_default_hint

   !> Creates a file with an array of these lengths, or opens an existing one for reading;
   !> collective. If `is_ready` is false, some process has an error and no data may be
   !> moved.
   subroutine open_file(self, writing, lengths, is_ready, error)
      class(pnetcdf_file_t), intent(inout) :: self
      logical, intent(in) :: writing
      integer(int64), intent(in) :: lengths(:)
      logical, intent(out) :: is_ready
      type(error_t), allocatable, intent(out) :: error
      integer :: status

      if (writing) then
         status = nfmpi_create(self%comm%MPI_VAL, library_path(self%path), &
                               ior(nf_noclobber, nf_64bit_data), self%info%MPI_VAL, self%file)
         call check_pnetcdf(status, "ncmpi_create of "//self%path, error)
      else
         status = nfmpi_open(self%comm%MPI_VAL, library_path(self%path), nf_nowrite, &
                             self%info%MPI_VAL, self%file)
         call check_pnetcdf(status, "ncmpi_open of "//self%path, error)
      end if
      if (allocated(error)) error%text = error%text//remedy(writing)
      ! Closing is collective too, so the processes that opened the file leave it open.
      call agree_to_proceed(self%comm, self%is_open, error)
      is_ready = self%is_open
      if (.not. is_ready) return

      if (writing) then
         call define_array(self, lengths, error)
      else
         call find_array(self, lengths, error)
      end if
      call agree_to_proceed(self%comm, is_ready, error)
   end subroutine open_file

   !> Defines the array in the new file; collective, also after an error.
   subroutine define_array(self, lengths, error)
      class(pnetcdf_file_t), intent(inout) :: self
      integer(int64), intent(in) :: lengths(:)
      type(error_t), allocatable, intent(out) :: error
      integer(MPI_OFFSET_KIND) :: length
      integer :: axes(size(lengths)), axis, old, status

      status = nfmpi_set_fill(self%file, nf_nofill, old)
      call check_pnetcdf(status, "ncmpi_set_fill of "//self%path, error)
      do axis = 1, size(lengths)
         length = int(lengths(axis), MPI_OFFSET_KIND)
         if (self%is_unlimited .and. axis == size(lengths)) length = unlimited
         status = nfmpi_def_dim(self%file, trim(self%axes(axis)), length, axes(axis))
         call check_pnetcdf(status, "ncmpi_def_dim of "//self%path, error)
      end do
      status = nfmpi_def_var(self%file, array_name, nf_int64, size(axes), axes, &
                             self%variable)
      call check_pnetcdf(status, "ncmpi_def_var of "//self%path, error)
      status = nfmpi_enddef(self%file)
      call check_pnetcdf(status, "ncmpi_enddef of "//self%path, error)
      if (.not. allocated(error)) call find_start(self, error)
   end subroutine define_array

   !> Finds the array in an existing file.
   subroutine find_array(self, lengths, error)
      class(pnetcdf_file_t), intent(inout) :: self
      integer(int64), intent(in) :: lengths(:)
      type(error_t), allocatable, intent(out) :: error
      integer(MPI_OFFSET_KIND), allocatable :: found(:)
      integer, allocatable :: axes(:)
      integer :: axis, count, status

      status = nfmpi_inq_varid(self%file, array_name, self%variable)
      call check_pnetcdf(status, "ncmpi_inq_varid in "//self%path, error)
      if (allocated(error)) return
      status = nfmpi_inq_varndims(self%file, self%variable, count)
      call check_pnetcdf(status, "ncmpi_inq_varndims in "//self%path, error)
      if (allocated(error)) return
      allocate (axes(count), found(count))
      status = nfmpi_inq_vardimid(self%file, self%variable, axes)
      call check_pnetcdf(status, "ncmpi_inq_vardimid in "//self%path, error)
      if (allocated(error)) return
      do axis = 1, count
         status = nfmpi_inq_dimlen(self%file, axes(axis), found(axis))
         call check_pnetcdf(status, "ncmpi_inq_dimlen in "//self%path, error)
         if (allocated(error)) return
      end do
      call check_shape(self%path, int(found, int64), lengths, error)
      if (.not. allocated(error)) call find_start(self, error)
   end subroutine find_array

   subroutine find_start(self, error)
      class(pnetcdf_file_t), intent(inout) :: self
      type(error_t), allocatable, intent(out) :: error
      integer(MPI_OFFSET_KIND) :: start
      integer :: status

      status = nfmpi_inq_varoffset(self%file, self%variable, start)
      call check_pnetcdf(status, "ncmpi_inq_varoffset in "//self%path, error)
      if (.not. allocated(error)) self%data_start = int(start, int64)
   end subroutine find_start

   !> Flushes the data to the file system; collective.
   subroutine sync(self, error)
      class(pnetcdf_file_t), intent(in) :: self
      type(error_t), allocatable, intent(out) :: error
      integer :: status

      if (.not. self%is_open) return
      status = nfmpi_sync(self%file)
      call check_pnetcdf(status, "ncmpi_sync of "//self%path, error)
   end subroutine sync

   !> Closes the file if it is open; collective. Only queries the info object of the
   !> hints; its content is read outside the phase.
   subroutine close_file(self, error)
      class(pnetcdf_file_t), intent(inout) :: self
      type(error_t), allocatable, intent(out) :: error
      integer :: status

      if (.not. self%is_open) return
      status = nfmpi_inq_file_info(self%file, self%info_used%MPI_VAL)
      call check_pnetcdf(status, "ncmpi_inq_file_info of "//self%path, error)
      status = nfmpi_close(self%file)
      call check_pnetcdf(status, "ncmpi_close of "//self%path, error)
      self%is_open = .false.
   end subroutine close_file

   !> Undoes set_up, and closes the file if it is still open.
   subroutine take_down(self, error)
      class(pnetcdf_file_t), intent(inout) :: self
      type(error_t), allocatable, intent(out) :: error

      call self%close_file(error)
      call free_info(self%info, error)
   end subroutine take_down

end module benchio_pnetcdf_file
