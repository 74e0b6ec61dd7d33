!> `--writers`: a layer at work on some of the processes only, as applications do
!> it that keep most of their processes away from the file system. The processes
!> are divided into groups whose blocks make up a larger block; one process of a
!> group gathers it and has the layer write it, or has it read and hands it back.
!> The transport of the blocks is inside the clock.
!>
!> Memory: a writer has the blocks of its group once more, beside its own.
module gather
   use, intrinsic :: iso_fortran_env, only: int64
   use backend, only: backend_t
   use block_backend, only: block_backend_t, lay_out
   use block_data, only: block_t
   use datatypes, only: free_datatype, make_section
   use errors, only: error_t, fail, keep_first, status_usage
   use layout, only: coords_of, element_bytes, layout_t
   use mpi_checks, only: check
   use mpi_f08, only: MPI_Bcast, MPI_Comm, MPI_COMM_NULL, MPI_Comm_free, MPI_Comm_rank, &
                      MPI_Comm_set_errhandler, MPI_Comm_split, MPI_Datatype, MPI_DATATYPE_NULL, &
                      MPI_ERRORS_RETURN, MPI_INTEGER8, MPI_Irecv, MPI_Isend, MPI_LOGICAL, &
                      MPI_Recv, MPI_Request, MPI_Send, MPI_STATUS_IGNORE, MPI_STATUSES_IGNORE, &
                      MPI_UNDEFINED, MPI_Waitall
   use task, only: task_t
   use team, only: team_t
   use text, only: to_text
   implicit none(type, external)
   private

   public :: gather_to_writers, check_writers

   integer, parameter :: tag = 2

   type, extends(block_backend_t) :: gathered_t
      private
      !> The layer that the writers use.
      class(block_backend_t), allocatable :: inner
      type(team_t) :: writing_team
      type(MPI_Comm) :: group = MPI_COMM_NULL
      !> Which process of its group this is; 0 writes.
      integer :: member = 0
      !> The block of the whole group, and its memory on the writer.
      type(layout_t) :: box
      type(block_t), pointer :: gathered => null()
      !> On the writer: where in the box the block of each member begins.
      integer(int64), allocatable :: places(:, :)
      !> A block in its own memory, and in that of the writer.
      type(MPI_Datatype) :: own = MPI_DATATYPE_NULL, part = MPI_DATATYPE_NULL
   contains
      procedure :: set_up
      procedure :: fill
      procedure :: forget
      procedure :: open_file
      procedure :: write_data
      procedure :: read_data
      procedure :: sync
      procedure :: close_file
      procedure :: byte_of
      procedure :: make_way
      procedure :: check_files
      procedure :: remove_files
      procedure :: flush_pages
      procedure :: drop_pages
      procedure :: take_down
   end type gathered_t

