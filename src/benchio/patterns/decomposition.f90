!> The grid of processes over the array's three axes.
module benchio_decomposition
   use benchio_errors, only: error_t
   use benchio_mpi_checks, only: check
   use mpi_f08, only: MPI_Dims_create
   implicit none(type, external)
   private

   public :: process_grid

   !> The names of the decompositions on the command line.
   character(len=*), parameter, public :: decompositions(3) = &
                                          [character(len=6) :: "block", "slab", "pencil"]

contains

   !> Processes along each axis: the array is cut along all three axes (block), the last
   !> two (pencil) or the last (slab). In Fortran order a slab is contiguous in the file.
   subroutine process_grid(name, processes, res, error)
      character(len=*), intent(in) :: name
      integer, intent(in) :: processes
      integer, intent(out) :: res(3)
      type(error_t), allocatable, intent(out) :: error
      integer, allocatable :: dims(:)
      integer :: axes, ierr

      select case (name)
      case ("slab")
         axes = 1
      case ("pencil")
         axes = 2
      case default
         axes = 3
      end select
      allocate (dims(axes), source=0)
      call MPI_Dims_create(processes, axes, dims, ierr)
      call check(ierr, "MPI_Dims_create", error)
      ! Reversed as in EPCC's benchio: the first axis has the fewest cuts.
      res = 1
      res(4 - axes:) = dims(axes:1:-1)
   end subroutine process_grid

end module benchio_decomposition
