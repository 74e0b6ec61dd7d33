!> Interfaces to PnetCDF's Fortran 77 procedures, which take MPI handles as integers. They
!> need neither the library's module file nor its C header, which may not fit the compiler.
module benchio_pnetcdf_api
   use, intrinsic :: iso_fortran_env, only: int64
   use benchio_errors, only: error_t, fail
   use mpi_f08, only: MPI_OFFSET_KIND
   implicit none(type, external)
   private

   public :: nfmpi_create, nfmpi_open, nfmpi_close, nfmpi_sync, nfmpi_enddef, nfmpi_set_fill
   public :: nfmpi_def_dim, nfmpi_def_var, nfmpi_inq_varid, nfmpi_inq_varndims
   public :: nfmpi_inq_vardimid, nfmpi_inq_dimlen, nfmpi_inq_varoffset, nfmpi_inq_file_info
   public :: nfmpi_put_vara_all, nfmpi_get_vara_all, nfmpi_iput_vara, nfmpi_iget_vara
   public :: nfmpi_wait_all, check_pnetcdf

   integer, parameter, public :: nf_noerr = 0
   !> A call would move more than the library was built for.
   integer, parameter :: nf_emax_req = -237
   integer, parameter, public :: nf_nowrite = 0, nf_noclobber = 4
   !> The format with 64-bit sizes and integers, CDF-5.
   integer, parameter, public :: nf_64bit_data = 32
   integer, parameter, public :: nf_nofill = 256, nf_int64 = 10

   ! Functions with the same arguments share an interface.
   abstract interface
      function open_i(comm, path, mode, info, file) result(res)
         implicit none(type, external)
         integer, intent(in) :: comm, mode, info
         character(len=*), intent(in) :: path
         integer, intent(out) :: file
         integer :: res
      end function open_i

      function file_i(file) result(res)
         implicit none(type, external)
         integer, intent(in) :: file
         integer :: res
      end function file_i

      !> Inquires the length of an axis, or the offset of a variable.
      function inquire_i(file, item, value) result(res)
         import :: MPI_OFFSET_KIND
         implicit none(type, external)
         integer, intent(in) :: file, item
         integer(MPI_OFFSET_KIND), intent(out) :: value
         integer :: res
      end function inquire_i
   end interface

   procedure(open_i) :: nfmpi_create, nfmpi_open
   procedure(file_i) :: nfmpi_close, nfmpi_sync, nfmpi_enddef
   procedure(inquire_i) :: nfmpi_inq_dimlen, nfmpi_inq_varoffset

   interface
      function nfmpi_set_fill(file, mode, old_mode) result(res)
         implicit none(type, external)
         integer, intent(in) :: file, mode
         integer, intent(out) :: old_mode
         integer :: res
      end function nfmpi_set_fill

      function nfmpi_def_dim(file, name, length, dimension) result(res)
         import :: MPI_OFFSET_KIND
         implicit none(type, external)
         integer, intent(in) :: file
         character(len=*), intent(in) :: name
         integer(MPI_OFFSET_KIND), intent(in) :: length
         integer, intent(out) :: dimension
         integer :: res
      end function nfmpi_def_dim

      function nfmpi_def_var(file, name, type, axes, dimensions, variable) result(res)
         implicit none(type, external)
         integer, intent(in) :: file, type, axes, dimensions(*)
         character(len=*), intent(in) :: name
         integer, intent(out) :: variable
         integer :: res
      end function nfmpi_def_var

      function nfmpi_inq_varid(file, name, variable) result(res)
         implicit none(type, external)
         integer, intent(in) :: file
         character(len=*), intent(in) :: name
         integer, intent(out) :: variable
         integer :: res
      end function nfmpi_inq_varid

      function nfmpi_inq_varndims(file, variable, axes) result(res)
         implicit none(type, external)
         integer, intent(in) :: file, variable
         integer, intent(out) :: axes
         integer :: res
      end function nfmpi_inq_varndims

      function nfmpi_inq_vardimid(file, variable, dimensions) result(res)
         implicit none(type, external)
         integer, intent(in) :: file, variable
         integer, intent(inout) :: dimensions(*)
         integer :: res
      end function nfmpi_inq_vardimid

      function nfmpi_inq_file_info(file, info) result(res)
         implicit none(type, external)
         integer, intent(in) :: file
         integer, intent(out) :: info
         integer :: res
      end function nfmpi_inq_file_info

      function nfmpi_put_vara_all(file, variable, starts, counts, &
                                  buffer, items, item_type) result(res)
         import :: int64, MPI_OFFSET_KIND
         implicit none(type, external)
         integer, intent(in) :: file, variable, item_type
         integer(MPI_OFFSET_KIND), intent(in) :: starts(*), counts(*), items
         integer(int64), intent(in) :: buffer(*)
         integer :: res
      end function nfmpi_put_vara_all

      function nfmpi_get_vara_all(file, variable, starts, counts, &
                                  buffer, items, item_type) result(res)
         import :: int64, MPI_OFFSET_KIND
         implicit none(type, external)
         integer, intent(in) :: file, variable, item_type
         integer(MPI_OFFSET_KIND), intent(in) :: starts(*), counts(*), items
         integer(int64), intent(inout) :: buffer(*)
         integer :: res
      end function nfmpi_get_vara_all

      function nfmpi_iput_vara(file, variable, starts, counts, buffer, &
                               items, item_type, request) result(res)
         import :: int64, MPI_OFFSET_KIND
         implicit none(type, external)
         integer, intent(in) :: file, variable, item_type
         integer(MPI_OFFSET_KIND), intent(in) :: starts(*), counts(*), items
         integer(int64), intent(in), asynchronous :: buffer(*)
         integer, intent(out) :: request
         integer :: res
      end function nfmpi_iput_vara

      function nfmpi_iget_vara(file, variable, starts, counts, buffer, &
                               items, item_type, request) result(res)
         import :: int64, MPI_OFFSET_KIND
         implicit none(type, external)
         integer, intent(in) :: file, variable, item_type
         integer(MPI_OFFSET_KIND), intent(in) :: starts(*), counts(*), items
         integer(int64), intent(inout), asynchronous :: buffer(*)
         integer, intent(out) :: request
         integer :: res
      end function nfmpi_iget_vara

      function nfmpi_wait_all(file, count, requests, statuses) result(res)
         implicit none(type, external)
         integer, intent(in) :: file, count
         integer, intent(inout) :: requests(*), statuses(*)
         integer :: res
      end function nfmpi_wait_all

      function nfmpi_strerror(status) result(res)
         implicit none(type, external)
         integer, intent(in) :: status
         character(len=80) :: res
      end function nfmpi_strerror
   end interface

contains

   !> Turns the status of a PnetCDF call into an error with the library's text, unless there
   !> already is one. If the call would move too much, the text says what to do.
   subroutine check_pnetcdf(status, what, error)
      integer, intent(in) :: status
      character(len=*), intent(in) :: what
      type(error_t), allocatable, intent(inout) :: error

      if (status == nf_noerr .or. allocated(error)) return
      call fail(error, what//" failed: "//trim(nfmpi_strerror(status)))
      if (status /= nf_emax_req) return
      error%text = error%text//"; this PnetCDF moves less than 2 GiB per process and call: use " &
                   //"more processes or a smaller array"
   end subroutine check_pnetcdf

end module benchio_pnetcdf_api
