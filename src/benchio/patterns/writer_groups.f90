!> The division of the processes into groups, each with one writer for `--writers`, or with a file
!> for the layer group. The blocks of a group form a larger block, its box.
module benchio_writer_groups
   use, intrinsic :: iso_fortran_env, only: int64
   use benchio_block_backend, only: lay_out
   use benchio_errors, only: error_t
   use benchio_grouping, only: find_grid, find_group
   use benchio_layout, only: coords_of, layout_t
   use benchio_mpi_checks, only: check
   use benchio_task, only: task_t
   use benchio_team, only: team_t
   use benchio_text, only: to_text
   use mpi_f08, only: MPI_Comm, MPI_COMM_NULL, MPI_Comm_free, MPI_Comm_rank, &
                      MPI_Comm_set_errhandler, MPI_Comm_split, MPI_ERRORS_RETURN, MPI_UNDEFINED
   implicit none(type, external)
   private

   public :: writer_group_t, check_groups

   !> The group of a process.
   type :: writer_group_t
      !> Its processes, and the rank of this one among them; 0 writes.
      type(MPI_Comm) :: comm = MPI_COMM_NULL
      integer :: member = 0
      !> Its box, as a block of the array.
      type(layout_t) :: box
      !> On the writer: where in the box the block of each member begins, from 0.
      integer(int64), allocatable :: places(:, :)
   contains
      procedure :: create
      procedure :: free
   end type writer_group_t

contains

   !> A usage error if the processes cannot be divided into this many groups, which `option` asks
   !> for.
   subroutine check_groups(task, processes, option, groups, error)
      type(task_t), intent(in) :: task
      integer, intent(in) :: processes, groups
      character(len=*), intent(in) :: option
      type(error_t), allocatable, intent(out) :: error
      type(layout_t) :: layout
      integer :: grid(3)

      call lay_out(task, processes, 0, layout, error)
      if (allocated(error)) return
      call find_grid(layout%procs, groups, grid, error)
      if (allocated(error)) error%text = option//"="//to_text(groups)//" "//error%text
   end subroutine check_groups

   !> Divides the processes into as many groups as `writers`, and starts the team of the
   !> writers; collective. The error may be this process's own.
   subroutine create(self, team, layout, writers, writing_team, error)
      class(writer_group_t), intent(inout) :: self
      type(team_t), intent(in) :: team
      type(layout_t), intent(in) :: layout
      integer, intent(in) :: writers
      type(team_t), intent(inout) :: writing_team
      type(error_t), allocatable, intent(out) :: error
      type(MPI_Comm) :: comm
      integer :: group, procs(3), member, ierr

      call find_group(layout, writers, group, self%box, error)
      if (allocated(error)) return
      procs = int(self%box%block/layout%block)
      call MPI_Comm_split(team%world, group, team%rank, self%comm, ierr)
      call check(ierr, "MPI_Comm_split", error)
      if (allocated(error)) return
      call MPI_Comm_set_errhandler(self%comm, MPI_ERRORS_RETURN, ierr)
      call check(ierr, "MPI_Comm_set_errhandler", error)
      if (allocated(error)) return
      call MPI_Comm_rank(self%comm, self%member, ierr)
      call check(ierr, "MPI_Comm_rank", error)
      if (allocated(error)) return
      call MPI_Comm_split(team%world, merge(0, MPI_UNDEFINED, self%member == 0), team%rank, comm, &
                          ierr)
      call check(ierr, "MPI_Comm_split", error)
      if (allocated(error) .or. self%member /= 0) return
      allocate (self%places(3, product(procs)))
      do member = 1, product(procs)
         self%places(:, member) = coords_of(procs, member - 1)*layout%block
      end do
      call writing_team%start(comm, error)
   end subroutine create

   !> Frees the communicator.
   subroutine free(self, error)
      class(writer_group_t), intent(inout) :: self
      type(error_t), allocatable, intent(out) :: error
      integer :: ierr

      if (self%comm%MPI_VAL == MPI_COMM_NULL%MPI_VAL) return
      call MPI_Comm_free(self%comm, ierr)
      call check(ierr, "MPI_Comm_free", error)
   end subroutine free

end module benchio_writer_groups
