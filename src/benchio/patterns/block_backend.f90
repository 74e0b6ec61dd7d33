!> The base of the layers of the 3-D array; each process has one block with a
!> halo (`--halo`): the block's memory, its values and their comparison. A layer adds the files and
!> moves the block.
module benchio_block_backend
   use, intrinsic :: iso_fortran_env, only: int64
   use benchio_backend, only: backend_t
   use benchio_block_data, only: block_t
   use benchio_decomposition, only: process_grid
   use benchio_difference, only: difference_t
   use benchio_errors, only: error_t, fail, status_usage
   use benchio_layout, only: element_bytes, layout_t, make_layout
   use benchio_task, only: task_t
   use benchio_team, only: team_t
   use benchio_text, only: to_text
   use benchio_volume, only: multiply
   implicit none(type, external)
   private

   public :: block_backend_t, lay_out

   type, abstract, extends(backend_t) :: block_backend_t
      !> The data to write, and the memory to read into. Its address is constant until
      !> release.
      type(block_t), pointer :: block => null()
      !> Whether this layer allocated the block.
      logical, private :: owns_block = .false.
      type(task_t) :: task

      ! Set by set_up.
      !> Whether `path` holds the whole array, or only the block `box` of it. The data begin at byte
      !> `data_start` of the file, which is negative if the library does not report it.
      logical :: is_whole = .false.
      type(layout_t) :: box
      integer(int64) :: data_start = 0_int64
   contains
      procedure, nopass :: check_task
      procedure :: prepare
      procedure :: use_block
      procedure :: plan_library_file
      procedure :: fill
      procedure :: fill_array
      procedure :: poison
      procedure :: compare
      procedure :: compare_array
      procedure :: release
      procedure(set_up_i), deferred :: set_up
      procedure(take_down_i), deferred :: take_down
   end type block_backend_t

   abstract interface
      !> The layer's part of prepare, after the block was allocated.
      subroutine set_up_i(self, team, directory, error)
         import :: block_backend_t, error_t, team_t
         implicit none(type, external)
         class(block_backend_t), intent(inout) :: self
         type(team_t), intent(in) :: team
         character(len=*), intent(in) :: directory
         type(error_t), allocatable, intent(out) :: error
      end subroutine set_up_i

      !> The layer's part of release, also after a failed set_up.
      subroutine take_down_i(self, error)
         import :: block_backend_t, error_t
         implicit none(type, external)
         class(block_backend_t), intent(inout) :: self
         type(error_t), allocatable, intent(out) :: error
      end subroutine take_down_i
   end interface

contains

   subroutine check_task(task, processes, error)
      type(task_t), intent(in) :: task
      integer, intent(in) :: processes
      type(error_t), allocatable, intent(out) :: error
      type(layout_t) :: layout

      call lay_out(task, processes, 0, layout, error)
   end subroutine check_task

   !> Cuts the array, and returns the layout of process `rank`.
   subroutine lay_out(task, processes, rank, layout, error)
      type(task_t), intent(in) :: task
      integer, intent(in) :: processes, rank
      type(layout_t), intent(out) :: layout
      type(error_t), allocatable, intent(out) :: error
      integer :: procs(3)

      call process_grid(task%decomposition, processes, procs, error)
      if (allocated(error)) return
      call make_layout(task%sizes, task%is_global, procs, rank, layout, error)
      if (.not. allocated(error)) call check_halo(layout%block, task%halo, error)
   end subroutine lay_out

   !> An error if a block with its halo has too many elements to count. MPI takes the length of
   !> an axis as a default integer.
   subroutine check_halo(block, halo, error)
      integer(int64), intent(in) :: block(3)
      integer, intent(in) :: halo
      type(error_t), allocatable, intent(out) :: error
      integer(int64) :: bytes

      if (any(block + 2_int64*halo > huge(halo))) then
         call fail(error, "--halo="//to_text(halo)//" is too large: an axis of a block inside it " &
                   //"holds at most "//to_text(huge(halo))//" elements", status_usage)
      else
         call multiply([block + 2_int64*halo, element_bytes], bytes, error)
      end if
   end subroutine check_halo

   subroutine prepare(self, team, task, directory, error)
      class(block_backend_t), intent(inout) :: self
      type(team_t), intent(in) :: team
      type(task_t), intent(in) :: task
      character(len=*), intent(in) :: directory
      type(error_t), allocatable, intent(out) :: error
      type(layout_t) :: layout

      call lay_out(task, team%size, team%rank, layout, error)
      if (allocated(error)) return
      allocate (self%block)
      self%owns_block = .true.
      call self%block%create(layout, task%halo, task%seed, error)
      ! set_up is collective: all processes need their memory first.
      call team%agree(error)
      if (allocated(error)) return
      call self%use_block(self%block, task)
      self%writers = team%size
      call self%set_up(team, directory, error)
   end subroutine prepare

   !> Makes the layer use a block, which its owner must keep until after release.
   subroutine use_block(self, block, task)
      class(block_backend_t), intent(inout) :: self
      type(block_t), intent(in), pointer :: block
      type(task_t), intent(in) :: task

      self%block => block
      self%box = block%layout
      self%total_bytes = block%layout%whole_elements()*element_bytes
      self%task = task
      self%hints_asked = task%hints
   end subroutine use_block

   !> Plans one shared file in a library's own format.
   subroutine plan_library_file(self, team, directory)
      class(block_backend_t), intent(inout) :: self
      type(team_t), intent(in) :: team
      character(len=*), intent(in) :: directory

      call self%plan_shared_file(team, directory)
      self%has_format = .true.
      self%is_whole = .true.
      self%uses_hints = .true.
   end subroutine plan_library_file

   subroutine fill(self)
      class(block_backend_t), intent(inout) :: self

      call self%fill_array(0)
   end subroutine fill

   !> Generates the data of array `number`, from 0, for a layer that writes several arrays
   !> to its file.
   subroutine fill_array(self, number)
      class(block_backend_t), intent(inout) :: self
      integer, intent(in) :: number

      call self%block%fill(number*self%block%layout%whole_elements())
   end subroutine fill_array

   !> Layers with further memory override this to poison that too.
   subroutine poison(self)
      class(block_backend_t), intent(inout) :: self

      call self%block%poison()
   end subroutine poison

   subroutine compare(self, res)
      class(block_backend_t), intent(inout) :: self
      type(difference_t), intent(out) :: res

      call self%compare_array(0, res)
   end subroutine compare

   !> Compares the data read with those that `fill_array` generates.
   subroutine compare_array(self, number, res)
      class(block_backend_t), intent(in) :: self
      integer, intent(in) :: number
      type(difference_t), intent(out) :: res
      integer(int64) :: before

      res = self%block%compare(number*self%block%layout%whole_elements())
      res%path = self%path
      before = res%element
      if (.not. self%is_whole) before = self%box%index_in_block(res%element)
      res%byte = -1_int64
      if (self%data_start >= 0_int64) res%byte = self%data_start + before*element_bytes
   end subroutine compare_array

   subroutine release(self, error)
      class(block_backend_t), intent(inout) :: self
      type(error_t), allocatable, intent(out) :: error

      call self%take_down(error)
      if (self%owns_block) then
         call self%block%free()
         deallocate (self%block)
      end if
      self%owns_block = .false.
      self%block => null()
   end subroutine release

end module benchio_block_backend
