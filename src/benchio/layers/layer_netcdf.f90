!> The layers netcdf and netcdf-independent: one shared netCDF-4 file with the whole array as a
!> contiguous variable, which all processes write and read by one collective or independent
!> call. netCDF uses parallel HDF5 and MPI-IO.
!>
!> The variable has the axes of the array in reverse order, since in C the last one varies
!> fastest. Memory: a copy of the block without its halo, since netCDF takes contiguous
!> data; the copying is measured, as an application must do it too. (nc_put_varm would accept
!> the halo, but moves one element at a time.)
module benchio_layer_netcdf
   use, intrinsic :: iso_c_binding, only: c_int, c_long_long, c_null_char, c_null_ptr, c_size_t
   use, intrinsic :: iso_fortran_env, only: int64
   use benchio_array_in_file, only: array_name, axis_names, check_shape
   use benchio_block_backend, only: block_backend_t
   use benchio_errors, only: error_t, fail
   use benchio_hdf5_mpi, only: dataset_start, finish_transfer, get_hints
   use benchio_mpi_checks, only: agree_to_proceed
   use benchio_mpi_hints, only: free_info, make_info
   use benchio_netcdf_api, only: check_netcdf, nc_clobber, nc_close, nc_collective, nc_contiguous, &
                                 nc_create_par_fortran, nc_def_dim, nc_def_var, &
                                 nc_def_var_chunking, nc_def_var_fill, nc_enddef, &
                                 nc_get_vara_longlong, nc_independent, nc_inq_dimlen, &
                                 nc_inq_vardimid, nc_inq_varid, nc_inq_varndims, nc_int64, &
                                 nc_netcdf4, nc_nowrite, nc_open_par_fortran, &
                                 nc_put_vara_longlong, nc_sync, nc_var_par_access
   use benchio_posix_path, only: library_path, remedy
   use benchio_team, only: team_t
   use benchio_text, only: to_text
   use mpi_f08, only: MPI_Comm, MPI_COMM_NULL, MPI_Info, MPI_INFO_NULL
   implicit none(type, external)
   private

   public :: netcdf_t

   type, extends(block_backend_t) :: netcdf_t
      private
      !> Whether the calls that move data are collective.
      logical, public :: collective = .true.
      type(MPI_Comm) :: comm = MPI_COMM_NULL
      type(MPI_Info) :: info = MPI_INFO_NULL
      integer(c_int) :: file = -1_c_int, variable = -1_c_int
      logical :: is_open = .false., is_ready = .false.
      !> The place of the block in the variable: in C's order, from 0.
      integer(c_size_t) :: starts(3) = 0_c_size_t, counts(3) = 0_c_size_t
      !> The block without its halo.
      integer(c_long_long), allocatable :: packed(:, :, :)
   contains
      procedure :: set_up
      procedure :: poison
      procedure :: open_file
      procedure :: move_data
      procedure :: sync
      procedure :: close_file
      procedure :: take_down
   end type netcdf_t

