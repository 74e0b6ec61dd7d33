!> The base of the layers of the 3-D array on MPI-IO: one shared file, or one for each group of
!> processes. The file view of each process is its block of the array.
module benchio_mpiio_backend
   use, intrinsic :: iso_fortran_env, only: int64
   use benchio_block_backend, only: block_backend_t
   use benchio_datatypes, only: make_section
   use benchio_errors, only: error_t, keep_first
   use benchio_layout, only: element_bytes, layout_t
   use benchio_mpi_checks, only: check
   use benchio_mpiio_file, only: mpiio_file_t
   use benchio_posix_file, only: release_locks
   use benchio_team, only: team_t
   use benchio_wait_limit, only: limit_wait
   use mpi_f08, only: MPI_File_read, MPI_File_read_all, MPI_File_write, MPI_File_write_all, &
                      MPI_Status
   implicit none(type, external)
   private

   public :: mpiio_backend_t

   type, abstract, extends(block_backend_t) :: mpiio_backend_t
      !> Its datatypes describe the block inside its halo, and in the array. Since the view repeats
      !> the latter, a second write goes to this process's block of a second array.
      type(mpiio_file_t) :: file
   contains
      procedure :: set_up
      procedure :: set_up_file
      procedure :: open_file
      procedure :: move_block
      procedure :: sync
      procedure :: close_file
      procedure :: take_down
   end type mpiio_backend_t

contains

   subroutine set_up(self, team, directory, error)
      class(mpiio_backend_t), intent(inout) :: self
      type(team_t), intent(in) :: team
      character(len=*), intent(in) :: directory
      type(error_t), allocatable, intent(out) :: error

      call self%set_up_file(team, directory, error)
   end subroutine set_up

   !> For layers that extend this one. The file holds the whole array, or only `box`, the blocks of
   !> the team; `number` is then the number of the file.
   subroutine set_up_file(self, team, directory, error, box, number)
      class(mpiio_backend_t), intent(inout) :: self
      type(team_t), intent(in) :: team
      character(len=*), intent(in) :: directory
      type(error_t), allocatable, intent(out) :: error
      type(layout_t), intent(in), optional :: box
      integer, intent(in), optional :: number
      integer(int64) :: whole(3), start(3)

      call self%plan_shared_file(team, directory, number)
      self%is_whole = .not. present(box)
      self%uses_hints = .true.
      associate (layout => self%block%layout)
         call make_section(self%block%room(), layout%block, spread(self%block%halo, 1, 3), &
                           self%file%in_memory, error)
         if (allocated(error)) return
         whole = layout%whole
         start = layout%start
         if (present(box)) then
            whole = box%block
            start = start - box%start
         end if
         call make_section(whole, layout%block, start, self%file%in_file, error)
         if (allocated(error)) return
      end associate
      call self%file%set_up(team%world, self%path, self%hints_asked, error)
   end subroutine set_up_file

   subroutine open_file(self, writing, error)
      class(mpiio_backend_t), intent(inout) :: self
      logical, intent(in) :: writing
      type(error_t), allocatable, intent(out) :: error

      call self%file%open_file(writing, error)
   end subroutine open_file

   !> Writes or reads the block by one call. After a failed write, releases the lock that the
   !> library may hold and the other processes wait for.
   subroutine move_block(self, writing, collective, error)
      class(mpiio_backend_t), intent(inout) :: self
      logical, intent(in) :: writing, collective
      type(error_t), allocatable, intent(out) :: error
      type(error_t), allocatable :: trouble
      character(len=:), allocatable :: call_name
      type(MPI_Status) :: status
      integer :: ierr

      call_name = "MPI_File_"//trim(merge("write", "read ", writing)) &
                  //trim(merge("_all", "    ", collective))
      associate (handle => self%file%handle, in_memory => self%file%in_memory)
         if (collective) then
            if (writing) then
               call MPI_File_write_all(handle, self%block%cells, 1, in_memory, status, ierr)
            else
               call MPI_File_read_all(handle, self%block%cells, 1, in_memory, status, ierr)
            end if
            call check(ierr, call_name//" of "//self%path, error)
         else
            if (writing) then
               call MPI_File_write(handle, self%block%cells, 1, in_memory, status, ierr)
            else
               call MPI_File_read(handle, self%block%cells, 1, in_memory, status, ierr)
            end if
            call check(ierr, call_name//" of "//self%path, error)
         end if
      end associate
      if (.not. allocated(error)) then
         call self%file%check_moved(call_name, status, self%file%in_memory, &
                                    self%block%layout%block_elements(), element_bytes, error)
      end if
      call limit_wait(error)
      if (writing .and. allocated(error)) call release_locks(self%path, trouble)
      call keep_first(error, trouble)
   end subroutine move_block

   subroutine sync(self, error)
      class(mpiio_backend_t), intent(inout) :: self
      type(error_t), allocatable, intent(out) :: error

      call self%file%sync(error)
   end subroutine sync

   subroutine close_file(self, error)
      class(mpiio_backend_t), intent(inout) :: self
      type(error_t), allocatable, intent(out) :: error

      call self%file%close_file(error)
      self%outcome%info_used = self%file%info_used
   end subroutine close_file

   subroutine take_down(self, error)
      class(mpiio_backend_t), intent(inout) :: self
      type(error_t), allocatable, intent(out) :: error

      call self%file%take_down(error)
   end subroutine take_down

end module benchio_mpiio_backend
