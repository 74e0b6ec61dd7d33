! Can be linked with the C library of netCDF-4 if that was built with MPI, and from 4.9.3 always.
program netcdf_probe
   use, intrinsic :: iso_c_binding, only: c_char, c_int, c_null_char
   use mpi_f08, only: MPI_COMM_WORLD, MPI_Init, MPI_INFO_NULL
   implicit none(type, external)
   interface
      function nc_create_par_fortran(path, mode, comm, info, file) bind(c) result(res)
         import :: c_char, c_int
         implicit none(type, external)
         character(kind=c_char), intent(in) :: path(*)
         integer(c_int), intent(in), value :: mode, comm, info
         integer(c_int), intent(out) :: file
         integer(c_int) :: res
      end function nc_create_par_fortran
   end interface
   integer(c_int) :: file
   integer :: ierr

   call MPI_Init(ierr)
   ierr = nc_create_par_fortran("file"//c_null_char, 4096_c_int, MPI_COMM_WORLD%MPI_VAL, &
                                MPI_INFO_NULL%MPI_VAL, file)
end program netcdf_probe
