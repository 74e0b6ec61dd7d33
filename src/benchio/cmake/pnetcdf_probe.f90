! Can only be linked with a PnetCDF that was built for this compiler.
program pnetcdf_probe
   use mpi_f08, only: MPI_COMM_WORLD, MPI_Init, MPI_INFO_NULL
   implicit none(type, external)
   interface
      function nfmpi_create(comm, path, mode, info, file) result(res)
         implicit none(type, external)
         integer, intent(in) :: comm, mode, info
         character(len=*), intent(in) :: path
         integer, intent(out) :: file
         integer :: res
      end function nfmpi_create
   end interface
   integer :: file, ierr

   call MPI_Init(ierr)
   ierr = nfmpi_create(MPI_COMM_WORLD%MPI_VAL, "file", 32, MPI_INFO_NULL%MPI_VAL, file)
end program pnetcdf_probe
