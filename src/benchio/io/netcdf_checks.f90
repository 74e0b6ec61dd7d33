!> The status of netCDF's calls as errors, with the library's own text.
module netcdf_checks
   use, intrinsic :: iso_c_binding, only: c_int
   use c_text, only: from_c
   use errors, only: error_t, fail
   use netcdf_api, only: nc_noerr, nc_strerror
   implicit none(type, external)
   private

   public :: check_netcdf

contains

   !> Makes an error of the status of a netCDF call.
   subroutine check_netcdf(status, what, error)
      integer(c_int), intent(in) :: status
      character(len=*), intent(in) :: what
      type(error_t), allocatable, intent(out) :: error

      if (status /= nc_noerr) call fail(error, what//" failed: "//from_c(nc_strerror(status)))
   end subroutine check_netcdf

end module netcdf_checks
