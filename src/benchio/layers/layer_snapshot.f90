!> The layers snapshot and snapshot-nonblocking: a simulation that computes for some time
!> steps and then appends its 3-D array to one shared file, which in the end holds
!> (N1, N2, N3, snapshots) in Fortran order. All processes write through collective MPI-IO
!> calls, blocking ones or non-blocking ones that overlap with the next time steps.
!>
!> Times: the seconds of a phase are those that a process waits for I/O: for open, write,
!> sync and close. They exclude the computing and the generation of the data. For
!> non-blocking calls they include the copy of the block and the calls that test for
!> completion, since the I/O causes both. The computed seconds are those of the time steps.
!> The hidden seconds are the part of them during which a write was pending, that is, not yet
!> known to be complete; they are 0 for blocking calls. A pending write need not progress: how
!> much of it the computing hides shows in the wait, compared with blocking calls. The rate
!> can therefore exceed the file system's.
!>
!> With `--exchange` a time step ends with messages (face_exchange.f90). They use the same transport
!> as the I/O, so the mean time of a step, with and without I/O pending, shows what the transport of
!> I/O costs the rest of a program.
!>
!> A read does not compute: it reads the snapshots one after the other and compares each,
!> untimed.
!>
!> Memory: for non-blocking calls, a copy of the block without its halo; the MPI library's
!> collective buffers; and two faces of the block with `--exchange`.
module benchio_layer_snapshot
   use, intrinsic :: iso_fortran_env, only: int64, real64
   use benchio_datatypes, only: free_datatype, make_section
   use benchio_difference, only: difference_t
   use benchio_errors, only: error_t, fail, keep_first, status_usage
   use benchio_face_exchange, only: face_exchange_t
   use benchio_file_request, only: file_request_t, post_name
   use benchio_layout, only: element_bytes
   use benchio_mpi_checks, only: check
   use benchio_mpiio_backend, only: mpiio_backend_t
   use benchio_team, only: team_t
   use benchio_text, only: to_text
   use mpi_f08, only: MPI_Datatype, MPI_DATATYPE_NULL, MPI_File_iwrite_all, MPI_REQUEST_NULL, &
                      MPI_Wtime
   implicit none(type, external)
   private

   public :: snapshot_t

   !> As in the example of Farrés, Hanzich and Cela (EAGE 2010).
   integer, parameter :: usual_snapshots = 16

   type, extends(mpiio_backend_t) :: snapshot_t
      !> Whether a write ends before the next time steps.
      logical :: blocking = .true.
      integer, private :: snapshots = usual_snapshots
      type(team_t), private :: team
      !> Non-blocking: the copy of the block that is written, its datatype, and the write.
      type(MPI_Datatype), private :: in_copy = MPI_DATATYPE_NULL
      integer(int64), private, pointer, contiguous :: copy(:, :, :) => null()
      type(file_request_t), private :: request
      type(face_exchange_t), private :: faces
      !> The differences found in the snapshots read.
      type(difference_t), private :: seen
   contains
      procedure :: set_up
      procedure :: poison
      procedure :: move_data
      procedure :: compare
      procedure :: take_down
   end type snapshot_t

