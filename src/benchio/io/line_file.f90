!> A text file that grows by a line at a time, each on the file system's side as
!> soon as it is added. One process has it.
module line_file
   use, intrinsic :: iso_c_binding, only: c_char, c_int, c_loc, c_size_t
   use, intrinsic :: iso_fortran_env, only: int64
   use errors, only: error_t
   use posix_api, only: iovec_t
   use posix_file, only: close_file, open_new, write_vectors
   implicit none(type, external)
   private

   public :: line_file_t

   type :: line_file_t
      private
      character(len=:), allocatable :: path
      integer(c_int) :: fd = -1_c_int
      integer(int64) :: bytes = 0_int64
   contains
      procedure :: start
      procedure :: append
      procedure :: finish
   end type line_file_t

contains

   !> Makes the file, empty.
   subroutine start(self, path, error)
      class(line_file_t), intent(inout) :: self
      character(len=*), intent(in) :: path
      type(error_t), allocatable, intent(out) :: error

      self%path = path
      call open_new(path, self%fd, error)
   end subroutine start

   !> Adds a line; does nothing when no file was started.
   subroutine append(self, line, error)
      class(line_file_t), intent(inout) :: self
      character(len=*), intent(in) :: line
      type(error_t), allocatable, intent(out) :: error
      character(kind=c_char), allocatable, target :: letters(:)
      type(iovec_t) :: stretch(1)
      integer :: at

      if (self%fd < 0) return
      letters = [(line(at:at), at=1, len(line)), new_line("a")]
      stretch(1)%base = c_loc(letters)
      stretch(1)%length = int(size(letters), c_size_t)
      call write_vectors(self%fd, self%path, stretch, self%bytes, error)
      if (.not. allocated(error)) self%bytes = self%bytes + size(letters)
   end subroutine append

   subroutine finish(self, error)
      class(line_file_t), intent(inout) :: self
      type(error_t), allocatable, intent(out) :: error

      if (self%fd >= 0) call close_file(self%fd, self%path, error)
   end subroutine finish

end module line_file
