!> Interfaces to netCDF's C library, which has variants that take MPI handles as Fortran
!> integers. (netCDF's Fortran library is often built without MPI.)
module benchio_netcdf_api
   use, intrinsic :: iso_c_binding, only: c_char, c_int, c_long_long, c_ptr, c_size_t
   use benchio_c_text, only: from_c
   use benchio_errors, only: error_t, fail
   implicit none(type, external)
   private

   public :: nc_create_par_fortran, nc_open_par_fortran, nc_close, nc_sync, nc_enddef
   public :: nc_def_dim, nc_def_var, nc_def_var_fill, nc_def_var_chunking, nc_var_par_access
   public :: nc_inq_varid, nc_inq_varndims, nc_inq_vardimid, nc_inq_dimlen
   public :: nc_put_vara_longlong, nc_get_vara_longlong, check_netcdf

   integer(c_int), parameter :: nc_noerr = 0_c_int
   integer(c_int), parameter, public :: nc_nowrite = 0_c_int, nc_clobber = 0_c_int
   integer(c_int), parameter, public :: nc_netcdf4 = 4096_c_int
   integer(c_int), parameter, public :: nc_int64 = 10_c_int
   integer(c_int), parameter, public :: nc_contiguous = 1_c_int
   integer(c_int), parameter, public :: nc_independent = 0_c_int, nc_collective = 1_c_int

   interface
      function nc_create_par_fortran(path, mode, comm, info, file) bind(c) result(res)
         import :: c_char, c_int
         implicit none(type, external)
         character(kind=c_char), intent(in) :: path(*)
         integer(c_int), intent(in), value :: mode, comm, info
         integer(c_int), intent(out) :: file
         integer(c_int) :: res
      end function nc_create_par_fortran

      function nc_open_par_fortran(path, mode, comm, info, file) bind(c) result(res)
         import :: c_char, c_int
         implicit none(type, external)
         character(kind=c_char), intent(in) :: path(*)
         integer(c_int), intent(in), value :: mode, comm, info
         integer(c_int), intent(out) :: file
         integer(c_int) :: res
      end function nc_open_par_fortran

      function nc_close(file) bind(c) result(res)
         import :: c_int
         implicit none(type, external)
         integer(c_int), intent(in), value :: file
         integer(c_int) :: res
      end function nc_close

      function nc_sync(file) bind(c) result(res)
         import :: c_int
         implicit none(type, external)
         integer(c_int), intent(in), value :: file
         integer(c_int) :: res
      end function nc_sync

      function nc_enddef(file) bind(c) result(res)
         import :: c_int
         implicit none(type, external)
         integer(c_int), intent(in), value :: file
         integer(c_int) :: res
      end function nc_enddef

      function nc_def_dim(file, name, length, dimension) bind(c) result(res)
         import :: c_char, c_int, c_size_t
         implicit none(type, external)
         integer(c_int), intent(in), value :: file
         character(kind=c_char), intent(in) :: name(*)
         integer(c_size_t), intent(in), value :: length
         integer(c_int), intent(out) :: dimension
         integer(c_int) :: res
      end function nc_def_dim

      function nc_def_var(file, name, type, axes, dimensions, variable) bind(c) result(res)
         import :: c_char, c_int
         implicit none(type, external)
         integer(c_int), intent(in), value :: file, type, axes
         character(kind=c_char), intent(in) :: name(*)
         integer(c_int), intent(in) :: dimensions(*)
         integer(c_int), intent(out) :: variable
         integer(c_int) :: res
      end function nc_def_var

      function nc_def_var_fill(file, variable, no_fill, fill_value) bind(c) result(res)
         import :: c_int, c_ptr
         implicit none(type, external)
         integer(c_int), intent(in), value :: file, variable, no_fill
         type(c_ptr), intent(in), value :: fill_value
         integer(c_int) :: res
      end function nc_def_var_fill

      function nc_def_var_chunking(file, variable, storage, chunk_lengths) bind(c) result(res)
         import :: c_int, c_ptr
         implicit none(type, external)
         integer(c_int), intent(in), value :: file, variable, storage
         type(c_ptr), intent(in), value :: chunk_lengths
         integer(c_int) :: res
      end function nc_def_var_chunking

      function nc_var_par_access(file, variable, access) bind(c) result(res)
         import :: c_int
         implicit none(type, external)
         integer(c_int), intent(in), value :: file, variable, access
         integer(c_int) :: res
      end function nc_var_par_access

      function nc_inq_varid(file, name, variable) bind(c) result(res)
         import :: c_char, c_int
         implicit none(type, external)
         integer(c_int), intent(in), value :: file
         character(kind=c_char), intent(in) :: name(*)
         integer(c_int), intent(out) :: variable
         integer(c_int) :: res
      end function nc_inq_varid

      function nc_inq_varndims(file, variable, axes) bind(c) result(res)
         import :: c_int
         implicit none(type, external)
         integer(c_int), intent(in), value :: file, variable
         integer(c_int), intent(out) :: axes
         integer(c_int) :: res
      end function nc_inq_varndims

      function nc_inq_vardimid(file, variable, dimensions) bind(c) result(res)
         import :: c_int
         implicit none(type, external)
         integer(c_int), intent(in), value :: file, variable
         integer(c_int), intent(inout) :: dimensions(*)
         integer(c_int) :: res
      end function nc_inq_vardimid

      function nc_inq_dimlen(file, dimension, length) bind(c) result(res)
         import :: c_int, c_size_t
         implicit none(type, external)
         integer(c_int), intent(in), value :: file, dimension
         integer(c_size_t), intent(out) :: length
         integer(c_int) :: res
      end function nc_inq_dimlen

      function nc_put_vara_longlong(file, variable, starts, counts, buffer) bind(c) result(res)
         import :: c_int, c_long_long, c_size_t
         implicit none(type, external)
         integer(c_int), intent(in), value :: file, variable
         integer(c_size_t), intent(in) :: starts(*), counts(*)
         integer(c_long_long), intent(in) :: buffer(*)
         integer(c_int) :: res
      end function nc_put_vara_longlong

      function nc_get_vara_longlong(file, variable, starts, counts, buffer) bind(c) result(res)
         import :: c_int, c_long_long, c_size_t
         implicit none(type, external)
         integer(c_int), intent(in), value :: file, variable
         integer(c_size_t), intent(in) :: starts(*), counts(*)
         integer(c_long_long), intent(inout) :: buffer(*)
         integer(c_int) :: res
      end function nc_get_vara_longlong

      function nc_strerror(status) bind(c) result(res)
         import :: c_int, c_ptr
         implicit none(type, external)
         integer(c_int), intent(in), value :: status
         type(c_ptr) :: res
      end function nc_strerror
   end interface

contains

   !> Turns the status of a netCDF call into an error with the library's text, unless there
   !> already is one.
   subroutine check_netcdf(status, what, error)
      integer(c_int), intent(in) :: status
      character(len=*), intent(in) :: what
      type(error_t), allocatable, intent(inout) :: error

      if (status == nc_noerr .or. allocated(error)) return
      call fail(error, what//" failed: "//from_c(nc_strerror(status)))
   end subroutine check_netcdf

end module benchio_netcdf_api
