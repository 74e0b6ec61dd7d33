!> The MPI file beneath the file that HDF5 has open: its hints, and the recovery from a
!> failed transfer. For the layers hdf5 and netcdf; netCDF gives no access to its MPI file.
module benchio_hdf5_mpi
   use, intrinsic :: iso_c_binding, only: c_associated, c_null_char, c_ptr
   use, intrinsic :: iso_fortran_env, only: int64
   use benchio_errors, only: error_t, keep_first
   use benchio_hdf5_api, only: c_MPI_File_c2f, shim_dataset_start, shim_mpi_file
   use benchio_mpi_checks, only: agree_to_proceed, check
   use benchio_posix_path, only: empty_file
   use benchio_wait_limit, only: limit_wait
   use mpi_f08, only: MPI_BYTE, MPI_Comm, MPI_Datatype, MPI_File, MPI_File_get_info, &
                      MPI_File_get_view, MPI_FILE_NULL, MPI_File_set_view, MPI_Info, &
                      MPI_INFO_NULL, MPI_MAX_DATAREP_STRING, MPI_OFFSET_KIND
   implicit none(type, external)
   private

   public :: dataset_start, get_hints, finish_transfer

contains

   !> The byte where an open dataset begins; negative if unknown.
   function dataset_start(name) result(res)
      character(len=*), intent(in) :: name
      integer(int64) :: res

      res = shim_dataset_start("/"//name//c_null_char)
   end function dataset_start

   !> The MPI library's hints of the open file; MPI_INFO_NULL if it cannot be queried.
   subroutine get_hints(path, info, error)
      character(len=*), intent(in) :: path
      type(MPI_Info), intent(out) :: info
      type(error_t), allocatable, intent(out) :: error
      type(MPI_File) :: file
      integer :: ierr

      info = MPI_INFO_NULL
      file = open_mpi_file()
      if (file%MPI_VAL == MPI_FILE_NULL%MPI_VAL) return
      call MPI_File_get_info(file, info, ierr)
      call check(ierr, "MPI_File_get_info of "//path, error)
   end subroutine get_hints

   function open_mpi_file() result(res)
      type(MPI_File) :: res
      type(c_ptr) :: handle

      res = MPI_FILE_NULL
      handle = shim_mpi_file()
      if (c_associated(handle)) res%MPI_VAL = c_MPI_File_c2f(handle)
   end function open_mpi_file

   !> To be called after a collective transfer: waits until it has ended on all processes
   !> and, after an error, makes the file closable; collective.
   !>
   !> After the transfer HDF5 resets the file's view, which is collective, but skips this on
   !> processes where a call of the transfer failed. They reset it here, or the others would
   !> hang; processes that merely moved too few bytes have already reset it. Closing writes HDF5's
   !> metadata: with `makes_room` the file, which is useless in any case, is truncated, so that
   !> they fit on a full file system.
   subroutine finish_transfer(comm, path, makes_room, error)
      type(MPI_Comm), intent(in) :: comm
      character(len=*), intent(in) :: path
      logical, intent(in) :: makes_room
      type(error_t), allocatable, intent(inout) :: error
      type(error_t), allocatable :: trouble
      type(MPI_File) :: file
      type(MPI_Datatype) :: element, view
      integer(MPI_OFFSET_KIND) :: start
      character(len=MPI_MAX_DATAREP_STRING) :: representation
      integer :: ierr
      logical :: proceed

      call limit_wait(error)
      file = MPI_FILE_NULL
      if (allocated(error)) file = open_mpi_file()
      start = 0_MPI_OFFSET_KIND
      if (file%MPI_VAL /= MPI_FILE_NULL%MPI_VAL) then
         call MPI_File_get_view(file, start, element, view, representation, ierr)
         call check(ierr, "MPI_File_get_view of "//path, error)
      end if
      if (start > 0_MPI_OFFSET_KIND) then
         call MPI_File_set_view(file, 0_MPI_OFFSET_KIND, MPI_BYTE, MPI_BYTE, "native", &
                                MPI_INFO_NULL, ierr)
         call check(ierr, "MPI_File_set_view of "//path, error)
      end if
      call agree_to_proceed(comm, proceed, error)
      if (proceed) return
      if (makes_room) then
         call empty_file(path, trouble)
         call keep_first(error, trouble)
      end if
      call agree_to_proceed(comm, proceed, error)
   end subroutine finish_transfer

end module benchio_hdf5_mpi
