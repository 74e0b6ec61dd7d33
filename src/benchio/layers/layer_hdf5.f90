!> The layers hdf5 and hdf5-independent: one shared HDF5 file with the whole array as a
!> contiguous dataset, in Fortran order, which all processes write and read by one collective
!> or independent call of parallel HDF5 on MPI-IO.
!>
!> Memory: none beside the MPI library's collective buffers. HDF5 takes the block inside its
!> halo and passes it to MPI-IO as a datatype, without a copy. The elements are little-endian
!> 8-byte integers; on little-endian processors nothing is converted.
module benchio_layer_hdf5
   use, intrinsic :: iso_c_binding, only: c_int, c_loc, c_ptr
   use, intrinsic :: iso_fortran_env, only: int64
   use benchio_array_in_file, only: array_name, check_shape
   use benchio_block_backend, only: block_backend_t
   use benchio_errors, only: error_t, fail
   use benchio_hdf5_api, only: c_H5Pget_mpio_no_collective_cause
   use benchio_hdf5_checks, only: check_hdf5, start_hdf5
   use benchio_hdf5_mpi, only: dataset_start, finish_transfer, get_hints
   use benchio_mpi_checks, only: agree_to_proceed
   use benchio_mpi_hints, only: free_info, make_info
   use benchio_posix_path, only: library_path, remedy
   use benchio_team, only: team_t
   use benchio_text, only: to_text
   use hdf5, only: H5_INTEGER_KIND, h5dclose_f, h5dcreate_f, H5D_ALLOC_TIME_EARLY_F, &
                   H5D_CONTIGUOUS_F, H5D_FILL_TIME_NEVER_F, h5dget_space_f, &
                   H5D_MPIO_CONTIG_COLLECTIVE_F, h5dopen_f, h5dread_f, h5dwrite_f, H5F_ACC_EXCL_F, &
                   H5F_ACC_RDONLY_F, H5F_CLOSE_STRONG_F, h5fclose_f, h5fcreate_f, &
                   H5FD_MPIO_COLLECTIVE_F, h5fflush_f, h5fopen_f, H5F_SCOPE_GLOBAL_F, &
                   H5FD_MPIO_INDEPENDENT_F, h5kind_to_type, h5pclose_f, h5pcreate_f, &
                   H5P_DATASET_CREATE_F, H5P_DATASET_XFER_F, H5P_FILE_ACCESS_F, &
                   h5pget_mpio_actual_io_mode_f, h5pset_all_coll_metadata_ops_f, &
                   h5pset_alloc_time_f, h5pset_coll_metadata_write_f, h5pset_dxpl_mpio_f, &
                   h5pset_fapl_mpio_f, h5pset_fclose_degree_f, h5pset_fill_time_f, &
                   h5pset_layout_f, h5sclose_f, h5screate_simple_f, h5sget_simple_extent_dims_f, &
                   h5sget_simple_extent_ndims_f, h5sselect_hyperslab_f, H5S_SELECT_SET_F, &
                   H5T_STD_I64LE, hid_t, hsize_t
   use mpi_f08, only: MPI_Comm, MPI_COMM_NULL, MPI_Info, MPI_INFO_NULL
   implicit none(type, external)
   private

   public :: hdf5_t

   ! An invalid identifier.
   integer(hid_t), parameter :: nothing = -1_hid_t

   type, extends(block_backend_t) :: hdf5_t
      private
      !> Whether the transfers are collective.
      logical, public :: collective = .true.
      type(MPI_Comm) :: comm = MPI_COMM_NULL
      type(MPI_Info) :: info = MPI_INFO_NULL
      !> The open file and its dataset.
      integer(hid_t) :: file = nothing, dataset = nothing
      !> Property lists: to open the file, create the dataset, and move the data.
      integer(hid_t) :: access = nothing, creation = nothing, transfer = nothing
      !> The block in memory, inside its halo, and in the file.
      integer(hid_t) :: in_memory = nothing, in_file = nothing
   contains
      procedure :: set_up
      procedure :: open_file
      procedure :: move_data
      procedure :: sync
      procedure :: close_file
      procedure :: take_down
   end type hdf5_t

