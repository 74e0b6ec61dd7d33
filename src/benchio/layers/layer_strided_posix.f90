!> The layer strided-posix: round-robin records, one positioned POSIX call for each, in one
!> file that all processes have open.
module benchio_layer_strided_posix
   use, intrinsic :: iso_fortran_env, only: int8
   use benchio_data_file, only: data_file_t
   use benchio_errors, only: error_t
   use benchio_piece_backend, only: piece_t
   use benchio_posix_api, only: mode_existing, mode_shared
   use benchio_strided, only: strided_t
   use benchio_team, only: team_t
   implicit none(type, external)
   private

   public :: strided_posix_t

   type, extends(strided_t) :: strided_posix_t
      type(data_file_t), private :: file
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

      call self%file%open_file(self%path, merge(mode_shared, mode_existing, writing), self%task, &
                               error)
      self%outcome%was_direct = self%file%is_direct
      self%is_usable = self%file%is_open()
   end subroutine open_file

   subroutine move(self, writing, piece, memory, error)
      class(strided_posix_t), intent(inout) :: self
      logical, intent(in) :: writing
      type(piece_t), intent(in) :: piece
      integer(int8), intent(inout), target, contiguous :: memory(:)
      type(error_t), allocatable, intent(out) :: error

      call self%file%move_bytes(writing, memory, piece%offset, self%outcome%times, error)
   end subroutine move

   subroutine sync(self, error)
      class(strided_posix_t), intent(inout) :: self
      type(error_t), allocatable, intent(out) :: error

      call self%file%sync(error)
   end subroutine sync

   subroutine close_file(self, error)
      class(strided_posix_t), intent(inout) :: self
      type(error_t), allocatable, intent(out) :: error

      call self%file%close_file(error)
      self%is_usable = .false.
   end subroutine close_file

   subroutine take_down(self, error)
      class(strided_posix_t), intent(inout) :: self
      type(error_t), allocatable, intent(out) :: error

      call self%close_file(error)
   end subroutine take_down

end module benchio_layer_strided_posix
