!> The layers mpiio and mpiio-independent: one shared file with the whole array in Fortran
!> order, which all processes write and read through MPI-IO, by collective or independent
!> calls.
!>
!> Memory: none beside the MPI library's collective buffers. Each call moves one element of a
!> datatype that describes the block in memory and in the file, so that no count overflows
!> a default integer.
module benchio_layer_mpiio
   use benchio_errors, only: error_t
   use benchio_mpiio_backend, only: mpiio_backend_t
   implicit none(type, external)
   private

   public :: mpiio_t

   type, extends(mpiio_backend_t) :: mpiio_t
      !> Whether the calls are collective.
      logical :: collective = .true.
   contains
      procedure :: move_data
   end type mpiio_t

contains

   subroutine move_data(self, writing, error)
      class(mpiio_t), intent(inout) :: self
      logical, intent(in) :: writing
      type(error_t), allocatable, intent(out) :: error

      if (.not. self%file%is_open()) return
      call self%outcome%times%begin()
      call self%move_block(writing, self%collective, error)
      call self%outcome%times%finish()
   end subroutine move_data

end module benchio_layer_mpiio
