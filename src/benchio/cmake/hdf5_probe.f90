! Can only be linked with HDF5 1.10 or later, with MPI and Fortran.
program hdf5_probe
   use hdf5, only: h5open_f, h5pset_all_coll_metadata_ops_f, h5pset_fapl_mpio_f, hid_t
   use mpi_f08, only: MPI_COMM_WORLD, MPI_Init, MPI_INFO_NULL
   implicit none(type, external)
   integer(hid_t) :: list
   integer :: ierr

   list = 0
   call MPI_Init(ierr)
   call h5open_f(ierr)
   call h5pset_fapl_mpio_f(list, MPI_COMM_WORLD%MPI_VAL, MPI_INFO_NULL%MPI_VAL, ierr)
   call h5pset_all_coll_metadata_ops_f(list, .true., ierr)
end program hdf5_probe
