!> The layer group: `--files` shared files, one for each group of processes, which write and read
!> it through collective MPI-IO calls. The blocks of a group form a larger block of the array, its
!> box, and the file holds that in Fortran order.
!>
!> Memory: none beside the MPI library's collective buffers.
module benchio_layer_group
   use, intrinsic :: iso_fortran_env, only: int64
   use benchio_errors, only: error_t, keep_first
   use benchio_file_names, only: path_in
   use benchio_grouping, only: find_group
   use benchio_layout, only: element_bytes
   use benchio_mpi_checks, only: check
   use benchio_mpiio_backend, only: mpiio_backend_t
   use benchio_task, only: task_t
   use benchio_team, only: team_t
   use benchio_writer_groups, only: check_groups
   use mpi_f08, only: MPI_Comm, MPI_Comm_split
   implicit none(type, external)
   private

   public :: group_t

   type, extends(mpiio_backend_t) :: group_t
      private
      !> The processes that share this one's file.
      type(team_t) :: group
   contains
      procedure, nopass :: check_task
      procedure :: set_up
      procedure :: move_data
      procedure :: take_down
   end type group_t

contains

   subroutine check_task(task, processes, error)
      type(task_t), intent(in) :: task
      integer, intent(in) :: processes
      type(error_t), allocatable, intent(out) :: error

      call check_groups(task, processes, "--files", task%files, error)
   end subroutine check_task

   subroutine set_up(self, team, directory, error)
      class(group_t), intent(inout) :: self
      type(team_t), intent(in) :: team
      character(len=*), intent(in) :: directory
      type(error_t), allocatable, intent(out) :: error
      type(MPI_Comm) :: comm
      integer :: number, ierr

      call find_group(self%block%layout, self%task%files, number, self%box, error)
      if (allocated(error)) return
      call MPI_Comm_split(team%world, number, team%rank, comm, ierr)
      call check(ierr, "MPI_Comm_split", error)
      if (allocated(error)) return
      call self%group%start(comm, error)
      ! The next calls are collective in the group.
      call team%agree(error)
      if (allocated(error)) return
      call self%set_up_file(self%group, directory, error, self%box, number)
      self%first_path = path_in(directory, self%name, 0)
      self%path_bytes = product(self%box%block)*element_bytes
      self%files = self%task%files
      self%writers = team%size
      call self%settings%add_integer("files", int(self%files, int64))
   end subroutine set_up

   subroutine move_data(self, writing, error)
      class(group_t), intent(inout) :: self
      logical, intent(in) :: writing
      type(error_t), allocatable, intent(out) :: error

      if (self%file%is_open()) call self%move_block(writing, .true., error)
   end subroutine move_data

   subroutine take_down(self, error)
      class(group_t), intent(inout) :: self
      type(error_t), allocatable, intent(out) :: error
      type(error_t), allocatable :: trouble

      call self%file%take_down(error)
      call self%group%finish(trouble)
      call keep_first(error, trouble)
   end subroutine take_down

end module benchio_layer_group
