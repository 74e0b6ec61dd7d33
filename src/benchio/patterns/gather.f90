!> `--writers`: lets a layer run on a subset of the processes only, like applications that keep
!> most of their processes away from the file system. The processes form groups, each with
!> one writer, which gathers the blocks of its group into one larger block and lets the layer
!> write it, or lets the layer read it and scatters it. The messages are measured.
!>
!> Memory: on a writer, the blocks of its group in addition to its own.
module benchio_gather
   use, intrinsic :: iso_fortran_env, only: int64
   use benchio_backend, only: backend_t
   use benchio_block_backend, only: block_backend_t
   use benchio_block_data, only: block_t
   use benchio_datatypes, only: free_datatype, make_section
   use benchio_errors, only: error_t, keep_first
   use benchio_mpi_checks, only: agree_to_proceed, check
   use benchio_team, only: team_t
   use benchio_text, only: string_t
   use benchio_writer_groups, only: writer_group_t
   use mpi_f08, only: MPI_Bcast, MPI_Datatype, MPI_DATATYPE_NULL, MPI_INTEGER8, MPI_Irecv, &
                      MPI_Isend, MPI_LOGICAL, MPI_Recv, MPI_Request, MPI_Send, &
                      MPI_STATUS_IGNORE, MPI_STATUSES_IGNORE, MPI_Waitall
   implicit none(type, external)
   private

   public :: gather_to_writers

   integer, parameter :: tag = 2

   type, extends(block_backend_t) :: gathered_t
      private
      !> The layer that the writers run, and the writers.
      class(block_backend_t), allocatable :: inner
      type(team_t) :: writing_team
      type(writer_group_t) :: group
      !> On the writer: the block of the whole group.
      type(block_t), pointer :: gathered => null()
      !> A block in its own memory, and in the writer's.
      type(MPI_Datatype) :: own = MPI_DATATYPE_NULL, part = MPI_DATATYPE_NULL
   contains
      procedure :: set_up
      procedure :: fill
      procedure :: poison
      procedure :: open_file
      procedure :: move_data
      procedure :: sync
      procedure :: close_file
      procedure :: guard_files
      procedure :: prepare_files
      procedure :: check_files
      procedure :: remove_files
      procedure :: list_cached
      procedure :: take_down
   end type gathered_t

