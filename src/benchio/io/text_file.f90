!> A small text file, read as a whole. One process has it.
module text_file
   use, intrinsic :: iso_c_binding, only: c_int
   use, intrinsic :: iso_fortran_env, only: int64, int8
   use errors, only: error_t, fail, keep_first
   use direct_read, only: direct_reader_t
   use posix_file, only: close_file, get_file_size, open_existing
   use posix_pieces, only: read_piece
   use text, only: to_text
   implicit none(type, external)
   private

   public :: read_text

contains

   subroutine read_text(path, text, error)
      character(len=*), intent(in) :: path
      character(len=:), allocatable, intent(out) :: text
      type(error_t), allocatable, intent(out) :: error
      integer(int8), allocatable, target :: letters(:)
      type(error_t), allocatable :: trouble
      type(direct_reader_t) :: reader
      integer(int64) :: bytes
      integer(c_int) :: fd

      text = ""
      call get_file_size(path, bytes, error)
      if (allocated(error)) return
      if (bytes > huge(1)) then
         call fail(error, path//" is too large: it has "//to_text(bytes)//" bytes")
         return
      end if
      call open_existing(path, fd, error)
      if (allocated(error)) return
      allocate (letters(bytes))
      if (bytes > 0) call read_piece(fd, path, letters, 0_int64, .false., reader, error)
      call close_file(fd, path, trouble)
      call keep_first(error, trouble)
      if (allocated(error)) return
      deallocate (text)
      allocate (character(len=int(bytes)) :: text)
      text = transfer(letters, text)
   end subroutine read_text

end module text_file
