!> The base of the layers of NAS BT-IO: time steps of a grid that is cut into cells, appended
!> to a shared file and read back in the same order. This module holds the cells' memory, their
!> values and the loop over the steps. A layer moves the cells of one step.
!>
!> Memory: the cells of one step. The values are generated and compared between the steps,
!> untimed.
module benchio_btio_backend
   use, intrinsic :: iso_fortran_env, only: int64
   use benchio_backend, only: backend_t
   use benchio_btio_data, only: cells_t
   use benchio_btio_partition, only: make_partition, partition_t
   use benchio_difference, only: difference_t
   use benchio_errors, only: error_t, keep_first
   use benchio_layout, only: element_bytes
   use benchio_task, only: task_t
   use benchio_team, only: team_t
   use mpi_f08, only: MPI_Comm, MPI_COMM_NULL
   implicit none(type, external)
   private

   public :: btio_backend_t

   type, abstract, extends(backend_t) :: btio_backend_t
      !> The data to write, and the memory to read into.
      type(cells_t) :: cells
      !> The byte of the file where the first step begins.
      integer(int64) :: data_start = 0_int64
      type(MPI_Comm), private :: comm = MPI_COMM_NULL
      !> Whether to compare the data read, and the differences so far.
      logical, private :: verify = .false.
      type(difference_t), private :: seen
   contains
      procedure, nopass :: check_task
      procedure :: prepare
      procedure :: fill
      procedure :: poison
      procedure :: move_data
      procedure :: compare
      procedure :: release
      procedure(set_up_i), deferred :: set_up
      procedure(move_i), deferred :: move_step
      procedure(take_down_i), deferred :: take_down
   end type btio_backend_t

   abstract interface
      !> The layer's part of prepare, after the cells were allocated.
      subroutine set_up_i(self, team, error)
         import :: btio_backend_t, error_t, team_t
         implicit none(type, external)
         class(btio_backend_t), intent(inout) :: self
         type(team_t), intent(in) :: team
         type(error_t), allocatable, intent(out) :: error
      end subroutine set_up_i

      !> Writes or reads the cells of a step, from 1 on. Called in the order of the steps by all
      !> processes, even after an error.
      subroutine move_i(self, writing, step, error)
         import :: btio_backend_t, error_t
         implicit none(type, external)
         class(btio_backend_t), intent(inout) :: self
         logical, intent(in) :: writing
         integer, intent(in) :: step
         type(error_t), allocatable, intent(out) :: error
      end subroutine move_i

      !> The layer's part of release, also after a failed set_up.
      subroutine take_down_i(self, error)
         import :: btio_backend_t, error_t
         implicit none(type, external)
         class(btio_backend_t), intent(inout) :: self
         type(error_t), allocatable, intent(out) :: error
      end subroutine take_down_i
   end interface

contains

   pure subroutine check_task(task, processes, error)
      type(task_t), intent(in) :: task
      integer, intent(in) :: processes
      type(error_t), allocatable, intent(out) :: error
      type(partition_t) :: partition

      call make_partition(task%sizes, task%is_global, task%steps, processes, 0, partition, error)
   end subroutine check_task

   subroutine prepare(self, team, task, directory, error)
      class(btio_backend_t), intent(inout) :: self
      type(team_t), intent(in) :: team
      type(task_t), intent(in) :: task
      character(len=*), intent(in) :: directory
      type(error_t), allocatable, intent(out) :: error
      type(partition_t) :: partition

      call make_partition(task%sizes, task%is_global, task%steps, team%size, team%rank, partition, &
                          error)
      if (allocated(error)) return
      call self%cells%create(partition, task%seed, error)
      ! set_up is collective: all processes need their memory first.
      call team%agree(error)
      if (allocated(error)) return
      self%comm = team%world
      self%verify = task%verify
      self%hints_asked = task%hints
      self%uses_hints = .true.
      call self%settings%add_integer("steps", int(partition%steps, int64))
      self%total_bytes = partition%step_bytes()*partition%steps
      call self%plan_shared_file(team, directory)
      call self%set_up(team, error)
   end subroutine prepare

   !> Generates the first step; move_data generates the others.
   subroutine fill(self)
      class(btio_backend_t), intent(inout) :: self

      call self%cells%fill(1)
   end subroutine fill

   subroutine poison(self)
      class(btio_backend_t), intent(inout) :: self

      call self%cells%poison()
      self%seen = difference_t()
   end subroutine poison

   !> Each step is read into poisoned memory. The last one stays there for `compare`.
   subroutine move_data(self, writing, error)
      class(btio_backend_t), intent(inout) :: self
      logical, intent(in) :: writing
      type(error_t), allocatable, intent(out) :: error
      type(error_t), allocatable :: trouble
      integer :: step
      logical :: proceed

      do step = 1, self%cells%partition%steps
         if (step > 1) then
            call self%outcome%untimed%begin(self%comm, error, proceed)
            if (proceed .and. writing) then
               call self%cells%fill(step)
            else if (proceed) then
               if (self%verify) call self%cells%compare(step - 1, self%seen)
               call self%cells%poison()
            end if
            call self%outcome%untimed%finish(self%comm, error)
            if (.not. proceed) return
         end if
         call self%move_step(writing, step, trouble)
         call keep_first(error, trouble)
      end do
   end subroutine move_data

   subroutine compare(self, res)
      class(btio_backend_t), intent(inout) :: self
      type(difference_t), intent(out) :: res

      call self%cells%compare(self%cells%partition%steps, self%seen)
      res = self%seen
      res%path = self%path
      res%byte = self%data_start + res%element*element_bytes
   end subroutine compare

   subroutine release(self, error)
      class(btio_backend_t), intent(inout) :: self
      type(error_t), allocatable, intent(out) :: error

      call self%take_down(error)
      if (allocated(self%cells%values)) deallocate (self%cells%values)
   end subroutine release

end module benchio_btio_backend
