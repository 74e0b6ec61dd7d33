!> The layers snapshot and snapshot-nonblocking: a simulation that computes, and
!> after every so many time steps appends its 3-D array to one shared file, which
!> then holds (N1, N2, N3, snapshots) in Fortran order. All processes write together
!> through MPI-IO, by collective calls that return when the data are written or by
!> ones that have them written while the next time steps are computed.
!>
!> What is measured: the seconds of a phase are those that a process waits for I/O,
!> in opening, writing, synchronising and closing. Computing is left out, and so is
!> making the data. Non-blocking, these are parts of the wait too: the copy of the
!> block that the write needs, and the time spent in asking the library whether it
!> is complete, since neither would be there without the I/O. The computed seconds
!> are those of the time steps, by the clock. The hidden seconds are those of them
!> that went by while this process had a write that it did not know to be complete,
!> to the next end of a time step; always 0 for calls that block. That a write was
!> under way does not say that it moved: whether computing hid it shows in the wait,
!> against calls that block. Bytes by seconds may thus be more than any file system
!> takes.
!>
!> Reading does not compute: it reads all snapshots, one after the other, and only
!> compares in between.
!>
!> Memory: non-blocking, the block once more, without halo. The MPI library's
!> collective buffers come on top.
module layer_snapshot
   use, intrinsic :: iso_fortran_env, only: int64, real64
   use backend, only: difference_t
   use datatypes, only: free_datatype, make_section
   use errors, only: error_t, fail, keep_first, status_usage
   use file_request, only: file_request_t
   use layout, only: element_bytes
   use mpi_checks, only: check
   use mpi_f08, only: MPI_Datatype, MPI_DATATYPE_NULL, MPI_File_iwrite_all, MPI_File_read_all, &
                      MPI_File_write_all, MPI_REQUEST_NULL, MPI_Status, MPI_Wtime
   use mpiio_backend, only: mpiio_backend_t
   use team, only: team_t
   use text, only: to_text
   implicit none(type, external)
   private

   public :: snapshot_t

   !> As in the example of Farrés, Hanzich and Cela (EAGE 2010).
   integer, parameter :: usual_snapshots = 16

   type, extends(mpiio_backend_t) :: snapshot_t
      !> Whether it computes on while a snapshot is written.
      logical :: overlaps = .false.
      integer, private :: snapshots = usual_snapshots
      type(team_t), private :: team
      !> The block in memory without its halo.
      type(MPI_Datatype), private :: in_copy = MPI_DATATYPE_NULL
      !> Where a snapshot stays while it is written; its write, while it may go on.
      integer(int64), private, pointer, contiguous :: copy(:, :, :) => null()
      type(file_request_t), private :: request
      !> What the last reads differed in.
      type(difference_t), private :: seen
   contains
      procedure :: set_up
      procedure :: forget
      procedure :: write_data
      procedure :: read_data
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
         call fail(error, "--steps="//to_text(self%snapshots)//" is too large: the bytes of so " &
                   //"many arrays cannot be counted in 64 bits", status_usage)
         return
      end if
      self%total_bytes = self%total_bytes*self%snapshots
      call self%settings%add_integer("steps", int(self%snapshots, int64))
      call self%settings%add_integer("every", int(self%task%every, int64))
      call self%settings%add_real("compute", self%task%compute_seconds)
      if (self%overlaps) call take_copy(self, error)
      if (self%overlaps .and. .not. allocated(error)) then
         call self%request%set_up("MPI_File_iwrite_all", error)
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

   subroutine take_copy(self, error)
      class(snapshot_t), intent(inout) :: self
      type(error_t), allocatable, intent(out) :: error
      integer :: status

      associate (n => self%block%layout%block)
         allocate (self%copy(n(1), n(2), n(3)), source=0_int64, stat=status)
         if (status /= 0) call fail(error, "no memory for a copy of a block of " &
                                    //to_text(product(n)*element_bytes)//" bytes")
      end associate
   end subroutine take_copy

   subroutine forget(self)
      class(snapshot_t), intent(inout) :: self

      call self%block%forget()
      if (associated(self%copy)) self%copy = 0_int64
   end subroutine forget

   !> The simulation: before each snapshot its time steps. It ends early when a
   !> process has met an error, and then for all of them.
   subroutine write_data(self, error)
      class(snapshot_t), intent(inout) :: self
      type(error_t), allocatable, intent(out) :: error
      type(error_t), allocatable :: trouble
      integer :: number
      logical :: goes_on

      self%computed_seconds = 0.0_real64
      self%hidden_seconds = 0.0_real64
      if (.not. self%file%is_open()) return
      do number = 0, self%snapshots - 1
         call come_to_snapshot(self, number, goes_on, error)
         if (.not. goes_on) exit
         if (self%overlaps) then
            call self%request%wait(self%file, trouble)
            call keep_first(error, trouble)
            call post(self, number, trouble)
         else
            call write_block(self, trouble)
         end if
         call keep_first(error, trouble)
      end do
      call self%request%wait(self%file, trouble)
      call keep_first(error, trouble)
   end subroutine write_data

   !> What lies before a snapshot, aside. All go on together, or none does: the
   !> processes meet here anyhow.
   subroutine come_to_snapshot(self, number, goes_on, error)
      class(snapshot_t), intent(inout) :: self
      integer, intent(in) :: number
      logical, intent(out) :: goes_on
      type(error_t), allocatable, intent(inout) :: error
      type(error_t), allocatable :: trouble

      goes_on = .false.
      call self%aside%begin(self%team%world, trouble)
      call keep_first(error, trouble)
      call self%team%all_of(.not. allocated(error), goes_on, trouble)
      call keep_first(error, trouble)
      if (goes_on) then
         if (.not. self%overlaps .and. number > 0) call self%fill_array(number)
         call compute(self, trouble)
         call keep_first(error, trouble)
      end if
      call self%aside%finish(self%team%world, trouble)
      call keep_first(error, trouble)
   end subroutine come_to_snapshot

   !> The time steps before a snapshot. MPI libraries often move data only while
   !> they are called, so a simulation that hides its I/O calls them now and then.
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
         self%computed_seconds = self%computed_seconds + now - began
         if (.not. self%request%is_under_way()) cycle
         self%hidden_seconds = self%hidden_seconds + now - began
         call self%request%look(self%file, trouble)
         call keep_first(error, trouble)
         ! This is the I/O's, and so nothing that its clock leaves out.
         self%aside%seconds = self%aside%seconds - (MPI_Wtime() - now)
      end do
   end subroutine compute

   !> Copies the block and begins to write the copy. The next data are made between
   !> the two, so that nothing is hidden behind that.
   subroutine post(self, number, error)
      class(snapshot_t), intent(inout) :: self
      integer, intent(in) :: number
      type(error_t), allocatable, intent(out) :: error
      type(error_t), allocatable :: trouble
      integer :: ierr

      associate (n => self%block%layout%block)
         self%copy = self%block%cells(1:n(1), 1:n(2), 1:n(3))
      end associate
      call self%aside%begin(self%team%world, error)
      if (number + 1 < self%snapshots) call self%fill_array(number + 1)
      call self%aside%finish(self%team%world, trouble)
      call keep_first(error, trouble)
      call MPI_File_iwrite_all(self%file%handle, self%copy, 1, self%in_copy, self%request%handle, &
                               ierr)
      call check(ierr, "MPI_File_iwrite_all of "//self%path, trouble)
      if (allocated(trouble)) self%request%handle = MPI_REQUEST_NULL
      call keep_first(error, trouble)
   end subroutine post

   subroutine write_block(self, error)
      class(snapshot_t), intent(inout) :: self
      type(error_t), allocatable, intent(out) :: error
      type(MPI_Status) :: status
      integer :: ierr

      call MPI_File_write_all(self%file%handle, self%block%cells, 1, self%in_memory, status, ierr)
      call check(ierr, "MPI_File_write_all of "//self%path, error)
      if (.not. allocated(error)) call self%check_block("MPI_File_write_all", status, error)
      call self%free_locks(error)
   end subroutine write_block

   !> All snapshots, each compared before the next one takes its place. Ends as
   !> write_data does after an error.
   subroutine read_data(self, error)
      class(snapshot_t), intent(inout) :: self
      type(error_t), allocatable, intent(out) :: error
      type(error_t), allocatable :: trouble
      type(difference_t) :: none
      integer :: number
      logical :: goes_on

      self%seen = none
      if (.not. self%file%is_open()) return
      do number = 0, self%snapshots - 1
         call read_block(self, trouble)
         call keep_first(error, trouble)
         goes_on = .false.
         call self%aside%begin(self%team%world, trouble)
         call keep_first(error, trouble)
         call self%team%all_of(.not. allocated(error), goes_on, trouble)
         call keep_first(error, trouble)
         if (goes_on .and. self%task%verify) call look_at(self, number)
         call self%aside%finish(self%team%world, trouble)
         call keep_first(error, trouble)
         if (.not. goes_on) exit
      end do
   end subroutine read_data

   subroutine read_block(self, error)
      class(snapshot_t), intent(inout) :: self
      type(error_t), allocatable, intent(out) :: error
      type(MPI_Status) :: status
      integer :: ierr

      call MPI_File_read_all(self%file%handle, self%block%cells, 1, self%in_memory, status, ierr)
      call check(ierr, "MPI_File_read_all of "//self%path, error)
      if (.not. allocated(error)) call self%check_block("MPI_File_read_all", status, error)
   end subroutine read_block

   !> Compares a snapshot, and adds what it differs in to what was seen before.
   subroutine look_at(self, number)
      class(snapshot_t), intent(inout) :: self
      integer, intent(in) :: number
      type(difference_t) :: here

      call self%compare_array(number, here)
      here%compared_bytes = here%compared_bytes + self%seen%compared_bytes
      here%halo_changed = here%halo_changed .or. self%seen%halo_changed
      if (self%seen%differing > 0) then
         self%seen%differing = self%seen%differing + here%differing
         self%seen%compared_bytes = here%compared_bytes
         self%seen%halo_changed = here%halo_changed
      else
         self%seen = here
      end if
   end subroutine look_at

   !> What `read_data` saw: of the snapshots only the last is still there.
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
      call self%take_down_file(trouble)
      call keep_first(error, trouble)
      call free_datatype(self%in_copy, trouble)
      call keep_first(error, trouble)
      if (associated(self%copy)) deallocate (self%copy)
   end subroutine take_down

end module layer_snapshot
