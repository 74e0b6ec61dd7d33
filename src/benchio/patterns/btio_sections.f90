!> The cells of btio as MPI datatypes, one for each cell of this process: where it
!> lies in memory, inside its halo, and where in a step of the file.
module btio_sections
   use, intrinsic :: iso_fortran_env, only: int64
   use btio_partition, only: halo_points, partition_t, values_per_point
   use datatypes, only: make_section
   use errors, only: error_t
   use mpi_f08, only: MPI_Datatype, MPI_DATATYPE_NULL
   implicit none(type, external)
   private

   public :: memory_sections, file_sections

contains

   !> Sections of the array of all cells, as btio_data has it.
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

   !> Sections of a step of the file. The cells lie one above the other along the
   !> slowest axis: a view with them in this order goes through the file in one
   !> direction, as MPI demands.
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

end module btio_sections