contains

   subroutine set_up(self, team, directory, error)
      class(hdf5_t), intent(inout) :: self
      type(team_t), intent(in) :: team
      character(len=*), intent(in) :: directory
      type(error_t), allocatable, intent(out) :: error

      call self%plan_library_file(team, directory)
      self%comm = team%world
      call start_hdf5(error)
      if (allocated(error)) return
      call make_info(self%hints_asked, self%path, self%info, error)
      if (allocated(error)) return
      call make_access(self, error)
      if (allocated(error)) return
      call make_creation(self, error)
      if (allocated(error)) return
      associate (layout => self%block%layout)
         call make_selection(self%block%room(), layout%block, spread(self%block%halo, 1, 3), &
                             self%in_memory, error)
         if (allocated(error)) return
         call make_selection(layout%whole, layout%block, layout%start, self%in_file, error)
      end associate
   end subroutine set_up

   !> The property lists for access and transfers through MPI-IO. After an error the
   !> other calls fail too, which changes nothing.
   subroutine make_access(self, error)
      class(hdf5_t), intent(inout) :: self
      type(error_t), allocatable, intent(out) :: error
      integer :: ierr

      call h5pcreate_f(H5P_FILE_ACCESS_F, self%access, ierr)
      call check_hdf5(ierr, "H5Pcreate", error)
      call h5pset_fapl_mpio_f(self%access, self%comm%MPI_VAL, self%info%MPI_VAL, ierr)
      call check_hdf5(ierr, "H5Pset_fapl_mpio", error)
      ! Collective metadata operations: one process reads and writes them for all.
      call h5pset_all_coll_metadata_ops_f(self%access, .true., ierr)
      call check_hdf5(ierr, "H5Pset_all_coll_metadata_ops", error)
      call h5pset_coll_metadata_write_f(self%access, .true., ierr)
      call check_hdf5(ierr, "H5Pset_coll_metadata_write", error)
      ! Closing the file after an error closes the dataset too.
      call h5pset_fclose_degree_f(self%access, H5F_CLOSE_STRONG_F, ierr)
      call check_hdf5(ierr, "H5Pset_fclose_degree", error)
      call h5pcreate_f(H5P_DATASET_XFER_F, self%transfer, ierr)
      call check_hdf5(ierr, "H5Pcreate", error)
      call h5pset_dxpl_mpio_f(self%transfer, merge(H5FD_MPIO_COLLECTIVE_F, &
                                                   H5FD_MPIO_INDEPENDENT_F, self%collective), ierr)
      call check_hdf5(ierr, "H5Pset_dxpl_mpio", error)
   end subroutine make_access

   !> The property list of the dataset: contiguous, without fill values.
   subroutine make_creation(self, error)
      class(hdf5_t), intent(inout) :: self
      type(error_t), allocatable, intent(out) :: error
      integer :: ierr

      call h5pcreate_f(H5P_DATASET_CREATE_F, self%creation, ierr)
      call check_hdf5(ierr, "H5Pcreate", error)
      call h5pset_layout_f(self%creation, H5D_CONTIGUOUS_F, ierr)
      call check_hdf5(ierr, "H5Pset_layout", error)
      call h5pset_fill_time_f(self%creation, H5D_FILL_TIME_NEVER_F, ierr)
      call check_hdf5(ierr, "H5Pset_fill_time", error)
      call h5pset_alloc_time_f(self%creation, H5D_ALLOC_TIME_EARLY_F, ierr)
      call check_hdf5(ierr, "H5Pset_alloc_time", error)
   end subroutine make_creation

   !> A selection: `part` elements of `whole` along each axis, from `start` (0-based) on.
   subroutine make_selection(whole, part, start, res, error)
      integer(int64), intent(in) :: whole(3), part(3), start(3)
      integer(hid_t), intent(inout) :: res
      type(error_t), allocatable, intent(out) :: error
      integer :: ierr

      call h5screate_simple_f(3, int(whole, hsize_t), res, ierr)
      call check_hdf5(ierr, "H5Screate_simple", error)
      if (allocated(error)) return
      call h5sselect_hyperslab_f(res, H5S_SELECT_SET_F, int(start, hsize_t), int(part, hsize_t), &
                                 ierr)
      call check_hdf5(ierr, "H5Sselect_hyperslab", error)
   end subroutine make_selection

   subroutine open_file(self, writing, error)
      class(hdf5_t), intent(inout) :: self
      logical, intent(in) :: writing
      type(error_t), allocatable, intent(out) :: error
      logical :: proceed
      integer :: ierr

      if (writing) then
         call h5fcreate_f(library_path(self%path), H5F_ACC_EXCL_F, self%file, ierr, &
                          access_prp=self%access)
         call check_hdf5(ierr, "H5Fcreate of "//self%path, error)
      else
         call h5fopen_f(library_path(self%path), H5F_ACC_RDONLY_F, self%file, ierr, self%access)
         call check_hdf5(ierr, "H5Fopen of "//self%path, error)
      end if
      if (allocated(error)) error%text = error%text//remedy(writing)
      call agree_to_proceed(self%comm, proceed, error)
      ! Closing is collective too, so the processes that opened the file leave it open.
      if (.not. proceed) self%file = nothing
      if (.not. proceed) return

      if (writing) then
         call h5dcreate_f(self%file, array_name, H5T_STD_I64LE, self%in_file, self%dataset, ierr, &
                          self%creation)
         call check_hdf5(ierr, "H5Dcreate in "//self%path, error)
      else
         call h5dopen_f(self%file, array_name, self%dataset, ierr)
         call check_hdf5(ierr, "H5Dopen in "//self%path, error)
      end if
      if (allocated(error)) self%dataset = nothing
      if (.not. allocated(error)) self%data_start = dataset_start(array_name)
      self%header_bytes = max(self%data_start, 0_int64)
      if (.not. allocated(error) .and. .not. writing) call compare_shapes(self, error)
      call agree_to_proceed(self%comm, proceed, error)
      if (.not. proceed) self%dataset = nothing
   end subroutine open_file

   !> An error unless the dataset of the file has the lengths of the array.
   subroutine compare_shapes(self, error)
      class(hdf5_t), intent(in) :: self
      type(error_t), allocatable, intent(out) :: error
      integer(hsize_t), allocatable :: found(:), most(:)
      integer(hid_t) :: space
      integer :: axes, ierr

      call h5dget_space_f(self%dataset, space, ierr)
      call check_hdf5(ierr, "H5Dget_space of "//self%path, error)
      if (allocated(error)) return
      call h5sget_simple_extent_ndims_f(space, axes, ierr)
      call check_hdf5(ierr, "H5Sget_simple_extent_ndims of "//self%path, error)
      allocate (found(merge(0, axes, allocated(error))))
      if (.not. allocated(error)) then
         most = found
         call h5sget_simple_extent_dims_f(space, found, most, ierr)
         call check_hdf5(ierr, "H5Sget_simple_extent_dims of "//self%path, error)
      end if
      call h5sclose_f(space, ierr)
      call check_hdf5(ierr, "H5Sclose of "//self%path, error)
      if (.not. allocated(error)) then
         call check_shape(self%path, int(found, int64), self%block%layout%whole, error)
      end if
   end subroutine compare_shapes

   subroutine move_data(self, writing, error)
      class(hdf5_t), intent(inout) :: self
      logical, intent(in) :: writing
      type(error_t), allocatable, intent(out) :: error
      character(len=:), allocatable :: call_name
      type(c_ptr) :: place
      integer :: ierr

      if (self%dataset == nothing) return
      call_name = trim(merge("H5Dwrite", "H5Dread ", writing))
      place = c_loc(self%block%cells)
      if (writing) then
         call h5dwrite_f(self%dataset, h5kind_to_type(int64, H5_INTEGER_KIND), place, ierr, &
                         self%in_memory, self%in_file, self%transfer)
         call check_hdf5(ierr, call_name//" of "//self%path, error)
      else
         call h5dread_f(self%dataset, h5kind_to_type(int64, H5_INTEGER_KIND), place, ierr, &
                        self%in_memory, self%in_file, self%transfer)
         call check_hdf5(ierr, call_name//" of "//self%path, error)
      end if
      call finish_transfer(self%comm, self%path, writing .and. self%owns_path, error)
      if (self%collective .and. .not. allocated(error)) then
         call check_collective(self, call_name, error)
      end if
   end subroutine move_data

   !> An error if the library replaced a collective call by independent ones, as it may: another
   !> pattern would have been measured.
   subroutine check_collective(self, call_name, error)
      class(hdf5_t), intent(in) :: self
      character(len=*), intent(in) :: call_name
      type(error_t), allocatable, intent(out) :: error
      integer(c_int) :: mine, anyones
      integer :: mode, ierr

      call h5pget_mpio_actual_io_mode_f(self%transfer, mode, ierr)
      call check_hdf5(ierr, "H5Pget_mpio_actual_io_mode", error)
      if (allocated(error) .or. mode == H5D_MPIO_CONTIG_COLLECTIVE_F) return
      ierr = c_H5Pget_mpio_no_collective_cause(self%transfer, mine, anyones)
      call check_hdf5(ierr, "H5Pget_mpio_no_collective_cause", error)
      if (allocated(error)) return
      call fail(error, call_name//" of "//self%path//" failed: the library did not make it " &
                //"collective; its causes (H5Pget_mpio_no_collective_cause) are " &
                //to_text(mine)//" here and "//to_text(anyones)//" on all processes")
   end subroutine check_collective

   !> Flushes the library's metadata, too.
   subroutine sync(self, error)
      class(hdf5_t), intent(inout) :: self
      type(error_t), allocatable, intent(out) :: error
      integer :: ierr

      if (self%file == nothing) return
      call h5fflush_f(self%file, H5F_SCOPE_GLOBAL_F, ierr)
      call check_hdf5(ierr, "H5Fflush of "//self%path, error)
   end subroutine sync

   !> Only queries the info object of the hints; its content is read outside the phase.
   subroutine close_file(self, error)
      class(hdf5_t), intent(inout) :: self
      type(error_t), allocatable, intent(out) :: error
      integer :: ierr

      if (self%file == nothing) return
      call get_hints(self%path, self%outcome%info_used, error)
      if (self%dataset /= nothing) then
         call h5dclose_f(self%dataset, ierr)
         call check_hdf5(ierr, "H5Dclose in "//self%path, error)
      end if
      self%dataset = nothing
      call h5fclose_f(self%file, ierr)
      call check_hdf5(ierr, "H5Fclose of "//self%path, error)
      self%file = nothing
   end subroutine close_file

   subroutine take_down(self, error)
      class(hdf5_t), intent(inout) :: self
      type(error_t), allocatable, intent(out) :: error

      call self%close_file(error)
      call close_selection(self%in_memory, error)
      call close_selection(self%in_file, error)
      call close_properties(self%access, error)
      call close_properties(self%creation, error)
      call close_properties(self%transfer, error)
      call free_info(self%info, error)
   end subroutine take_down

   subroutine close_selection(space, error)
      integer(hid_t), intent(inout) :: space
      type(error_t), allocatable, intent(inout) :: error
      integer :: ierr

      if (space == nothing) return
      call h5sclose_f(space, ierr)
      call check_hdf5(ierr, "H5Sclose", error)
      space = nothing
   end subroutine close_selection

   subroutine close_properties(list, error)
      integer(hid_t), intent(inout) :: list
      type(error_t), allocatable, intent(inout) :: error
      integer :: ierr

      if (list == nothing) return
      call h5pclose_f(list, ierr)
      call check_hdf5(ierr, "H5Pclose", error)
      list = nothing
   end subroutine close_properties

end module benchio_layer_hdf5