contains

   subroutine set_up(self, team, directory, error)
      class(snapshot_t), intent(inout) :: self
      type(team_t), intent(in) :: team
      character(len=*), intent(in) :: directory
      type(error_t), allocatable, intent(out) :: error

      self%team = team
      if (self%task%steps > 0) self%snapshots = self%task%steps
      self%computes = .true.
      if (self%total_bytes > huge(self%total_bytes)/self%snapshots) then
         call fail(error, "--steps="//to_text(self%snapshots)//" is too large: the bytes of all " &
                   //"arrays cannot be counted in 64 bits", status_usage)
         return
      end if
      self%total_bytes = self%total_bytes*self%snapshots
      call self%settings%add_integer("steps", int(self%snapshots, int64))
      call self%settings%add_integer("every", int(self%task%every, int64))
      call self%settings%add_real("compute", self%task%compute_seconds)
      call self%settings%add_logical("exchange", self%task%exchanges)
      if (self%task%exchanges) call self%faces%set_up(team, self%block%layout, error)
      if (.not. (self%blocking .or. allocated(error))) call allocate_copy(self, error)
      if (.not. (self%blocking .or. allocated(error))) then
         call self%request%set_up(error)
      end if
      call team%agree(error)
      if (allocated(error)) return

      associate (block => self%block%layout%block)
         call make_section(block, block, [0_int64, 0_int64, 0_int64], self%in_copy, error)
         if (allocated(error)) return
      end associate
      self%request%datatype = self%in_copy
      self%request%elements = self%block%layout%block_elements()
      self%request%element_bytes = element_bytes
      call self%set_up_file(team, directory, error)
   end subroutine set_up

   subroutine allocate_copy(self, error)
      class(snapshot_t), intent(inout) :: self
      type(error_t), allocatable, intent(out) :: error
      integer :: status

      associate (n => self%block%layout%block)
         allocate (self%copy(n(1), n(2), n(3)), source=0_int64, stat=status)
         if (status /= 0) call fail(error, "no memory for a copy of a block of " &
                                    //to_text(product(n)*element_bytes)//" bytes")
      end associate
   end subroutine allocate_copy

   subroutine poison(self)
      class(snapshot_t), intent(inout) :: self

      call self%block%poison()
      if (associated(self%copy)) self%copy = 0_int64
   end subroutine poison

   subroutine move_data(self, writing, error)
      class(snapshot_t), intent(inout) :: self
      logical, intent(in) :: writing
      type(error_t), allocatable, intent(out) :: error

      if (.not. self%file%is_open()) return
      if (writing) then
         call write_all(self, error)
      else
         call read_all(self, error)
      end if
   end subroutine move_data

   !> The simulation: time steps before each snapshot. After an error on some process it
   !> ends early on all of them.
   subroutine write_all(self, error)
      class(snapshot_t), intent(inout) :: self
      type(error_t), allocatable, intent(out) :: error
      type(error_t), allocatable :: trouble
      integer :: number
      logical :: proceed

      do number = 0, self%snapshots - 1
         call compute_until(self, number, proceed, error)
         if (.not. proceed) exit
         if (self%blocking) then
            call self%move_block(.true., .true., trouble)
         else
            call self%request%wait(self%file, trouble)
            call keep_first(error, trouble)
            call post(self, number, trouble)
         end if
         call keep_first(error, trouble)
      end do
      call self%request%wait(self%file, trouble)
      call keep_first(error, trouble)
   end subroutine write_all

   !> The work before a snapshot, untimed.
   subroutine compute_until(self, number, proceed, error)
      class(snapshot_t), intent(inout) :: self
      integer, intent(in) :: number
      logical, intent(out) :: proceed
      type(error_t), allocatable, intent(inout) :: error
      type(error_t), allocatable :: trouble

      call self%outcome%untimed%begin(self%team%world, error, proceed)
      if (proceed) then
         if (self%blocking .and. number > 0) call self%fill_array(number)
         call compute(self, trouble)
         call keep_first(error, trouble)
      end if
      call self%outcome%untimed%finish(self%team%world, error)
   end subroutine compute_until

   !> The time steps before a snapshot. MPI libraries often progress I/O only inside their
   !> calls, so an application that overlaps I/O calls them now and then.
   subroutine compute(self, error)
      class(snapshot_t), intent(inout) :: self
      type(error_t), allocatable, intent(out) :: error
      type(error_t), allocatable :: trouble
      real(real64) :: began, now
      integer :: step

      do step = 1, self%task%every
         began = MPI_Wtime()
         do
            now = MPI_Wtime()
            if (now - began >= self%task%compute_seconds) exit
         end do
         if (self%task%exchanges) then
            call self%faces%exchange(trouble)
            call keep_first(error, trouble)
            now = MPI_Wtime()
         end if
         associate (outcome => self%outcome)
            outcome%computed_seconds = outcome%computed_seconds + now - began
            outcome%computed_steps = outcome%computed_steps + 1
            if (.not. self%request%is_pending()) cycle
            outcome%hidden_seconds = outcome%hidden_seconds + now - began
            outcome%hidden_steps = outcome%hidden_steps + 1
            call self%request%test(self%file, trouble)
            call keep_first(error, trouble)
            ! The test is part of the I/O, so its time is not excluded.
            outcome%untimed%seconds = outcome%untimed%seconds - (MPI_Wtime() - now)
         end associate
      end do
   end subroutine compute

   !> Copies the block and posts the write of the copy. The next data are generated in
   !> between, so that they do not overlap with the write.
   subroutine post(self, number, error)
      class(snapshot_t), intent(inout) :: self
      integer, intent(in) :: number
      type(error_t), allocatable, intent(out) :: error
      type(error_t), allocatable :: trouble
      integer :: ierr

      associate (n => self%block%layout%block)
         self%copy = self%block%cells(1:n(1), 1:n(2), 1:n(3))
      end associate
      call self%outcome%untimed%begin(self%team%world, error)
      if (number + 1 < self%snapshots) call self%fill_array(number + 1)
      call self%outcome%untimed%finish(self%team%world, error)
      call MPI_File_iwrite_all(self%file%handle, self%copy, 1, self%in_copy, self%request%handle, &
                               ierr)
      call check(ierr, post_name//" of "//self%path, trouble)
      if (allocated(trouble)) self%request%handle = MPI_REQUEST_NULL
      call keep_first(error, trouble)
   end subroutine post

   !> Reads all snapshots and compares each before the next one replaces it. Ends early
   !> after an error, as write_all does.
   subroutine read_all(self, error)
      class(snapshot_t), intent(inout) :: self
      type(error_t), allocatable, intent(out) :: error
      type(error_t), allocatable :: trouble
      type(difference_t) :: here
      integer :: number
      logical :: proceed

      self%seen = difference_t()
      do number = 0, self%snapshots - 1
         call self%move_block(.false., .true., trouble)
         call keep_first(error, trouble)
         call self%outcome%untimed%begin(self%team%world, error, proceed)
         if (proceed .and. self%task%verify) then
            call self%compare_array(number, here)
            call self%seen%add(here)
         end if
         call self%outcome%untimed%finish(self%team%world, error)
         if (.not. proceed) exit
      end do
   end subroutine read_all

   !> The differences that `read_all` found: only the last snapshot is still in memory.
   subroutine compare(self, res)
      class(snapshot_t), intent(inout) :: self
      type(difference_t), intent(out) :: res

      res = self%seen
   end subroutine compare

   subroutine take_down(self, error)
      class(snapshot_t), intent(inout) :: self
      type(error_t), allocatable, intent(out) :: error
      type(error_t), allocatable :: trouble

      call self%request%wait(self%file, error)
      call self%file%take_down(trouble)
      call keep_first(error, trouble)
      call free_datatype(self%in_copy, error)
      if (associated(self%copy)) deallocate (self%copy)
      call self%faces%take_down()
   end subroutine take_down

end module benchio_layer_snapshot