contains

   subroutine set_up(self, team, directory, error)
      class(netcdf_t), intent(inout) :: self
      type(team_t), intent(in) :: team
      character(len=*), intent(in) :: directory
      type(error_t), allocatable, intent(out) :: error
      integer :: status

      call self%plan_library_file(team, directory)
      ! nc_enddef and nc_close make HDF5 flush the file, which calls fsync.
      self%always_syncs = .true.
      self%comm = team%world
      associate (layout => self%block%layout, n => self%block%layout%block)
         self%starts = int(layout%start(3:1:-1), c_size_t)
         self%counts = int(n(3:1:-1), c_size_t)
         allocate (self%packed(n(1), n(2), n(3)), stat=status)
         if (status /= 0) then
            call fail(error, "no memory for a copy of a block of "//to_text(n(1))//" x " &
                      //to_text(n(2))//" x "//to_text(n(3))//" elements")
            return
         end if
      end associate
      ! Touched now, so that the page faults are not measured.
      self%packed = 0_c_long_long
      call make_info(self%hints_asked, self%path, self%info, error)
   end subroutine set_up

   subroutine poison(self)
      class(netcdf_t), intent(inout) :: self

      call self%block%poison()
      self%packed = 0_c_long_long
   end subroutine poison

   subroutine open_file(self, writing, error)
      class(netcdf_t), intent(inout) :: self
      logical, intent(in) :: writing
      type(error_t), allocatable, intent(out) :: error
      integer(c_int) :: status

      if (writing) then
         status = nc_create_par_fortran(library_path(self%path)//c_null_char, &
                                        ior(nc_clobber, nc_netcdf4), &
                                        int(self%comm%MPI_VAL, c_int), &
                                        int(self%info%MPI_VAL, c_int), self%file)
         call check_netcdf(status, "nc_create_par of "//self%path, error)
      else
         status = nc_open_par_fortran(library_path(self%path)//c_null_char, nc_nowrite, &
                                      int(self%comm%MPI_VAL, c_int), &
                                      int(self%info%MPI_VAL, c_int), self%file)
         call check_netcdf(status, "nc_open_par of "//self%path, error)
      end if
      if (allocated(error)) error%text = error%text//remedy(writing)
      ! Closing is collective too, so the processes that opened the file leave it open.
      call agree_to_proceed(self%comm, self%is_open, error)
      self%is_ready = self%is_open
      if (.not. self%is_open) return

      if (writing) then
         call define_array(self, error)
      else
         call find_array(self, error)
      end if
      call agree_to_proceed(self%comm, self%is_ready, error)
   end subroutine open_file

   !> Defines the array in the new file; collective, also after an error.
   subroutine define_array(self, error)
      class(netcdf_t), intent(inout) :: self
      type(error_t), allocatable, intent(out) :: error
      integer(c_int) :: axes(3), status
      integer :: axis

      do axis = 3, 1, -1
         status = nc_def_dim(self%file, axis_names(axis)//c_null_char, &
                             int(self%block%layout%whole(axis), c_size_t), axes(4 - axis))
         call check_netcdf(status, "nc_def_dim in "//self%path, error)
      end do
      status = nc_def_var(self%file, array_name//c_null_char, nc_int64, 3_c_int, axes, &
                          self%variable)
      call check_netcdf(status, "nc_def_var in "//self%path, error)
      status = nc_def_var_chunking(self%file, self%variable, nc_contiguous, c_null_ptr)
      call check_netcdf(status, "nc_def_var_chunking in "//self%path, error)
      ! No fill values are written before the data.
      status = nc_def_var_fill(self%file, self%variable, 1_c_int, c_null_ptr)
      call check_netcdf(status, "nc_def_var_fill in "//self%path, error)
      status = nc_enddef(self%file)
      call check_netcdf(status, "nc_enddef of "//self%path, error)
      if (.not. allocated(error)) call set_access(self, error)
   end subroutine define_array

   !> Finds the array in an existing file.
   subroutine find_array(self, error)
      class(netcdf_t), intent(inout) :: self
      type(error_t), allocatable, intent(out) :: error
      integer(c_size_t), allocatable :: found(:)
      integer(c_int), allocatable :: axes(:)
      integer(c_int) :: count, status
      integer :: axis

      status = nc_inq_varid(self%file, array_name//c_null_char, self%variable)
      call check_netcdf(status, "nc_inq_varid in "//self%path, error)
      if (allocated(error)) return
      status = nc_inq_varndims(self%file, self%variable, count)
      call check_netcdf(status, "nc_inq_varndims in "//self%path, error)
      if (allocated(error)) return
      allocate (axes(count), found(count))
      status = nc_inq_vardimid(self%file, self%variable, axes)
      call check_netcdf(status, "nc_inq_vardimid in "//self%path, error)
      if (allocated(error)) return
      do axis = 1, int(count)
         status = nc_inq_dimlen(self%file, axes(axis), found(axis))
         call check_netcdf(status, "nc_inq_dimlen in "//self%path, error)
         if (allocated(error)) return
      end do
      call check_shape(self%path, int(found(count:1:-1), int64), self%block%layout%whole, error)
      if (.not. allocated(error)) call set_access(self, error)
   end subroutine find_array

   subroutine set_access(self, error)
      class(netcdf_t), intent(in) :: self
      type(error_t), allocatable, intent(out) :: error
      integer(c_int) :: status

      status = nc_var_par_access(self%file, self%variable, &
                                 merge(nc_collective, nc_independent, self%collective))
      call check_netcdf(status, "nc_var_par_access of "//self%path, error)
   end subroutine set_access

   subroutine move_data(self, writing, error)
      class(netcdf_t), intent(inout) :: self
      logical, intent(in) :: writing
      type(error_t), allocatable, intent(out) :: error
      integer(c_int) :: status

      if (.not. self%is_ready) return
      associate (n => self%block%layout%block)
         if (writing) then
            self%packed(:, :, :) = self%block%cells(1:n(1), 1:n(2), 1:n(3))
            status = nc_put_vara_longlong(self%file, self%variable, self%starts, self%counts, &
                                          self%packed)
            call check_netcdf(status, "nc_put_vara of "//self%path, error)
         else
            status = nc_get_vara_longlong(self%file, self%variable, self%starts, self%counts, &
                                          self%packed)
            call check_netcdf(status, "nc_get_vara of "//self%path, error)
         end if
         call finish_transfer(self%comm, self%path, writing .and. self%owns_path, error)
         if (writing) return
         self%block%cells(1:n(1), 1:n(2), 1:n(3)) = self%packed
      end associate
      self%data_start = dataset_start(array_name)
      self%header_bytes = max(self%data_start, 0_int64)
   end subroutine move_data

   subroutine sync(self, error)
      class(netcdf_t), intent(inout) :: self
      type(error_t), allocatable, intent(out) :: error
      integer(c_int) :: status

      if (.not. self%is_open) return
      status = nc_sync(self%file)
      call check_netcdf(status, "nc_sync of "//self%path, error)
   end subroutine sync

   !> Only queries the info object of the hints; its content is read outside the phase.
   subroutine close_file(self, error)
      class(netcdf_t), intent(inout) :: self
      type(error_t), allocatable, intent(out) :: error
      integer(c_int) :: status

      if (.not. self%is_open) return
      call get_hints(self%path, self%outcome%info_used, error)
      self%hides_hints = self%outcome%info_used%MPI_VAL == MPI_INFO_NULL%MPI_VAL
      status = nc_close(self%file)
      call check_netcdf(status, "nc_close of "//self%path, error)
      self%is_open = .false.
   end subroutine close_file

   subroutine take_down(self, error)
      class(netcdf_t), intent(inout) :: self
      type(error_t), allocatable, intent(out) :: error

      call self%close_file(error)
      if (allocated(self%packed)) deallocate (self%packed)
      call free_info(self%info, error)
   end subroutine take_down

end module benchio_layer_netcdf
