!> Interfaces to HDF5 functions that its Fortran module lacks in some or all versions, and
!> to hdf5_shim.c.
module benchio_hdf5_api
   use, intrinsic :: iso_c_binding, only: c_char, c_funptr, c_int, c_int64_t, c_null_ptr, c_ptr
   implicit none(type, external)
   private

   public :: hdf5_error_t, c_H5Ewalk2, c_H5Pget_mpio_no_collective_cause
   public :: c_MPI_File_c2f, shim_dataset_start, shim_mpi_file

   !> Walks the stack from the innermost failed call to the one that benchio made.
   integer(c_int), parameter, public :: walk_upward = 0_c_int
   !> The stack of errors of the last call.
   integer(c_int64_t), parameter, public :: last_errors = 0_c_int64_t

   !> `H5E_error2_t`: an entry of the stack of errors.
   type, bind(c) :: hdf5_error_t
      integer(c_int64_t) :: class_id = 0_c_int64_t, major = 0_c_int64_t, minor = 0_c_int64_t
      integer(c_int) :: line = 0_c_int
      type(c_ptr) :: function_name = c_null_ptr, file_name = c_null_ptr, description = c_null_ptr
   end type hdf5_error_t

   ! hid_t has 64 bits since HDF5 1.10.
   interface
      function c_H5Ewalk2(stack, direction, visit, data) bind(c, name="H5Ewalk2") result(res)
         import :: c_funptr, c_int, c_int64_t, c_ptr
         implicit none(type, external)
         integer(c_int64_t), intent(in), value :: stack
         integer(c_int), intent(in), value :: direction
         type(c_funptr), intent(in), value :: visit
         type(c_ptr), intent(in), value :: data
         integer(c_int) :: res
      end function c_H5Ewalk2

      function c_H5Pget_mpio_no_collective_cause(transfer, mine, anyones) &
         bind(c, name="H5Pget_mpio_no_collective_cause") result(res)
         import :: c_int, c_int64_t
         implicit none(type, external)
         integer(c_int64_t), intent(in), value :: transfer
         integer(c_int), intent(out) :: mine, anyones
         integer(c_int) :: res
      end function c_H5Pget_mpio_no_collective_cause

      ! These are called whether HDF5 was found or not; see hdf5_shim.c.

      function shim_dataset_start(path) bind(c, name="benchio_dataset_start") result(res)
         import :: c_char, c_int64_t
         implicit none(type, external)
         character(kind=c_char), intent(in) :: path(*)
         integer(c_int64_t) :: res
      end function shim_dataset_start

      function shim_mpi_file() bind(c, name="benchio_hdf5_mpi_file") result(res)
         import :: c_ptr
         implicit none(type, external)
         type(c_ptr) :: res
      end function shim_mpi_file

      function c_MPI_File_c2f(file) bind(c, name="MPI_File_c2f") result(res)
         import :: c_int, c_ptr
         implicit none(type, external)
         type(c_ptr), intent(in), value :: file
         integer(c_int) :: res
      end function c_MPI_File_c2f
   end interface

end module benchio_hdf5_api
