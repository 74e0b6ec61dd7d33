!> What the layers strided and aligned have in common: the data are one stream of
!> bytes, of which each process has many pieces, and each piece is moved by a call
!> of its own. Such a layer says which pieces a process has and moves one; memory,
!> values and their comparison are seen to here.
!>
!> Memory: at most `buffer_bytes`, or one piece where that is more. Where the pieces
!> of a process need more, they are moved round by round: between the rounds of a
!> write the next pieces are made, and between those of a read the last ones are
!> compared, which the clock leaves out.
module piece_backend
   use, intrinsic :: iso_fortran_env, only: int64, int8
   use backend, only: backend_t, difference_t
   use byte_pattern, only: byte_difference_t, compare_bytes, put_bytes
   use errors, only: error_t, fail, keep_first
   use fingerprint, only: mixed_seed
   use mpi_checks, only: check
   use mpi_f08, only: MPI_Allreduce, MPI_Comm, MPI_COMM_NULL, MPI_INTEGER8, MPI_LAND, &
                      MPI_LOGICAL, MPI_MAX
   use task, only: task_t
   use team, only: team_t
   use text, only: to_text
   implicit none(type, external)
   private

   public :: piece_backend_t, piece_t, buffer_bytes

   !> Bytes of the memory for pieces, unless a single one needs more.
   integer(int64), parameter :: buffer_bytes = 256_int64*1024_int64**2

   ! What the memory holds before a read, so that a read which does nothing cannot be
   ! verified.
   integer(int8), parameter :: unread_marker = -2_int8

   !> A stretch of a file that is moved by one call.
   type :: piece_t
      !> The number of the file among those of this process, from 1.
      integer :: file = 1
      !> Where it begins in the file, and its bytes.
      integer(int64) :: offset = 0_int64, bytes = 0_int64
      !> Where it begins in the stream.
      integer(int64) :: start = 0_int64
   end type piece_t

   type, abstract, extends(backend_t) :: piece_backend_t
      !> What is to be measured.
      type(task_t) :: task

      ! These are set by set_up.
      !> The pieces of this process, and the bytes of its longest.
      integer(int64) :: pieces = 0_int64, longest = 0_int64
      !> Whether all processes move their pieces together, one each at a time: they
      !> go on after an error, since the others would wait for ever.
      logical :: together = .false.

      !> Whether the files are open; set by open_file.
      logical :: is_usable = .false.

      type(MPI_Comm), private :: comm = MPI_COMM_NULL
      integer(int64), private :: mixed = 0_int64
      !> What is written, and read into: a place of `longest` bytes a piece.
      integer(int8), pointer, contiguous, private :: memory(:) => null()
      integer(int64), private :: pieces_of_round = 1_int64, rounds = 0_int64
      type(difference_t), private :: seen
   contains
      procedure :: prepare
      procedure :: fill
      procedure :: forget
      procedure :: write_data
      procedure :: read_data
      procedure :: compare
      procedure :: release
      procedure :: path_of
      procedure(set_up_i), deferred :: set_up
      procedure(piece_i), deferred :: piece
      procedure(move_i), deferred :: move
      procedure(take_down_i), deferred :: take_down
   end type piece_backend_t

   abstract interface
      !> The layer's part of prepare; collective.
      subroutine set_up_i(self, team, directory, error)
         import :: error_t, piece_backend_t, team_t
         implicit none(type, external)
         class(piece_backend_t), intent(inout) :: self
         type(team_t), intent(in) :: team
         character(len=*), intent(in) :: directory
         type(error_t), allocatable, intent(out) :: error
      end subroutine set_up_i

      !> A piece of this process by its number, from 1.
      pure function piece_i(self, number) result(res)
         import :: int64, piece_backend_t, piece_t
         implicit none(type, external)
         class(piece_backend_t), intent(in) :: self
         integer(int64), intent(in) :: number
         type(piece_t) :: res
      end function piece_i

      !> Writes a piece from memory, or reads it.
      subroutine move_i(self, writing, piece, memory, error)
         import :: error_t, int8, piece_backend_t, piece_t
         implicit none(type, external)
         class(piece_backend_t), intent(inout) :: self
         logical, intent(in) :: writing
         type(piece_t), intent(in) :: piece
         integer(int8), intent(inout), target, contiguous :: memory(:)
         type(error_t), allocatable, intent(out) :: error
      end subroutine move_i

      !> The layer's part of release; also after a set_up that failed.
      subroutine take_down_i(self, error)
         import :: error_t, piece_backend_t
         implicit none(type, external)
         class(piece_backend_t), intent(inout) :: self
         type(error_t), allocatable, intent(out) :: error
      end subroutine take_down_i
   end interface

