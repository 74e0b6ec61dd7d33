!> The layers strided and strided-independent: round-robin records through MPI-IO, one
!> collective or independent call with an explicit offset for each record.
module benchio_layer_strided
   use, intrinsic :: iso_fortran_env, only: int64, int8
   use benchio_errors, only: error_t, fail, status_usage
   use benchio_mpi_checks, only: check
   use benchio_mpiio_file, only: mpiio_file_t
   use benchio_piece_backend, only: piece_t
   use benchio_strided, only: strided_t
   use benchio_team, only: team_t
   use benchio_text, only: to_text
   use benchio_wait_limit, only: limit_wait
   use mpi_f08, only: MPI_BYTE, MPI_File_read_at, MPI_File_read_at_all, MPI_File_write_at, &
                      MPI_File_write_at_all, MPI_OFFSET_KIND, MPI_Status
   implicit none(type, external)
   private

   public :: strided_mpiio_t

   type, extends(strided_t) :: strided_mpiio_t
      !> Whether the calls are collective.
      logical :: collective = .true.
      type(mpiio_file_t) :: file
   contains
      procedure :: set_up
      procedure :: open_file
      procedure :: move
      procedure :: sync
      procedure :: close_file
      procedure :: take_down
   end type strided_mpiio_t

contains

   subroutine set_up(self, team, directory, error)
      class(strided_mpiio_t), intent(inout) :: self
      type(team_t), intent(in) :: team
      character(len=*), intent(in) :: directory
      type(error_t), allocatable, intent(out) :: error

      call self%plan_records(team, directory, error)
      if (allocated(error)) return
      if (self%longest > huge(1)) then
         call fail(error, "a record of "//to_text(self%longest)//" bytes is too large: an MPI-IO " &
                   //"call moves at most "//to_text(huge(1)), status_usage)
         return
      end if
      self%is_collective = self%collective
      self%uses_hints = .true.
      call self%file%set_up(team%world, self%path, self%hints_asked, error)
   end subroutine set_up

   subroutine open_file(self, writing, error)
      class(strided_mpiio_t), intent(inout) :: self
      logical, intent(in) :: writing
      type(error_t), allocatable, intent(out) :: error

      call self%file%open_file(writing, error)
      self%is_usable = self%file%is_open()
   end subroutine open_file

   subroutine move(self, writing, piece, memory, error)
      class(strided_mpiio_t), intent(inout) :: self
      logical, intent(in) :: writing
      type(piece_t), intent(in) :: piece
      integer(int8), intent(inout), target, contiguous :: memory(:)
      type(error_t), allocatable, intent(out) :: error
      character(len=:), allocatable :: call_name
      integer(MPI_OFFSET_KIND) :: offset
      type(MPI_Status) :: status
      integer :: bytes, ierr

      offset = int(piece%offset, MPI_OFFSET_KIND)
      bytes = int(piece%bytes)
      call self%outcome%times%begin()
      associate (handle => self%file%handle)
         if (writing .and. self%collective) then
            call_name = "MPI_File_write_at_all"
            call MPI_File_write_at_all(handle, offset, memory, bytes, MPI_BYTE, status, ierr)
            call check(ierr, call_name//" of "//self%path, error)
         else if (writing) then
            call_name = "MPI_File_write_at"
            call MPI_File_write_at(handle, offset, memory, bytes, MPI_BYTE, status, ierr)
            call check(ierr, call_name//" of "//self%path, error)
         else if (self%collective) then
            call_name = "MPI_File_read_at_all"
            call MPI_File_read_at_all(handle, offset, memory, bytes, MPI_BYTE, status, ierr)
            call check(ierr, call_name//" of "//self%path, error)
         else
            call_name = "MPI_File_read_at"
            call MPI_File_read_at(handle, offset, memory, bytes, MPI_BYTE, status, ierr)
            call check(ierr, call_name//" of "//self%path, error)
         end if
      end associate
      if (.not. allocated(error)) then
         call self%outcome%times%finish()
         call self%file%check_moved(call_name, status, MPI_BYTE, piece%bytes, 1_int64, error)
      end if
      call limit_wait(error)
   end subroutine move

   subroutine sync(self, error)
      class(strided_mpiio_t), intent(inout) :: self
      type(error_t), allocatable, intent(out) :: error

      call self%file%sync(error)
   end subroutine sync

   subroutine close_file(self, error)
      class(strided_mpiio_t), intent(inout) :: self
      type(error_t), allocatable, intent(out) :: error

      call self%file%close_file(error)
      self%outcome%info_used = self%file%info_used
      self%is_usable = .false.
   end subroutine close_file

   subroutine take_down(self, error)
      class(strided_mpiio_t), intent(inout) :: self
      type(error_t), allocatable, intent(out) :: error

      call self%file%take_down(error)
   end subroutine take_down

end module benchio_layer_strided
