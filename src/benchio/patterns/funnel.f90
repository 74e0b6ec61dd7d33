!> The base of the layers serial and node: processes send their blocks to a leader, which
!> writes them, or receive them from the leader, which reads. The messages are part of the
!> pattern and measured.
!>
!> The leader processes its file in steps, each a contiguous part of the file that fits
!> its buffer. A layer defines the planes of each block that belong to a step, and where in
!> the buffer they go.
!>
!> Memory: the leader's buffer of `buffer_bytes`, or of one plane if that is larger. Data
!> are received directly into their place in it.
module benchio_funnel
   use, intrinsic :: iso_c_binding, only: c_f_pointer, c_loc, c_ptr, c_size_t
   use, intrinsic :: iso_fortran_env, only: int64
   use benchio_block_backend, only: block_backend_t
   use benchio_block_data, only: block_t
   use benchio_data_file, only: data_file_t
   use benchio_datatypes, only: free_datatype, make_section
   use benchio_errors, only: error_t, fail, keep_first
   use benchio_layout, only: element_bytes
   use benchio_mpi_checks, only: check
   use benchio_posix_api, only: c_free, c_posix_memalign, iovec_t, memory_alignment, &
                                mode_existing, mode_new
   use benchio_text, only: to_text
   use mpi_f08, only: MPI_Comm, MPI_COMM_NULL, MPI_Datatype, MPI_DATATYPE_NULL, MPI_Irecv, &
                      MPI_Isend, MPI_Recv, MPI_Request, MPI_Send, MPI_STATUS_IGNORE, &
                      MPI_STATUSES_IGNORE, MPI_Waitall
   implicit none(type, external)
   private

   public :: funnel_t, piece_t, span_t, buffer_bytes

   !> Bytes of a leader's buffer, unless one plane needs more.
   integer(int64), parameter :: buffer_bytes = 256_int64*1024_int64**2

   integer, parameter :: tag = 1

   !> Planes of one process's block that belong to a step.
   type :: piece_t
      !> The first plane, from 1, and the number of planes; 0 for none.
      integer(int64) :: first_plane = 1_int64
      integer :: planes = 0
      !> The element of the buffer, from 1, where they begin.
      integer(int64) :: position = 1_int64
   end type piece_t

   !> The part of the file that belongs to a step, in elements from 0.
   type :: span_t
      integer(int64) :: first = 0_int64, elements = 0_int64
   end type span_t

   type, abstract, extends(block_backend_t) :: funnel_t
      ! The layer sets these before it calls allocate_buffer.
      type(MPI_Comm) :: comm = MPI_COMM_NULL
      !> The rank of this process in `comm`, where 0 leads, and the number of processes.
      integer :: member = 0, members = 1
      !> The number of steps.
      integer :: steps = 0
      !> The elements of the buffer; the elements of a row, and the rows of a plane, of what it
      !> holds: a block or the whole array.
      integer(int64) :: buffer_elements = 0_int64
      integer :: row = 0, rows_of_plane = 0

      type(MPI_Datatype), private :: block_plane = MPI_DATATYPE_NULL
      type(MPI_Datatype), private :: buffer_plane = MPI_DATATYPE_NULL
      type(MPI_Request), allocatable, private :: requests(:)
      ! A pointer, since it is passed on together with the object that owns it.
      integer(int64), pointer, contiguous, private :: buffer(:) => null()
      type(data_file_t), private :: file
   contains
      procedure(piece_i), deferred :: piece
      procedure(span_i), deferred :: span
      procedure :: allocate_buffer
      procedure :: open_file
      procedure :: move_data
      procedure :: sync
      procedure :: close_file
      procedure :: take_down
      procedure :: poison
   end type funnel_t

   abstract interface
      !> The planes of process `source` in a step; steps count from 0.
      pure function piece_i(self, step, source) result(res)
         import :: funnel_t, piece_t
         implicit none(type, external)
         class(funnel_t), intent(in) :: self
         integer, intent(in) :: step, source
         type(piece_t) :: res
      end function piece_i

      !> The part of the file of a step.
      pure function span_i(self, step) result(res)
         import :: funnel_t, span_t
         implicit none(type, external)
         class(funnel_t), intent(in) :: self
         integer, intent(in) :: step
         type(span_t) :: res
      end function span_i
   end interface