contains

   subroutine prepare(self, team, task, directory, error)
      class(piece_backend_t), intent(inout) :: self
      type(team_t), intent(in) :: team
      type(task_t), intent(in) :: task
      character(len=*), intent(in) :: directory
      type(error_t), allocatable, intent(out) :: error
      integer(int64) :: mine, room
      integer :: status, ierr

      self%task = task
      self%hints_asked = task%hints
      self%comm = team%world
      call self%set_up(team, directory, error)
      call team%agree(error)
      if (allocated(error)) return

      self%longest = max(self%longest, 1_int64)
      self%pieces_of_round = max(1_int64, min(self%pieces, buffer_bytes/self%longest))
      mine = (self%pieces + self%pieces_of_round - 1)/self%pieces_of_round
      call MPI_Allreduce(mine, self%rounds, 1, MPI_INTEGER8, MPI_MAX, team%world, ierr)
      call check(ierr, "MPI_Allreduce", error)
      if (allocated(error)) return
      room = min(self%pieces, self%pieces_of_round)*self%longest
      allocate (self%memory(room), stat=status)
      if (status /= 0) then
         self%memory => null()
         call fail(error, "no memory for a buffer of "//to_text(room)//" bytes")
         return
      end if
      ! Touched now, so that the system need not find the pages in the clock.
      self%memory = unread_marker
   end subroutine prepare

   !> Makes the first round; the others are made when it is their turn.
   subroutine fill(self)
      class(piece_backend_t), intent(inout) :: self

      self%mixed = mixed_seed(ieor(self%task%seed, int(self%round, int64)))
      call put_round(self, 0_int64)
   end subroutine fill

   subroutine forget(self)
      class(piece_backend_t), intent(inout) :: self

      self%mixed = mixed_seed(ieor(self%task%seed, int(self%round, int64)))
      self%memory = unread_marker
   end subroutine forget

   subroutine write_data(self, error)
      class(piece_backend_t), intent(inout) :: self
      type(error_t), allocatable, intent(out) :: error
      type(error_t), allocatable :: trouble
      integer(int64) :: round
      logical :: goes_on

      do round = 0, self%rounds - 1
         if (round > 0) then
            call self%aside%begin(self%comm, trouble)
            call keep_first(error, trouble)
            goes_on = no_one_failed(self, error)
            if (goes_on) call put_round(self, round)
            call self%aside%finish(self%comm, trouble)
            call keep_first(error, trouble)
            if (.not. goes_on) return
         end if
         call move_round(self, .true., round, error)
      end do
   end subroutine write_data

   !> A single round is compared when that is asked for, behind the clock.
   subroutine read_data(self, error)
      class(piece_backend_t), intent(inout) :: self
      type(error_t), allocatable, intent(out) :: error
      type(error_t), allocatable :: trouble
      integer(int64) :: round
      logical :: goes_on

      self%seen = difference_t()
      do round = 0, self%rounds - 1
         call move_round(self, .false., round, error)
         if (self%rounds == 1 .or. .not. self%task%verify) cycle
         call self%aside%begin(self%comm, trouble)
         call keep_first(error, trouble)
         goes_on = no_one_failed(self, error)
         if (goes_on) call compare_round(self, round)
         call self%aside%finish(self%comm, trouble)
         call keep_first(error, trouble)
         if (.not. goes_on) return
      end do
   end subroutine read_data

   subroutine compare(self, res)
      class(piece_backend_t), intent(inout) :: self
      type(difference_t), intent(out) :: res

      if (self%rounds == 1) call compare_round(self, 0_int64)
      res = self%seen
   end subroutine compare

   !> Whether all processes are without an error so far; collective. Asked where the
   !> clock stands still: after a failure there may be many rounds left.
   function no_one_failed(self, error) result(res)
      class(piece_backend_t), intent(in) :: self
      type(error_t), allocatable, intent(inout) :: error
      logical :: res
      type(error_t), allocatable :: trouble
      logical :: mine
      integer :: ierr

      mine = self%is_usable .and. .not. allocated(error)
      call MPI_Allreduce(mine, res, 1, MPI_LOGICAL, MPI_LAND, self%comm, ierr)
      call check(ierr, "MPI_Allreduce", trouble)
      call keep_first(error, trouble)
   end function no_one_failed

   !> The numbers of a round's first and last piece; the last is before the first
   !> where this process has none in it.
   pure subroutine get_round(self, round, first, last)
      class(piece_backend_t), intent(in) :: self
      integer(int64), intent(in) :: round
      integer(int64), intent(out) :: first, last

      first = round*self%pieces_of_round + 1
      last = min(self%pieces, first + self%pieces_of_round - 1)
   end subroutine get_round

   subroutine move_round(self, writing, round, error)
      class(piece_backend_t), intent(inout) :: self
      logical, intent(in) :: writing
      integer(int64), intent(in) :: round
      type(error_t), allocatable, intent(inout) :: error
      type(error_t), allocatable :: trouble
      type(piece_t) :: piece
      integer(int64) :: number, first, last, place

      if (.not. self%is_usable) return
      call get_round(self, round, first, last)
      do number = first, last
         if (allocated(error) .and. .not. self%together) return
         piece = self%piece(number)
         place = (number - first)*self%longest
         call self%move(writing, piece, self%memory(place + 1:place + piece%bytes), trouble)
         call keep_first(error, trouble)
      end do
   end subroutine move_round

   subroutine put_round(self, round)
      class(piece_backend_t), intent(inout) :: self
      integer(int64), intent(in) :: round
      type(piece_t) :: piece
      integer(int64) :: number, first, last, place

      call get_round(self, round, first, last)
      do number = first, last
         piece = self%piece(number)
         place = (number - first)*self%longest
         call put_bytes(self%memory(place + 1:place + piece%bytes), piece%start, self%mixed)
      end do
   end subroutine put_round

   !> Adds what this round shows to what was seen.
   subroutine compare_round(self, round)
      class(piece_backend_t), intent(inout) :: self
      integer(int64), intent(in) :: round
      type(byte_difference_t) :: found
      type(piece_t) :: piece
      integer(int64) :: number, first, last, place

      call get_round(self, round, first, last)
      do number = first, last
         piece = self%piece(number)
         place = (number - first)*self%longest
         call compare_bytes(self%memory(place + 1:place + piece%bytes), piece%start, self%mixed, &
                            found)
         associate (seen => self%seen)
            if (found%differing > 0 .and. seen%differing == 0) then
               seen%path = self%path_of(piece%file)
               seen%byte = piece%offset + found%byte - piece%start
               seen%element = found%byte/8_int64
               seen%expected = found%expected
               seen%found = found%found
            end if
            seen%compared_bytes = seen%compared_bytes + piece%bytes
            seen%differing = seen%differing + found%differing
         end associate
      end do
   end subroutine compare_round

   !> The path of a file of this process, by its number. Right for a layer with one.
   pure function path_of(self, file) result(res)
      class(piece_backend_t), intent(in) :: self
      integer, intent(in) :: file
      character(len=:), allocatable :: res

      res = ""
      if (file > 0) res = self%path
   end function path_of

   subroutine release(self, error)
      class(piece_backend_t), intent(inout) :: self
      type(error_t), allocatable, intent(out) :: error

      call self%take_down(error)
      if (associated(self%memory)) deallocate (self%memory)
      self%memory => null()
   end subroutine release

end module piece_backend
