!> What HDF5 does by MPI-IO, seen from outside: the hints of the file that it has
!> open, and the way on after a transfer that failed. For the layers hdf5 and
!> netcdf, the second of which has no other way to HDF5.
module hdf5_mpi
   use, intrinsic :: iso_c_binding, only: c_associated, c_null_char, c_ptr
   use, intrinsic :: iso_fortran_env, only: int64
   use errors, only: error_t, keep_first
   use hdf5_api, only: c_MPI_File_c2f, shim_dataset_start, shim_mpi_file
   use mpi_checks, only: check
   use mpi_f08, only: MPI_BYTE, MPI_Comm, MPI_File, MPI_File_get_info, MPI_FILE_NULL, &
                      MPI_File_set_view, MPI_Info, MPI_INFO_NULL, MPI_OFFSET_KIND
   use posix_file, only: close_file, open_new
   use shared_file, only: agree_to_go_on
   implicit none(type, external)
   private

   public :: dataset_start, fetch_hints, settle

contains

   !> The byte where an open dataset begins; negative when nothing tells.
   function dataset_start(name) result(res)
      character(len=*), intent(in) :: name
      integer(int64) :: res

      res = shim_dataset_start("/"//name//c_null_char)
   end function dataset_start

   !> What MPI says of the hints of the open file; nothing when it cannot be asked.
   subroutine fetch_hints(path, info, error)
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
   end subroutine fetch_hints

   function open_mpi_file() result(res)
      type(MPI_File) :: res
      type(c_ptr) :: handle

      res = MPI_FILE_NULL
      handle = shim_mpi_file()
      if (c_associated(handle)) res%MPI_VAL = c_MPI_File_c2f(handle)
   end function open_mpi_file

   !> To be called behind a collective transfer, which is over for all then;
   !> collective. Sees to it that after an error the file can be closed.
   !>
   !> HDF5 resets the file's view after the transfer, together, but not where it
   !> failed: without the others' part in it those for which it went well would
   !> wait for ever. And in closing it waits for all to have written what it keeps
   !> about the data: where there was no room for the data, there must be some for
   !> that. The file is of no use anyhow.
   subroutine settle(comm, path, makes_room, error)
      type(MPI_Comm), intent(in) :: comm
      character(len=*), intent(in) :: path
      logical, intent(in) :: makes_room
      type(error_t), allocatable, intent(inout) :: error
      type(error_t), allocatable :: trouble
      type(MPI_File) :: file
      integer :: fd, ierr
      logical :: goes_on

      file = MPI_FILE_NULL
      if (allocated(error)) file = open_mpi_file()
      if (file%MPI_VAL /= MPI_FILE_NULL%MPI_VAL) then
         call MPI_File_set_view(file, 0_MPI_OFFSET_KIND, MPI_BYTE, MPI_BYTE, "native", &
                                MPI_INFO_NULL, ierr)
         call check(ierr, "MPI_File_set_view of "//path, trouble)
         call keep_first(error, trouble)
      end if
      call agree_to_go_on(comm, goes_on, error)
      if (goes_on) return
      if (makes_room) then
         call open_new(path, fd, trouble)
         if (.not. allocated(trouble)) call close_file(fd, path, trouble)
         call keep_first(error, trouble)
      end if
      call agree_to_go_on(comm, goes_on, error)
   end subroutine settle

end module hdf5_mpi
