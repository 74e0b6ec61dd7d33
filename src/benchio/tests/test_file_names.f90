program test_file_names
   use, intrinsic :: iso_fortran_env, only: int64
   use benchio_array_in_file, only: check_shape
   use benchio_errors, only: error_t, status_failed
   use benchio_file_names, only: path_in
   use benchio_testing, only: expect, expect_refused, finish
   implicit none(type, external)
   type(error_t), allocatable :: error

   call expect("one file", path_in("unstriped", "mpiio"), "unstriped/mpiio.dat")
   call expect("a slash is there", path_in("/scratch/", "mpiio"), "/scratch/mpiio.dat")
   call expect("the first of several", path_in(".", "proc", 0), "./proc000000.dat")
   call expect("more than six digits", path_in(".", "proc", 12345678), "./proc12345678.dat")

   call check_shape("a", [2_int64, 3_int64], [2_int64, 3_int64], error)
   call expect("the array of this run", (.not. allocated(error)))
   call check_shape("a", [2_int64, 3_int64], [3_int64, 2_int64], error)
   call expect_refused("another shape", error, status_failed)
   call check_shape("a", [6_int64], [3_int64, 2_int64], error)
   call expect_refused("fewer axes", error, status_failed)
   call finish()
end program test_file_names
