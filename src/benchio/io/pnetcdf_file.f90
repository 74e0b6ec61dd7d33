!> A file of PnetCDF's with one array, which several processes have open together.
!> What is moved, and by which calls, is for a layer to say.
module pnetcdf_file
   use, intrinsic :: iso_fortran_env, only: int64
   use errors, only: error_t, fail, keep_first
   use mpi_checks, only: check
   use mpi_f08, only: MPI_Comm, MPI_COMM_NULL, MPI_Info, MPI_Info_free, MPI_INFO_NULL, &
                      MPI_Info_set, MPI_OFFSET_KIND
   use mpi_hints, only: make_info
   use pnetcdf_api, only: nf_64bit_data, nf_clobber, nf_int64, nf_nofill, nf_nowrite, &
                          nfmpi_close, nfmpi_create, nfmpi_def_dim, nfmpi_def_var, &
                          nfmpi_enddef, nfmpi_inq_dimlen, nfmpi_inq_file_info, &
                          nfmpi_inq_vardimid, nfmpi_inq_varid, nfmpi_inq_varndims, &
                          nfmpi_inq_varoffset, nfmpi_open, nfmpi_set_fill, nfmpi_sync
   use pnetcdf_checks, only: check_pnetcdf
   use posix_file, only: library_path, read_remedy, write_remedy
   use shared_file, only: agree_to_go_on, array_name, axis_names, check_shape
   use task, only: hint_t
   implicit none(type, external)
   private

   public :: pnetcdf_file_t

   ! The length of an axis that grows.
   integer(MPI_OFFSET_KIND), parameter :: unlimited = 0_MPI_OFFSET_KIND

   type :: pnetcdf_file_t
      !> What the library's calls are given, while the file is open.
      integer :: file = -1, variable = -1
      !> What the axes are called, and whether the last one grows with what is written.
      character(len=8), allocatable :: axes(:)
      logical :: grows = .false.
      !> The byte where the array begins, once the file was opened.
      integer(int64) :: data_start = 0_int64
      !> Once the file was closed: the hints that the library said were in effect.
      type(MPI_Info) :: info_used = MPI_INFO_NULL
      character(len=:), allocatable, private :: path
      type(MPI_Comm), private :: comm = MPI_COMM_NULL
      type(MPI_Info), private :: info = MPI_INFO_NULL
      logical, private :: is_open = .false.
   contains
      procedure :: set_up
      procedure :: prefer
      procedure :: open_file
      procedure :: sync
      procedure :: close_file
      procedure :: take_down
   end type pnetcdf_file_t

