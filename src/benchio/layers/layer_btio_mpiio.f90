!> The layers btio and btio-independent: NAS BT-IO through MPI-IO, by collective or
!> independent calls. Each call moves one step: one repetition of the file view's datatype,
!> and one element of a datatype that describes the cells in memory.
module benchio_layer_btio_mpiio
   use benchio_btio_backend, only: btio_backend_t
   use benchio_btio_sections, only: file_sections, memory_sections
   use benchio_datatypes, only: join_sections
   use benchio_errors, only: error_t, keep_first
   use benchio_layout, only: element_bytes
   use benchio_mpi_checks, only: check
   use benchio_mpiio_file, only: mpiio_file_t
   use benchio_posix_file, only: release_locks
   use benchio_team, only: team_t
   use benchio_wait_limit, only: limit_wait
   use mpi_f08, only: MPI_Datatype, MPI_File_read_at, MPI_File_read_at_all, MPI_File_write_at, &
                      MPI_File_write_at_all, MPI_OFFSET_KIND, MPI_Status
   implicit none(type, external)
   private

   public :: btio_mpiio_t

   type, extends(btio_backend_t) :: btio_mpiio_t
      !> Whether the calls are collective.
      logical :: collective = .true.
      !> Its datatypes describe the cells in memory, inside their halos, and in a step of the file.
      type(mpiio_file_t), private :: file
   contains
      procedure :: set_up
      procedure :: open_file
      procedure :: move_step
      procedure :: sync
      procedure :: close_file
      procedure :: take_down
   end type btio_mpiio_t

contains

   subroutine set_up(self, team, error)
      class(btio_mpiio_t), intent(inout) :: self
      type(team_t), intent(in) :: team
      type(error_t), allocatable, intent(out) :: error
      type(MPI_Datatype), allocatable :: sections(:)

      call memory_sections(self%cells%partition, sections, error)
      if (.not. allocated(error)) call join_sections(sections, self%file%in_memory, error)
      if (allocated(error)) return
      call file_sections(self%cells%partition, sections, error)
      if (.not. allocated(error)) call join_sections(sections, self%file%in_file, error)
      if (allocated(error)) return
      call self%file%set_up(team%world, self%path, self%hints_asked, error)
   end subroutine set_up

   subroutine open_file(self, writing, error)
      class(btio_mpiio_t), intent(inout) :: self
      logical, intent(in) :: writing
      type(error_t), allocatable, intent(out) :: error

      call self%file%open_file(writing, error)
   end subroutine open_file

   subroutine move_step(self, writing, step, error)
      class(btio_mpiio_t), intent(inout) :: self
      logical, intent(in) :: writing
      integer, intent(in) :: step
      type(error_t), allocatable, intent(out) :: error
      type(error_t), allocatable :: trouble
      character(len=:), allocatable :: call_name
      integer(MPI_OFFSET_KIND) :: offset
      type(MPI_Status) :: status
      integer :: ierr

      if (.not. self%file%is_open()) return
      call_name = "MPI_File_"//trim(merge("write", "read ", writing))//"_at" &
                  //trim(merge("_all", "    ", self%collective))
      ! An offset in the view, which contains only the cells of this process.
      offset = self%cells%partition%own_values()*(step - 1)
      associate (handle => self%file%handle, in_memory => self%file%in_memory)
         if (self%collective) then
            if (writing) then
               call MPI_File_write_at_all(handle, offset, self%cells%values, 1, in_memory, &
                                          status, ierr)
            else
               call MPI_File_read_at_all(handle, offset, self%cells%values, 1, in_memory, &
                                         status, ierr)
            end if
            call check(ierr, call_name//" of "//self%path, error)
         else
            if (writing) then
               call MPI_File_write_at(handle, offset, self%cells%values, 1, in_memory, &
                                      status, ierr)
            else
               call MPI_File_read_at(handle, offset, self%cells%values, 1, in_memory, &
                                     status, ierr)
            end if
            call check(ierr, call_name//" of "//self%path, error)
         end if
      end associate
      if (.not. allocated(error)) then
         call self%file%check_moved(call_name, status, self%file%in_memory, &
                                    self%cells%partition%own_values(), element_bytes, error)
      end if
      call limit_wait(error)
      if (writing .and. allocated(error)) call release_locks(self%path, trouble)
      call keep_first(error, trouble)
   end subroutine move_step

   subroutine sync(self, error)
      class(btio_mpiio_t), intent(inout) :: self
      type(error_t), allocatable, intent(out) :: error

      call self%file%sync(error)
   end subroutine sync

   subroutine close_file(self, error)
      class(btio_mpiio_t), intent(inout) :: self
      type(error_t), allocatable, intent(out) :: error

      call self%file%close_file(error)
      self%outcome%info_used = self%file%info_used
   end subroutine close_file

   subroutine take_down(self, error)
      class(btio_mpiio_t), intent(inout) :: self
      type(error_t), allocatable, intent(out) :: error

      call self%file%take_down(error)
   end subroutine take_down

end module benchio_layer_btio_mpiio
