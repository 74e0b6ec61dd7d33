!> The base of the layers strided, mapped and aligned: the data are one stream of bytes, of
!> which each process has many pieces, and one call moves one piece. This module holds the memory,
!> the values and their comparison. A layer defines the pieces of a process and moves them
!> one by one, unless it overrides move_pieces.
!>
!> Memory: at most `buffer_bytes`, or one piece if that is larger. If the pieces of a
!> process need more, they are moved in rounds: between the rounds of a write the next
!> pieces are generated, and between the pieces of a read the last ones are compared. Both are
!> untimed.
module benchio_piece_backend
   use, intrinsic :: iso_c_binding, only: c_f_pointer, c_loc, c_ptr
   use, intrinsic :: iso_fortran_env, only: int64, int8
   use benchio_backend, only: backend_t
   use benchio_byte_pattern, only: compare_bytes, put_bytes
   use benchio_difference, only: difference_t
   use benchio_errors, only: error_t, fail, keep_first
   use benchio_fingerprint, only: mixed_seed
   use benchio_mpi_checks, only: check
   use benchio_posix_api, only: c_free, c_posix_memalign, memory_alignment
   use benchio_task, only: task_t
   use benchio_team, only: team_t
   use benchio_text, only: to_text
   use mpi_f08, only: MPI_Allreduce, MPI_Comm, MPI_COMM_NULL, MPI_INTEGER8, MPI_MAX
   implicit none(type, external)
   private

   public :: piece_backend_t, piece_t, buffer_bytes

   !> Bytes of the memory for pieces, unless one piece needs more.
   integer(int64), parameter :: buffer_bytes = 256_int64*1024_int64**2

   ! The value of the memory before a read, so that a read that does nothing fails the
   ! verification.
   integer(int8), parameter :: unread_marker = -2_int8

   !> A contiguous part of a file that one call moves.
   type :: piece_t
      !> The number of the file among this process's files, from 1.
      integer :: file = 1
      !> The offset in the file, and the length.
      integer(int64) :: offset = 0_int64, bytes = 0_int64
      !> The offset in the stream.
      integer(int64) :: start = 0_int64
   end type piece_t

   type, abstract, extends(backend_t) :: piece_backend_t
      type(task_t) :: task

      ! Set by set_up.
      !> The number of pieces of this process, and the bytes of the longest one.
      integer(int64) :: pieces = 0_int64, longest = 0_int64
      !> Whether the calls are collective: the process then continues after an error, since
      !> the others would wait without end.
      logical :: is_collective = .false.

      !> Whether the files are open; set by open_file.
      logical :: is_usable = .false.

      type(MPI_Comm), private :: comm = MPI_COMM_NULL
      integer(int64), private :: mixed = 0_int64
      !> The data to write, and the memory to read into: `longest` bytes for each piece.
      integer(int8), pointer, contiguous, private :: memory(:) => null()
      integer(int64), private :: pieces_of_round = 1_int64, rounds = 0_int64
      type(difference_t), private :: seen
   contains
      procedure :: prepare
      procedure :: fill
      procedure :: poison
      procedure :: move_data
      procedure :: move_pieces
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

      !> A piece of this process, by its number from 1.
      pure function piece_i(self, number) result(res)
         import :: int64, piece_backend_t, piece_t
         implicit none(type, external)
         class(piece_backend_t), intent(in) :: self
         integer(int64), intent(in) :: number
         type(piece_t) :: res
      end function piece_i

      !> Writes a piece from memory, or reads it into memory.
      subroutine move_i(self, writing, piece, memory, error)
         import :: error_t, int8, piece_backend_t, piece_t
         implicit none(type, external)
         class(piece_backend_t), intent(inout) :: self
         logical, intent(in) :: writing
         type(piece_t), intent(in) :: piece
         integer(int8), intent(inout), target, contiguous :: memory(:)
         type(error_t), allocatable, intent(out) :: error
      end subroutine move_i

      !> The layer's part of release, also after a failed set_up.
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
      type(c_ptr) :: memory
      integer :: ierr

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
      if (c_posix_memalign(memory, memory_alignment, room) /= 0) then
         call fail(error, "no memory for a buffer of "//to_text(room)//" bytes")
         return
      end if
      call c_f_pointer(memory, self%memory, [room])
      ! Touched now, so that the page faults are not measured.
      self%memory = unread_marker
   end subroutine prepare

   !> Generates the first round.
   subroutine fill(self)
      class(piece_backend_t), intent(inout) :: self

      self%mixed = mixed_seed(ieor(self%task%seed, int(self%round, int64)))
      call put_round(self, 0_int64)
   end subroutine fill

   subroutine poison(self)
      class(piece_backend_t), intent(inout) :: self

      self%mixed = mixed_seed(ieor(self%task%seed, int(self%round, int64)))
      self%memory = unread_marker
   end subroutine poison

   !> The last round that was read stays in memory for `compare`.
   subroutine move_data(self, writing, error)
      class(piece_backend_t), intent(inout) :: self
      logical, intent(in) :: writing
      type(error_t), allocatable, intent(out) :: error
      integer(int64) :: round
      logical :: proceed

      self%seen = difference_t()
      do round = 0, self%rounds - 1
         if (round > 0 .and. (writing .or. self%task%verify)) then
            call self%outcome%untimed%begin(self%comm, error, proceed, self%is_usable)
            if (proceed .and. writing) call put_round(self, round)
            if (proceed .and. .not. writing) call compare_round(self, round - 1)
            call self%outcome%untimed%finish(self%comm, error)
            if (.not. proceed) return
         end if
         call move_round(self, writing, round, error)
      end do
   end subroutine move_data

   subroutine compare(self, res)
      class(piece_backend_t), intent(inout) :: self
      type(difference_t), intent(out) :: res

      call compare_round(self, self%rounds - 1)
      res = self%seen
   end subroutine compare

   !> The numbers of a round's first and last piece; the last is less than the first if this
   !> process has none in it.
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
      integer(int64) :: first, last

      if (.not. self%is_usable) return
      if (allocated(error) .and. .not. self%is_collective) return
      call get_round(self, round, first, last)
      call self%move_pieces(writing, first, last, self%memory, trouble)
      call keep_first(error, trouble)
   end subroutine move_round

   !> Moves the pieces from `first` to `last`, each by a call of its own.
   subroutine move_pieces(self, writing, first, last, memory, error)
      class(piece_backend_t), intent(inout) :: self
      logical, intent(in) :: writing
      integer(int64), intent(in) :: first, last
      integer(int8), intent(inout), target, contiguous :: memory(:)
      type(error_t), allocatable, intent(out) :: error
      type(error_t), allocatable :: trouble
      type(piece_t) :: piece
      integer(int64) :: number, place

      do number = first, last
         if (allocated(error) .and. .not. self%is_collective) return
         piece = self%piece(number)
         place = (number - first)*self%longest
         call self%move(writing, piece, memory(place + 1:place + piece%bytes), trouble)
         call keep_first(error, trouble)
      end do
   end subroutine move_pieces

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

   !> Compares the pieces of a round, and adds the differences.
   subroutine compare_round(self, round)
      class(piece_backend_t), intent(inout) :: self
      integer(int64), intent(in) :: round
      type(difference_t) :: here
      type(piece_t) :: piece
      integer(int64) :: number, first, last, place

      call get_round(self, round, first, last)
      do number = first, last
         piece = self%piece(number)
         place = (number - first)*self%longest
         call compare_bytes(self%memory(place + 1:place + piece%bytes), piece%start, self%mixed, &
                            here)
         if (here%differing > 0) here%path = self%path_of(piece%file)
         here%byte = piece%offset + here%byte - piece%start
         call self%seen%add(here)
      end do
   end subroutine compare_round

   !> The path of a file of this process, by its number; for a layer with one file.
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
      if (associated(self%memory)) call c_free(c_loc(self%memory))
      self%memory => null()
   end subroutine release

end module benchio_piece_backend