contains

   !> Lets `layer`, a layer of the 3-D array, run on `writers` processes only.
   subroutine gather_to_writers(layer, writers)
      class(backend_t), allocatable, intent(inout) :: layer
      integer, intent(in) :: writers
      class(backend_t), allocatable :: inner
      type(gathered_t), allocatable :: outer

      call move_alloc(layer, inner)
      allocate (outer)
      outer%identity_t = inner%identity_t
      outer%writers = writers
      select type (inner)
      class is (block_backend_t)
         allocate (outer%inner, source=inner)
      end select
      call move_alloc(outer, layer)
   end subroutine gather_to_writers

   subroutine set_up(self, team, directory, error)
      class(gathered_t), intent(inout) :: self
      type(team_t), intent(in) :: team
      character(len=*), intent(in) :: directory
      type(error_t), allocatable, intent(out) :: error

      self%writers = self%task%writers
      call self%group%create(team, self%block%layout, self%writers, self%writing_team, error)
      self%box = self%group%box
      ! The next calls are collective among the writers, and then among all processes.
      call team%agree(error)
      if (allocated(error)) return
      if (self%group%member == 0) then
         call set_up_writer(self, directory, error)
      else
         call make_section(self%block%room(), self%block%layout%block, &
                           spread(self%block%halo, 1, 3), self%own, error)
      end if
      call team%agree(error)
      if (allocated(error)) return
      call share_plan(self, team, error)
   end subroutine set_up

   !> The writer's part: the memory of the group's block, and the layer.
   subroutine set_up_writer(self, directory, error)
      class(gathered_t), intent(inout) :: self
      character(len=*), intent(in) :: directory
      type(error_t), allocatable, intent(out) :: error
      logical :: proceed

      allocate (self%gathered)
      call self%gathered%create(self%group%box, self%task%halo, self%task%seed, error)
      if (.not. allocated(error)) then
         call make_section(self%gathered%room(), self%block%layout%block, spread(0_int64, 1, 3), &
                           self%part, error)
      end if
      ! Not team_t's agree: the processes that do not write do not know the error yet.
      call agree_to_proceed(self%writing_team%world, proceed, error)
      if (.not. proceed) return
      call self%inner%use_block(self%gathered, self%task)
      self%inner%name = self%name
      call self%inner%set_up(self%writing_team, directory, error)
   end subroutine set_up_writer

   !> Gives all processes the plan that the layer made on rank 0, with the file of their own group.
   subroutine share_plan(self, team, error)
      class(gathered_t), intent(inout) :: self
      type(team_t), intent(in) :: team
      type(error_t), allocatable, intent(out) :: error
      logical :: facts(6)
      integer(int64) :: numbers(2)
      integer :: ierr

      facts = .false.
      numbers = 0_int64
      self%first_path = ""
      self%path = ""
      if (self%group%member == 0) then
         associate (inner => self%inner)
            facts = [inner%can_sync, inner%uses_hints, inner%hides_hints, inner%is_whole, &
                     inner%always_syncs, inner%has_format]
            numbers = [int(inner%files, int64), inner%total_bytes]
            self%path = inner%path
            self%path_bytes = inner%path_bytes
            self%first_path = inner%first_path
            self%hints_asked = inner%hints_asked
            self%settings = inner%settings
         end associate
      end if
      call MPI_Bcast(facts, size(facts), MPI_LOGICAL, 0, team%world, ierr)
      call check(ierr, "MPI_Bcast", error)
      if (allocated(error)) return
      call MPI_Bcast(numbers, size(numbers), MPI_INTEGER8, 0, team%world, ierr)
      call check(ierr, "MPI_Bcast", error)
      if (allocated(error)) return
      call team%share_text(self%first_path, 0, error)
      if (allocated(error)) return
      call team%share_text(self%path, 0, error, self%group%comm)
      if (allocated(error)) return
      self%can_sync = facts(1)
      self%uses_hints = facts(2)
      self%hides_hints = facts(3)
      self%is_whole = facts(4)
      self%always_syncs = facts(5)
      self%has_format = facts(6)
      self%files = int(numbers(1))
      self%total_bytes = numbers(2)
   end subroutine share_plan

   !> Poisons the writer's memory, which still holds the data of an earlier write.
   subroutine fill(self)
      class(gathered_t), intent(inout) :: self

      call self%fill_array(0)
      if (self%group%member == 0) call self%inner%poison()
   end subroutine fill

   subroutine poison(self)
      class(gathered_t), intent(inout) :: self

      call self%block%poison()
      if (self%group%member == 0) call self%inner%poison()
   end subroutine poison

   subroutine open_file(self, writing, error)
      class(gathered_t), intent(inout) :: self
      logical, intent(in) :: writing
      type(error_t), allocatable, intent(out) :: error

      if (self%group%member /= 0) return
      self%inner%outcome%times = self%outcome%times
      call self%inner%open_file(writing, error)
   end subroutine open_file

   subroutine move_data(self, writing, error)
      class(gathered_t), intent(inout) :: self
      logical, intent(in) :: writing
      type(error_t), allocatable, intent(out) :: error
      type(error_t), allocatable :: trouble
      integer :: ierr

      if (writing) call move_blocks(self, .true., error)
      if (self%group%member == 0) call self%inner%move_data(writing, trouble)
      call keep_first(error, trouble)
      if (writing) return
      call move_blocks(self, .false., trouble)
      call keep_first(error, trouble)
      ! Only the library that has the file open may know where the data begin.
      if (self%group%member == 0) self%data_start = self%inner%data_start
      call MPI_Bcast(self%data_start, 1, MPI_INTEGER8, 0, self%group%comm, ierr)
      call check(ierr, "MPI_Bcast", error)
      self%outcome%was_direct = .true.
      if (self%group%member == 0) self%outcome%was_direct = self%inner%outcome%was_direct
   end subroutine move_data

   !> Moves the blocks of a group to its writer, or back.
   subroutine move_blocks(self, gathering, error)
      class(gathered_t), intent(inout) :: self
      logical, intent(in) :: gathering
      type(error_t), allocatable, intent(out) :: error
      integer :: ierr

      if (self%group%member == 0) then
         call exchange(self, gathering, self%gathered%cells, error)
      else if (gathering) then
         call MPI_Send(self%block%cells, 1, self%own, 0, tag, self%group%comm, ierr)
         call check(ierr, "MPI_Send", error)
      else
         call MPI_Recv(self%block%cells, 1, self%own, 0, tag, self%group%comm, MPI_STATUS_IGNORE, &
                       ierr)
         call check(ierr, "MPI_Recv", error)
      end if
   end subroutine move_blocks

   !> The writer's part of move_blocks.
   subroutine exchange(self, gathering, cells, error)
      class(gathered_t), intent(inout) :: self
      logical, intent(in) :: gathering
      integer(int64), intent(inout), asynchronous, contiguous :: &
         cells(1 - self%block%halo:, 1 - self%block%halo:, 1 - self%block%halo:)
      type(error_t), allocatable, intent(out) :: error
      type(error_t), allocatable :: trouble
      type(MPI_Request) :: requests(size(self%group%places, 2))
      integer(int64) :: from(3), to(3)
      integer :: member, pending, ierr

      pending = 0
      do member = 2, size(self%group%places, 2)
         from = self%group%places(:, member) + 1
         pending = pending + 1
         if (gathering) then
            call MPI_Irecv(cells(from(1), from(2), from(3)), 1, self%part, member - 1, tag, &
                           self%group%comm, requests(pending), ierr)
            call check(ierr, "MPI_Irecv", trouble)
         else
            call MPI_Isend(cells(from(1), from(2), from(3)), 1, self%part, member - 1, tag, &
                           self%group%comm, requests(pending), ierr)
            call check(ierr, "MPI_Isend", trouble)
         end if
         if (allocated(trouble)) pending = pending - 1
         call keep_first(error, trouble)
      end do
      from = self%group%places(:, 1) + 1
      to = self%group%places(:, 1) + self%block%layout%block
      associate (n => self%block%layout%block)
         if (gathering) then
            cells(from(1):to(1), from(2):to(2), from(3):to(3)) = &
               self%block%cells(1:n(1), 1:n(2), 1:n(3))
         else
            self%block%cells(1:n(1), 1:n(2), 1:n(3)) = &
               cells(from(1):to(1), from(2):to(2), from(3):to(3))
         end if
      end associate
      call MPI_Waitall(pending, requests, MPI_STATUSES_IGNORE, ierr)
      call check(ierr, "MPI_Waitall", error)
   end subroutine exchange

   subroutine sync(self, error)
      class(gathered_t), intent(inout) :: self
      type(error_t), allocatable, intent(out) :: error

      if (self%group%member == 0) call self%inner%sync(error)
   end subroutine sync

   subroutine close_file(self, error)
      class(gathered_t), intent(inout) :: self
      type(error_t), allocatable, intent(out) :: error

      if (self%group%member /= 0) return
      call self%inner%close_file(error)
      self%outcome%info_used = self%inner%outcome%info_used
      self%outcome%times = self%inner%outcome%times
      self%data_start = self%inner%data_start
   end subroutine close_file

   ! The writers handle the files.

   subroutine guard_files(self)
      class(gathered_t), intent(in) :: self

      if (self%group%member == 0) call self%inner%guard_files()
   end subroutine guard_files

   subroutine prepare_files(self, error)
      class(gathered_t), intent(in) :: self
      type(error_t), allocatable, intent(out) :: error

      if (self%group%member == 0) call self%inner%prepare_files(error)
   end subroutine prepare_files

   subroutine check_files(self, error)
      class(gathered_t), intent(in) :: self
      type(error_t), allocatable, intent(out) :: error

      if (self%group%member == 0) call self%inner%check_files(error)
   end subroutine check_files

   subroutine remove_files(self, error)
      class(gathered_t), intent(in) :: self
      type(error_t), allocatable, intent(out) :: error

      if (self%group%member == 0) call self%inner%remove_files(error)
   end subroutine remove_files

   subroutine list_cached(self, paths, error)
      class(gathered_t), intent(in) :: self
      type(string_t), allocatable, intent(out) :: paths(:)
      type(error_t), allocatable, intent(out) :: error

      allocate (paths(0))
      if (self%group%member == 0) call self%inner%list_cached(paths, error)
   end subroutine list_cached

   subroutine take_down(self, error)
      class(gathered_t), intent(inout) :: self
      type(error_t), allocatable, intent(out) :: error
      type(error_t), allocatable :: trouble

      if (associated(self%gathered)) then
         if (associated(self%inner%block)) call self%inner%take_down(error)
         call self%gathered%free()
         deallocate (self%gathered)
      end if
      call free_datatype(self%own, error)
      call free_datatype(self%part, error)
      call self%group%free(trouble)
      call keep_first(error, trouble)
      call self%writing_team%finish(trouble)
      call keep_first(error, trouble)
   end subroutine take_down

end module benchio_gather
