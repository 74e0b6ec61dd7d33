!> Positioned POSIX calls for a stretch of plain memory.
module posix_pieces
   use, intrinsic :: iso_c_binding, only: c_int, c_loc, c_size_t
   use, intrinsic :: iso_fortran_env, only: int64, int8
   use direct_read, only: direct_reader_t
   use errors, only: error_t
   use posix_api, only: iovec_t
   use posix_file, only: read_vectors, write_vectors
   implicit none(type, external)
   private

   public :: write_piece, read_piece

contains

   !> Writes all of the memory, from byte `offset` on.
   subroutine write_piece(fd, path, memory, offset, error)
      integer(c_int), intent(in) :: fd
      character(len=*), intent(in) :: path
      integer(int8), intent(in), target, contiguous :: memory(:)
      integer(int64), intent(in) :: offset
      type(error_t), allocatable, intent(out) :: error
      type(iovec_t) :: stretch(1)

      stretch(1)%base = c_loc(memory)
      stretch(1)%length = size(memory, kind=c_size_t)
      call write_vectors(fd, path, stretch, offset, error)
   end subroutine write_piece

   !> Fills all of the memory, from byte `offset` on; where `direct` is wanted by way
   !> of the reader, which goes past the page cache if the file was so opened.
   subroutine read_piece(fd, path, memory, offset, direct, reader, error)
      integer(c_int), intent(in) :: fd
      character(len=*), intent(in) :: path
      integer(int8), intent(inout), target, contiguous :: memory(:)
      integer(int64), intent(in) :: offset
      logical, intent(in) :: direct
      type(direct_reader_t), intent(inout) :: reader
      type(error_t), allocatable, intent(out) :: error
      type(iovec_t) :: stretch(1)

      stretch(1)%base = c_loc(memory)
      stretch(1)%length = size(memory, kind=c_size_t)
      if (direct) then
         call reader%read_vectors(fd, path, stretch, offset, error)
      else
         call read_vectors(fd, path, stretch, offset, error)
      end if
   end subroutine read_piece

end module posix_pieces
