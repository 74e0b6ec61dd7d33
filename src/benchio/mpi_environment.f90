!> What the environment has to say to an MPI library before it starts, for benchio's
!> sake. What the user says there stays.
module mpi_environment
   use, intrinsic :: iso_c_binding, only: c_int, c_null_char
   use errors, only: error_t
   use posix_api, only: c_setenv, shim_errno
   use posix_file, only: system_failure
   implicit none(type, external)
   private

   public :: settle_environment

contains

   !> Open MPI 4 readies a shared file pointer with each file that it opens, which
   !> benchio does not use: by a semaphore in memory that has the file's name without
   !> its directory. Two runs on a node, be they of two users, would share it, and one
   !> that is killed leaves it behind, for which all later ones wait.
   subroutine settle_environment(error)
      type(error_t), allocatable, intent(out) :: error
      integer(c_int) :: status

      status = c_setenv("OMPI_MCA_sharedfp"//c_null_char, "^sm"//c_null_char, 0_c_int)
      if (status /= 0_c_int) call system_failure("setenv", "OMPI_MCA_sharedfp", shim_errno(), error)
   end subroutine settle_environment

end module mpi_environment