contains

   !> Readies a file that the processes of `comm` will open. Of the hints those
   !> stay that are meant for this file.
   subroutine set_up(self, comm, path, hints, error)
      class(pnetcdf_file_t), intent(inout) :: self
      type(MPI_Comm), intent(in) :: comm
      character(len=*), intent(in) :: path
      type(hint_t), allocatable, intent(inout) :: hints(:)
      type(error_t), allocatable, intent(out) :: error

      self%comm = comm
      self%path = path
      if (index(path, ":") > 0) then
         call fail(error, "PnetCDF takes what is before a colon for the name of a file system: " &
                   //path)
         return
      end if
      if (.not. allocated(self%axes)) allocate (self%axes, source=[character(len=8) :: axis_names])
      call make_info(hints, path, self%info, error)
   end subroutine set_up

   !> Gives a hint that a layer would have, unless another value was asked for.
   subroutine prefer(self, hints, key, value, error)
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
   end subroutine prefer

   !> Makes a new file with an array of these lengths, or opens an old one for
   !> reading; collective. When `is_ready` is not set then, some process has an
   !> error, and no data are to be moved.
   subroutine open_file(self, writing, lengths, is_ready, error)
      class(pnetcdf_file_t), intent(inout) :: self
      logical, intent(in) :: writing
      integer(int64), intent(in) :: lengths(:)
      logical, intent(out) :: is_ready
      type(error_t), allocatable, intent(out) :: error
      integer :: status

      if (writing) then
 status = nfmpi_create(self%comm%MPI_VAL, library_path(self%path), ior(nf_clobber, nf_64bit_data), &
                               self%info%MPI_VAL, self%file)
         call check_pnetcdf(status, "ncmpi_create of "//self%path, error)
         if (allocated(error)) error%text = error%text//write_remedy
      else
    status = nfmpi_open(self%comm%MPI_VAL, library_path(self%path), nf_nowrite, self%info%MPI_VAL, &
                             self%file)
         call check_pnetcdf(status, "ncmpi_open of "//self%path, error)
         if (allocated(error)) error%text = error%text//read_remedy
      end if
      ! Closing is collective too, so a file that not all have stays open.
      call agree_to_go_on(self%comm, self%is_open, error)
      is_ready = self%is_open
      if (.not. is_ready) return

      if (writing) then
         call define(self, lengths, error)
      else
         call look_up(self, lengths, error)
      end if
      call agree_to_go_on(self%comm, is_ready, error)
   end subroutine open_file

   !> Says what is in the new file; collective.
   subroutine define(self, lengths, error)
      class(pnetcdf_file_t), intent(inout) :: self
      integer(int64), intent(in) :: lengths(:)
      type(error_t), allocatable, intent(out) :: error
      integer(MPI_OFFSET_KIND) :: length
      integer :: axes(size(lengths)), axis, old, status

      status = nfmpi_set_fill(self%file, nf_nofill, old)
      call check_pnetcdf(status, "ncmpi_set_fill of "//self%path, error)
      if (allocated(error)) return
      do axis = 1, size(lengths)
         length = int(lengths(axis), MPI_OFFSET_KIND)
         if (self%grows .and. axis == size(lengths)) length = unlimited
         status = nfmpi_def_dim(self%file, trim(self%axes(axis)), length, axes(axis))
         call check_pnetcdf(status, "ncmpi_def_dim of "//self%path, error)
         if (allocated(error)) return
      end do
      status = nfmpi_def_var(self%file, array_name, nf_int64, size(axes), axes, &
                             self%variable)
      call check_pnetcdf(status, "ncmpi_def_var of "//self%path, error)
      if (allocated(error)) return
      status = nfmpi_enddef(self%file)
      call check_pnetcdf(status, "ncmpi_enddef of "//self%path, error)
      if (.not. allocated(error)) call find_start(self, error)
   end subroutine define

   !> Finds the array in an old file.
   subroutine look_up(self, lengths, error)
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
   end subroutine look_up

   subroutine find_start(self, error)
      class(pnetcdf_file_t), intent(inout) :: self
      type(error_t), allocatable, intent(out) :: error
      integer(MPI_OFFSET_KIND) :: start
      integer :: status

      status = nfmpi_inq_varoffset(self%file, self%variable, start)
      call check_pnetcdf(status, "ncmpi_inq_varoffset in "//self%path, error)
      if (.not. allocated(error)) self%data_start = int(start, int64)
   end subroutine find_start

   !> Brings the data to the file system; collective.
   subroutine sync(self, error)
      class(pnetcdf_file_t), intent(in) :: self
      type(error_t), allocatable, intent(out) :: error
      integer :: status

      if (.not. self%is_open) return
      status = nfmpi_sync(self%file)
      call check_pnetcdf(status, "ncmpi_sync of "//self%path, error)
   end subroutine sync

   !> Closes the file where it is open; collective. What the library says of the
   !> hints is only fetched here, and read outside the clock.
   subroutine close_file(self, error)
      class(pnetcdf_file_t), intent(inout) :: self
      type(error_t), allocatable, intent(out) :: error
      type(error_t), allocatable :: trouble
      integer :: status

      if (.not. self%is_open) return
      status = nfmpi_inq_file_info(self%file, self%info_used%MPI_VAL)
      call check_pnetcdf(status, "ncmpi_inq_file_info of "//self%path, error)
      status = nfmpi_close(self%file)
      call check_pnetcdf(status, "ncmpi_close of "//self%path, trouble)
      call keep_first(error, trouble)
      self%is_open = .false.
   end subroutine close_file

   !> Gives back what set_up took, and closes the file where it is still open.
   subroutine take_down(self, error)
      class(pnetcdf_file_t), intent(inout) :: self
      type(error_t), allocatable, intent(out) :: error
      type(error_t), allocatable :: trouble
      integer :: ierr

      call self%close_file(error)
      if (self%info%MPI_VAL == MPI_INFO_NULL%MPI_VAL) return
      call MPI_Info_free(self%info, ierr)
      call check(ierr, "MPI_Info_free", trouble)
      call keep_first(error, trouble)
   end subroutine take_down

end module pnetcdf_file
