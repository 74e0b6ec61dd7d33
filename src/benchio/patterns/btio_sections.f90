!> The cells of btio as MPI datatypes: their place in memory, inside the halo, and in a step
!> of the file.
module benchio_btio_sections
   use, intrinsic :: iso_fortran_env, only: int64
   use benchio_btio_partition, only: halo_points, partition_t, values_per_point
   use benchio_datatypes, only: make_section
   use benchio_errors, only: error_t
   use mpi_f08, only: MPI_Datatype, MPI_DATATYPE_NULL
   implicit none(type, external)
   private

   public :: memory_sections, file_sections

contains

   !> One section of the array of all cells (see btio_data) for each cell.
   subroutine memory_sections(partition, res, error)
      type(partition_t), intent(in) :: partition
      type(MPI_Datatype), allocatable, intent(out) :: res(:)
      type(error_t), allocatable, intent(out) :: error
      integer(int64) :: room(3), cells
      integer :: at

      cells = size(partition%cells)
      room = partition%most_points() + 2*halo_points
      allocate (res(cells), source=MPI_DATATYPE_NULL)
      do at = 1, size(res)
         call make_section([values_per_point, room, cells], &
                           [values_per_point, partition%cells(at)%points, 1_int64], &
                           [0_int64, halo_points, halo_points, halo_points, at - 1_int64], &
                           res(at), error)
         if (allocated(error)) return
      end do
   end subroutine memory_sections

   !> One section of a step of the file for each cell. In this order, along the slowest axis,
   !> their offsets increase, as MPI requires of a file view.
   subroutine file_sections(partition, res, error)
      type(partition_t), intent(in) :: partition
      type(MPI_Datatype), allocatable, intent(out) :: res(:)
      type(error_t), allocatable, intent(out) :: error
      integer :: at

      allocate (res(size(partition%cells)), source=MPI_DATATYPE_NULL)
      do at = 1, size(res)
         associate (cell => partition%cells(at))
            call make_section([values_per_point, partition%grid], &
                              [values_per_point, cell%points], [0_int64, cell%start], res(at), &
                              error)
         end associate
         if (allocated(error)) return
      end do
   end subroutine file_sections

end module benchio_btio_sections
