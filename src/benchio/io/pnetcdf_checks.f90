!> The status of PnetCDF's calls as errors, with the library's own text.
module pnetcdf_checks
   use errors, only: error_t, fail
   use pnetcdf_api, only: nf_noerr, nfmpi_strerror
   implicit none(type, external)
   private

   public :: check_pnetcdf

contains

   !> Makes an error of the status of a PnetCDF call.
   subroutine check_pnetcdf(status, what, error)
      integer, intent(in) :: status
      character(len=*), intent(in) :: what
      type(error_t), allocatable, intent(out) :: error

      if (status /= nf_noerr) call fail(error, what//" failed: "//trim(nfmpi_strerror(status)))
   end subroutine check_pnetcdf

end module pnetcdf_checks