contains

   !> Allocates the buffer and makes the datatypes.
   subroutine allocate_buffer(self, error)
      class(funnel_t), intent(inout) :: self
      type(error_t), allocatable, intent(out) :: error
      type(c_ptr) :: memory

      associate (n => self%block%layout%block, room => self%block%room())
         ! A plane of the block in memory, inside its halo. The datatype has the extent of a
         ! plane with its halo, so that a count of it moves successive planes.
         call make_section(room(:2), n(:2), spread(self%block%halo, 1, 2), self%block_plane, error)
         if (allocated(error) .or. self%member /= 0) return
         call make_section(int([self%row, self%rows_of_plane], int64), n(:2), &
                           [0_int64, 0_int64], self%buffer_plane, error)
         if (allocated(error)) return
      end associate
      allocate (self%requests(self%members))
      if (c_posix_memalign(memory, memory_alignment, self%buffer_elements*element_bytes) /= 0) then
         call fail(error, "no memory for a buffer of " &
                   //to_text(self%buffer_elements*element_bytes)//" bytes")
         return
      end if
      call c_f_pointer(memory, self%buffer, [self%buffer_elements])
      ! Touched now, so that the page faults are not measured.
      self%buffer = 0_int64
   end subroutine allocate_buffer

   !> Poisons the buffer too, which still holds data after a write.
   subroutine poison(self)
      class(funnel_t), intent(inout) :: self

      call self%block%poison()
      if (associated(self%buffer)) self%buffer = 0_int64
   end subroutine poison

   subroutine open_file(self, writing, error)
      class(funnel_t), intent(inout) :: self
      logical, intent(in) :: writing
      type(error_t), allocatable, intent(out) :: error

      ! Only the processes with a file can say that O_DIRECT was not used.
      self%outcome%was_direct = .true.
      if (self%member /= 0) return
      call self%file%open_file(self%path, merge(mode_new, mode_existing, writing), self%task, error)
      self%outcome%was_direct = self%file%is_direct
   end subroutine open_file

   subroutine move_data(self, writing, error)
      class(funnel_t), intent(inout) :: self
      logical, intent(in) :: writing
      type(error_t), allocatable, intent(out) :: error

      if (self%member == 0) then
         call lead(self, writing, self%block, self%buffer, error)
      else
         call follow(self, writing, self%block, error)
      end if
   end subroutine move_data

   !> The leader's part. After an error in its file it leaves the file alone, but continues to
   !> exchange messages, since the others would wait without end.
   subroutine lead(self, writing, block, buffer, error)
      class(funnel_t), intent(inout) :: self
      logical, intent(in) :: writing
      type(block_t), intent(inout) :: block
      integer(int64), intent(inout), target, contiguous :: buffer(:)
      type(error_t), allocatable, intent(out) :: error
      type(error_t), allocatable :: trouble
      type(span_t) :: span
      type(iovec_t) :: stretch(1)
      integer :: step
      logical :: usable

      usable = self%file%is_open()
      stretch(1)%base = c_loc(buffer)
      do step = 0, self%steps - 1
         span = self%span(step)
         stretch(1)%length = int(span%elements*element_bytes, c_size_t)
         if (writing) call exchange(self, .true., step, block, buffer, trouble)
         call keep_first(error, trouble)
         if (usable) call self%file%move(writing, stretch, span%first*element_bytes, &
                                         self%outcome%times, trouble)
         if (allocated(trouble)) usable = .false.
         call keep_first(error, trouble)
         if (.not. writing) call exchange(self, .false., step, block, buffer, trouble)
         call keep_first(error, trouble)
      end do
   end subroutine lead

   !> Moves a step's planes from the processes to the buffer, or back.
   subroutine exchange(self, gathering, step, block, buffer, error)
      class(funnel_t), intent(inout) :: self
      logical, intent(in) :: gathering
      integer, intent(in) :: step
      type(block_t), intent(inout) :: block
      integer(int64), intent(inout), asynchronous, contiguous :: buffer(:)
      type(error_t), allocatable, intent(out) :: error
      type(error_t), allocatable :: trouble
      type(piece_t) :: part
      integer :: source, pending, ierr

      pending = 0
      do source = 1, self%members - 1
         part = self%piece(step, source)
         if (part%planes == 0) cycle
         pending = pending + 1
         if (gathering) then
            call MPI_Irecv(buffer(part%position), part%planes, self%buffer_plane, source, tag, &
                           self%comm, self%requests(pending), ierr)
            call check(ierr, "MPI_Irecv", trouble)
         else
            call MPI_Isend(buffer(part%position), part%planes, self%buffer_plane, source, tag, &
                           self%comm, self%requests(pending), ierr)
            call check(ierr, "MPI_Isend", trouble)
         end if
         if (allocated(trouble)) pending = pending - 1
         call keep_first(error, trouble)
      end do
      part = self%piece(step, 0)
      if (part%planes > 0) call copy_own(self, gathering, part, block, buffer)
      call MPI_Waitall(pending, self%requests, MPI_STATUSES_IGNORE, ierr)
      call check(ierr, "MPI_Waitall", error)
   end subroutine exchange

   !> Copies the leader's own planes.
   subroutine copy_own(self, gathering, part, block, buffer)
      class(funnel_t), intent(in) :: self
      logical, intent(in) :: gathering
      type(piece_t), intent(in) :: part
      type(block_t), intent(inout) :: block
      integer(int64), intent(inout), contiguous :: buffer(:)
      integer(int64) :: j, k, at, plane

      associate (n => block%layout%block)
         do plane = 0_int64, part%planes - 1_int64
            k = part%first_plane + plane
            do j = 1, n(2)
               at = part%position + self%row*(j - 1 + self%rows_of_plane*plane)
               if (gathering) then
                  buffer(at:at + n(1) - 1) = block%cells(1:n(1), j, k)
               else
                  block%cells(1:n(1), j, k) = buffer(at:at + n(1) - 1)
               end if
            end do
         end do
      end associate
   end subroutine copy_own

   !> The part of all other processes: sends or receives their planes, step by step.
   subroutine follow(self, writing, block, error)
      class(funnel_t), intent(in) :: self
      logical, intent(in) :: writing
      type(block_t), intent(inout) :: block
      type(error_t), allocatable, intent(out) :: error
      type(piece_t) :: part
      integer(int64) :: first
      integer :: step, ierr

      first = 1 - block%halo
      do step = 0, self%steps - 1
         part = self%piece(step, self%member)
         if (part%planes == 0) cycle
         if (writing) then
            call MPI_Send(block%cells(first, first, part%first_plane), part%planes, &
                          self%block_plane, 0, tag, self%comm, ierr)
            call check(ierr, "MPI_Send", error)
         else
            call MPI_Recv(block%cells(first, first, part%first_plane), part%planes, &
                          self%block_plane, 0, tag, self%comm, MPI_STATUS_IGNORE, ierr)
            call check(ierr, "MPI_Recv", error)
         end if
      end do
   end subroutine follow

   subroutine sync(self, error)
      class(funnel_t), intent(inout) :: self
      type(error_t), allocatable, intent(out) :: error

      call self%file%sync(error)
   end subroutine sync

   subroutine close_file(self, error)
      class(funnel_t), intent(inout) :: self
      type(error_t), allocatable, intent(out) :: error

      call self%file%close_file(error)
   end subroutine close_file

   subroutine take_down(self, error)
      class(funnel_t), intent(inout) :: self
      type(error_t), allocatable, intent(out) :: error
      type(error_t), allocatable :: trouble

      if (associated(self%buffer)) call c_free(c_loc(self%buffer))
      self%buffer => null()
      if (allocated(self%requests)) deallocate (self%requests)
      call free_datatype(self%block_plane, error)
      call free_datatype(self%buffer_plane, error)
      call self%close_file(trouble)
      call keep_first(error, trouble)
   end subroutine take_down

end module benchio_funnel