contains

   !> A usage error when the processes cannot be divided among so many writers.
   subroutine check_writers(task, processes, error)
      type(task_t), intent(in) :: task
      integer, intent(in) :: processes
      type(error_t), allocatable, intent(out) :: error
      type(layout_t) :: layout
      integer :: grid(3)

      call lay_out(task, processes, 0, layout, error)
      if (.not. allocated(error)) call find_grid(layout%procs, task%writers, grid, error)
   end subroutine check_writers

   !> Has `layer`, a layer of the 3-D array, work on `writers` processes only.
   subroutine gather_to_writers(layer, writers)
      class(backend_t), allocatable, intent(inout) :: layer
      integer, intent(in) :: writers
      class(backend_t), allocatable :: inner
      type(gathered_t), allocatable :: outer

      call move_alloc(layer, inner)
      allocate (outer)
      outer%name = inner%name
      outer%pattern = inner%pattern
      outer%interface_name = inner%interface_name
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
      call make_groups(self, team, error)
      ! What follows is collective among the writers, and then among all.
      call team%agree(error)
      if (allocated(error)) return
      if (self%member == 0) then
         call set_up_writer(self, directory, error)
      else
         call make_section(self%block%layout%block + 2, self%block%layout%block, &
                           [1_int64, 1_int64, 1_int64], self%own, error)
      end if
      call team%agree(error)
      if (allocated(error)) return
      call share_facts(self, team, error)
   end subroutine set_up

   !> Divides the processes into as many groups as there are to be writers.
   subroutine make_groups(self, team, error)
      class(gathered_t), intent(inout) :: self
      type(team_t), intent(in) :: team
      type(error_t), allocatable, intent(out) :: error
      type(MPI_Comm) :: comm
      integer :: grid(3), place(3), ierr

      associate (layout => self%block%layout)
         call find_grid(layout%procs, self%writers, grid, error)
         if (allocated(error)) return
         place = layout%coords*grid/layout%procs
         self%box = layout
         self%box%start = first_of(place)*layout%block
         self%box%block = (first_of(place + 1) - first_of(place))*layout%block
      end associate
      call MPI_Comm_split(team%world, place(3) + grid(3)*(place(2) + grid(2)*place(1)), team%rank, &
                          self%group, ierr)
      call check(ierr, "MPI_Comm_split", error)
      if (allocated(error)) return
      call MPI_Comm_set_errhandler(self%group, MPI_ERRORS_RETURN, ierr)
      call check(ierr, "MPI_Comm_set_errhandler", error)
      if (allocated(error)) return
      call MPI_Comm_rank(self%group, self%member, ierr)
      call check(ierr, "MPI_Comm_rank", error)
      if (allocated(error)) return
      call MPI_Comm_split(team%world, merge(0, MPI_UNDEFINED, self%member == 0), team%rank, comm, &
                          ierr)
      call check(ierr, "MPI_Comm_split", error)
      if (allocated(error) .or. self%member /= 0) return
      call self%writing_team%start(comm, error)

   contains

      !> The first processes of a group, along each axis.
      pure function first_of(place) result(res)
         integer, intent(in) :: place(3)
         integer :: res(3)

         res = (place*self%block%layout%procs + grid - 1)/grid
      end function first_of

   end subroutine make_groups

   !> How many groups there are along each axis. As many as can be along the last:
   !> the box of a group is then the longest stretch of the file.
   pure subroutine find_grid(procs, groups, res, error)
      integer, intent(in) :: procs(3), groups
      integer, intent(out) :: res(3)
      type(error_t), allocatable, intent(out) :: error
      integer :: second, third

      do third = min(procs(3), groups), 1, -1
         if (mod(groups, third) /= 0) cycle
         do second = min(procs(2), groups/third), 1, -1
            if (mod(groups/third, second) /= 0) cycle
            res = [groups/third/second, second, third]
            if (res(1) <= procs(1)) return
         end do
      end do
      if (groups > product(procs)) then
         call fail(error, "--writers="//to_text(groups)//" are more than the " &
                   //to_text(product(procs))//" processes", status_usage)
         return
      end if
      call fail(error, "--writers="//to_text(groups)//" cannot be had from a grid of " &
                //to_text(procs(1))//" x "//to_text(procs(2))//" x "//to_text(procs(3)) &
                //" processes; any number of them can with --decomposition=slab", status_usage)
   end subroutine find_grid

   !> The writer's part: the memory of the box, and the layer.
   subroutine set_up_writer(self, directory, error)
      class(gathered_t), intent(inout) :: self
      character(len=*), intent(in) :: directory
      type(error_t), allocatable, intent(out) :: error
      integer :: groups_procs(3), member, c(3)

      associate (layout => self%block%layout)
         groups_procs = int(self%box%block/layout%block)
         allocate (self%places(3, product(groups_procs)))
         do member = 1, product(groups_procs)
            c = coords_of(groups_procs, member - 1)
            self%places(:, member) = c*layout%block
         end do
         call make_section(self%box%block + 2, layout%block, [0_int64, 0_int64, 0_int64], &
                           self%part, error)
         if (allocated(error)) return
      end associate
      allocate (self%gathered)
      call self%gathered%create(self%box, self%task%seed, error)
      call self%writing_team%agree(error)
      if (allocated(error)) return
      call self%inner%lend(self%gathered, self%task)
      self%inner%name = self%name
      call self%inner%set_up(self%writing_team, directory, error)
   end subroutine set_up_writer

   !> All know of the layer what rank 0's knows, and of their file what the writer
   !> knows of it.
   subroutine share_facts(self, team, error)
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
      if (self%member == 0) then
         associate (inner => self%inner)
            facts = [inner%can_sync, inner%uses_hints, inner%hides_hints, inner%is_whole, &
                     inner%always_syncs, inner%has_format]
            numbers = [int(inner%files, int64), inner%total_bytes]
            self%path = inner%path
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
      call team%share_text(self%path, 0, error, self%group)
      if (allocated(error)) return
      self%can_sync = facts(1)
      self%uses_hints = facts(2)
      self%hides_hints = facts(3)
      self%is_whole = facts(4)
      self%always_syncs = facts(5)
      self%has_format = facts(6)
      self%files = int(numbers(1))
      self%total_bytes = numbers(2)
   end subroutine share_facts

   !> The writer's memory still has the data of an earlier write.
   subroutine fill(self)
      class(gathered_t), intent(inout) :: self

      call self%block%fill()
      if (self%member == 0) call self%inner%forget()
   end subroutine fill

   subroutine forget(self)
      class(gathered_t), intent(inout) :: self

      call self%block%forget()
      if (self%member == 0) call self%inner%forget()
   end subroutine forget

   subroutine open_file(self, writing, error)
      class(gathered_t), intent(inout) :: self
      logical, intent(in) :: writing
      type(error_t), allocatable, intent(out) :: error

      if (self%member == 0) call self%inner%open_file(writing, error)
   end subroutine open_file

   subroutine write_data(self, error)
      class(gathered_t), intent(inout) :: self
      type(error_t), allocatable, intent(out) :: error
      type(error_t), allocatable :: trouble

      call move_blocks(self, .true., error)
      if (self%member /= 0) return
      call self%inner%write_data(trouble)
      call keep_first(error, trouble)
   end subroutine write_data

   subroutine read_data(self, error)
      class(gathered_t), intent(inout) :: self
      type(error_t), allocatable, intent(out) :: error
      type(error_t), allocatable :: trouble
      integer :: ierr

      if (self%member == 0) call self%inner%read_data(error)
      call move_blocks(self, .false., trouble)
      call keep_first(error, trouble)
      ! Where the data begin, only a library may know that has the file open.
      if (self%member == 0) self%data_start = self%inner%data_start
      call MPI_Bcast(self%data_start, 1, MPI_INTEGER8, 0, self%group, ierr)
      call check(ierr, "MPI_Bcast", trouble)
      call keep_first(error, trouble)
      self%was_direct = .true.
      if (self%member == 0) self%was_direct = self%inner%was_direct
   end subroutine read_data

   !> Brings the blocks of a group to its writer, or back.
   subroutine move_blocks(self, gathering, error)
      class(gathered_t), intent(inout) :: self
      logical, intent(in) :: gathering
      type(error_t), allocatable, intent(out) :: error
      integer :: ierr

      if (self%member == 0) then
         call exchange(self, gathering, self%gathered%cells, error)
      else if (gathering) then
         call MPI_Send(self%block%cells, 1, self%own, 0, tag, self%group, ierr)
         call check(ierr, "MPI_Send", error)
      else
         call MPI_Recv(self%block%cells, 1, self%own, 0, tag, self%group, MPI_STATUS_IGNORE, ierr)
         call check(ierr, "MPI_Recv", error)
      end if
   end subroutine move_blocks

   !> The writer's part of it.
   subroutine exchange(self, gathering, cells, error)
      class(gathered_t), intent(inout) :: self
      logical, intent(in) :: gathering
      integer(int64), intent(inout), asynchronous, contiguous :: cells(0:, 0:, 0:)
      type(error_t), allocatable, intent(out) :: error
      type(error_t), allocatable :: trouble
      type(MPI_Request) :: requests(size(self%places, 2))
      integer(int64) :: from(3), to(3)
      integer :: member, pending, ierr

      pending = 0
      do member = 2, size(self%places, 2)
         from = self%places(:, member) + 1
         pending = pending + 1
         if (gathering) then
            call MPI_Irecv(cells(from(1), from(2), from(3)), 1, self%part, member - 1, tag, &
                           self%group, requests(pending), ierr)
            call check(ierr, "MPI_Irecv", trouble)
         else
            call MPI_Isend(cells(from(1), from(2), from(3)), 1, self%part, member - 1, tag, &
                           self%group, requests(pending), ierr)
            call check(ierr, "MPI_Isend", trouble)
         end if
         if (allocated(trouble)) pending = pending - 1
         call keep_first(error, trouble)
      end do
      from = self%places(:, 1) + 1
      to = self%places(:, 1) + self%block%layout%block
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
      call check(ierr, "MPI_Waitall", trouble)
      call keep_first(error, trouble)
   end subroutine exchange

   subroutine sync(self, error)
      class(gathered_t), intent(inout) :: self
      type(error_t), allocatable, intent(out) :: error

      if (self%member == 0) call self%inner%sync(error)
   end subroutine sync

   subroutine close_file(self, error)
      class(gathered_t), intent(inout) :: self
      type(error_t), allocatable, intent(out) :: error

      if (self%member /= 0) return
      call self%inner%close_file(error)
      self%info_used = self%inner%info_used
      self%data_start = self%inner%data_start
   end subroutine close_file

   !> A file of a group holds its box, in which an element lies elsewhere than in
   !> the block.
   pure function byte_of(self, place) result(res)
      class(gathered_t), intent(in) :: self
      integer(int64), intent(in) :: place(3)
      integer(int64) :: res
      integer(int64) :: at(3)

      associate (layout => self%block%layout)
         if (self%is_whole) then
            res = layout%global_index(place(1), place(2), place(3))
         else
            at = layout%start - self%box%start + place
            res = self%box%local_index(at(1), at(2), at(3))
         end if
      end associate
      res = self%data_start + res*element_bytes
   end function byte_of

   ! The files are the writers', and so is what is to be done with them.

   subroutine make_way(self, error)
      class(gathered_t), intent(in) :: self
      type(error_t), allocatable, intent(out) :: error

      if (self%member == 0) call self%inner%make_way(error)
   end subroutine make_way

   subroutine check_files(self, error)
      class(gathered_t), intent(in) :: self
      type(error_t), allocatable, intent(out) :: error

      if (self%member == 0) call self%inner%check_files(error)
   end subroutine check_files

   subroutine remove_files(self, error)
      class(gathered_t), intent(in) :: self
      type(error_t), allocatable, intent(out) :: error

      if (self%member == 0) call self%inner%remove_files(error)
   end subroutine remove_files

   subroutine flush_pages(self, error)
      class(gathered_t), intent(in) :: self
      type(error_t), allocatable, intent(out) :: error

      if (self%member == 0) call self%inner%flush_pages(error)
   end subroutine flush_pages

   subroutine drop_pages(self, dropped, error)
      class(gathered_t), intent(in) :: self
      logical, intent(out) :: dropped
      type(error_t), allocatable, intent(out) :: error

      dropped = .true.
      if (self%member == 0) call self%inner%drop_pages(dropped, error)
   end subroutine drop_pages

   subroutine take_down(self, error)
      class(gathered_t), intent(inout) :: self
      type(error_t), allocatable, intent(out) :: error
      type(error_t), allocatable :: trouble
      integer :: ierr

      if (associated(self%gathered)) then
         if (associated(self%inner%block)) call self%inner%take_down(error)
         deallocate (self%gathered)
      end if
      call free_datatype(self%own, trouble)
      call keep_first(error, trouble)
      call free_datatype(self%part, trouble)
      call keep_first(error, trouble)
      if (self%group%MPI_VAL /= MPI_COMM_NULL%MPI_VAL) then
         call MPI_Comm_free(self%group, ierr)
         call check(ierr, "MPI_Comm_free", trouble)
         call keep_first(error, trouble)
      end if
      call self%writing_team%finish(trouble)
      call keep_first(error, trouble)
   end subroutine take_down

end module gather
