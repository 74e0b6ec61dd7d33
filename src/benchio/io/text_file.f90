!> Text files of one process: read as a whole, or written line by line.
module benchio_text_file
   use, intrinsic :: iso_c_binding, only: c_int, c_loc, c_null_char, c_size_t
   use, intrinsic :: iso_fortran_env, only: int64, int8
   use benchio_errors, only: error_t, fail, keep_first
   use benchio_posix_api, only: c_ftruncate, iovec_t, mode_existing, mode_replacing, shim_errno, &
                                shim_is_regular
   use benchio_posix_file, only: close_file, move_vectors, open_file
   use benchio_posix_path, only: get_file_size, remove_file, system_failure
   use benchio_text, only: to_text
   implicit none(type, external)
   private

   public :: read_text, line_file_t

   !> A file to which lines are appended; each is written at once.
   type :: line_file_t
      !> Whether the file holds only the appended lines.
      logical :: is_cleared = .false.
      character(len=:), allocatable, private :: path
      !> Whether `start` created the file.
      logical, private :: is_new = .false.
      integer(c_int), private :: fd = -1_c_int
      integer(int64), private :: bytes = 0_int64
   contains
      procedure :: start
      procedure :: clear
      procedure :: append
      procedure :: finish
   end type line_file_t

contains

   !> The content of a file.
   subroutine read_text(path, text, error)
      character(len=*), intent(in) :: path
      character(len=:), allocatable, intent(out) :: text
      type(error_t), allocatable, intent(out) :: error
      integer(int8), allocatable, target :: letters(:)
      type(error_t), allocatable :: trouble
      integer(int64) :: bytes
      integer(c_int) :: fd

      text = ""
      call get_file_size(path, bytes, error)
      if (allocated(error)) return
      if (shim_is_regular(path//c_null_char) /= 1_c_int) then
         call fail(error, path//" is not a regular file")
         return
      end if
      if (bytes > huge(1)) then
         call fail(error, path//" is too large: it has "//to_text(bytes)//" bytes")
         return
      end if
      call open_file(path, mode_existing, fd, error)
      if (allocated(error)) return
      allocate (letters(bytes))
      if (bytes > 0) then
         call move_vectors(.false., fd, path, [iovec_t(c_loc(letters), bytes)], 0_int64, error)
      end if
      call close_file(fd, path, trouble)
      call keep_first(error, trouble)
      if (allocated(error)) return
      deallocate (text)
      allocate (character(len=int(bytes)) :: text)
      text = transfer(letters, text)
   end subroutine read_text

   !> Creates or opens the file; an error if the path leads to something else, such as a device. An
   !> existing file keeps its content, which may be data, until `clear`.
   subroutine start(self, path, error)
      class(line_file_t), intent(inout) :: self
      character(len=*), intent(in) :: path
      type(error_t), allocatable, intent(out) :: error
      integer(c_int) :: before

      before = shim_is_regular(path//c_null_char)
      if (before == 0_c_int) then
         call fail(error, path//" is not a regular file")
         return
      end if
      self%is_new = before < 0_c_int
      self%path = path
      call open_file(path, mode_replacing, self%fd, error)
   end subroutine start

   !> Empties the file if it is open, unless that was done before.
   subroutine clear(self, error)
      class(line_file_t), intent(inout) :: self
      type(error_t), allocatable, intent(out) :: error

      if (self%is_cleared .or. self%fd < 0) return
      if (c_ftruncate(self%fd, 0_int64) /= 0_c_int) then
         call system_failure("truncate", self%path, shim_errno(), error)
      end if
      self%is_cleared = .true.
   end subroutine clear

   !> Appends a line; does nothing if no file was started.
   subroutine append(self, line, error)
      class(line_file_t), intent(inout) :: self
      character(len=*), intent(in) :: line
      type(error_t), allocatable, intent(out) :: error
      integer(int8), allocatable, target :: letters(:)

      if (self%fd < 0) return
      letters = transfer(line//new_line("a"), [0_int8])
      call move_vectors(.true., self%fd, self%path, &
                        [iovec_t(c_loc(letters), size(letters, kind=c_size_t))], self%bytes, error)
      if (.not. allocated(error)) self%bytes = self%bytes + size(letters)
   end subroutine append

   !> Closes the file, and removes it if `start` created it and the run was refused before `clear`.
   subroutine finish(self, error)
      class(line_file_t), intent(inout) :: self
      type(error_t), allocatable, intent(out) :: error
      type(error_t), allocatable :: trouble

      if (self%fd < 0) return
      call close_file(self%fd, self%path, error)
      if (self%is_new .and. .not. self%is_cleared) call remove_file(self%path, trouble)
      call keep_first(error, trouble)
   end subroutine finish

end module benchio_text_file
