!> The layer strided-posix: round-robin records, one positioned POSIX call for each, in one
!> file that all processes have open.
module layer_strided_posix
   use, intrinsic :: iso_c_binding, only: c_int
   use, intrinsic :: iso_fortran_env, only: int8
   use direct_io, only: direct_reader_t, open_to_read, open_to_write
   use errors, only: error_t
   use piece_backend, only: piece_t
   use posix_api, only: mode_shared
   use posix_file, only: close_fd => close_file, sync_file, write_bytes
   use strided, only: strided_t
   use team, only: team_t
   implicit none(type, external)
   private

   public :: strided_posix_t

   type, extends(strided_t) :: strided_posix_t
      integer(c_int), private :: fd = -1_c_int
      type(direct_reader_t), private :: direct
   contains
      procedure :: set_up
      procedure :: open_file
      procedure :: move
      procedure :: sync
      procedure :: close_file
      procedure :: take_down
   end type strided_posix_t

contains

   subroutine set_up(self, team, directory, error)
      class(strided_posix_t), intent(inout) :: self
      type(team_t), intent(in) :: team
      character(len=*), intent(in) :: directory
      type(error_t), allocatable, intent(out) :: error

      call self%plan_records(team, directory, error)
      ! The open itself returns the system's error text.
      self%tests_creation = .false.
   end subroutine set_up

   subroutine open_file(self, writing, error)
      class(strided_posix_t), intent(inout) :: self
      logical, intent(in) :: writing
      type(error_t), allocatable, intent(out) :: error

      if (writing) then
         call open_to_write(self%path, mode_shared, self%task, self%fd, self%outcome%calls, error)
      else
         call open_to_read(self%path, self%task, self%fd, self%outcome%calls, &
                           self%outcome%was_direct, error)
      end if
      self%is_usable = self%fd >= 0
   end subroutine open_file

   subroutine move(self, writing, piece, memory, error)
      class(strided_posix_t), intent(inout) :: self
      logical, intent(in) :: writing
      type(piece_t), intent(in) :: piece
      integer(int8), intent(inout), target, contiguous :: memory(:)
      type(error_t), allocatable, intent(out) :: error

      if (writing) then
         call write_bytes(self%fd, self%path, memory, piece%offset, self%outcome%calls, error)
      else
         call self%direct%read_bytes(self%outcome%was_direct, self%fd, self%path, memory, &
                                     piece%offset, self%outcome%calls, error)
      end if
   end subroutine move

   subroutine sync(self, error)
      class(strided_posix_t), intent(inout) :: self
      type(error_t), allocatable, intent(out) :: error

      if (self%fd >= 0) call sync_file(self%fd, self%path, error)
   end subroutine sync

   subroutine close_file(self, error)
      class(strided_posix_t), intent(inout) :: self
      type(error_t), allocatable, intent(out) :: error

      if (self%fd >= 0) call close_fd(self%fd, self%path, error)
      self%is_usable = .false.
   end subroutine close_file

   subroutine take_down(self, error)
      class(strided_posix_t), intent(inout) :: self
      type(error_t), allocatable, intent(out) :: error

      call self%direct%free()
      call self%close_file(error)
   end subroutine take_down

end module layer_strided_posix
