!> Files by way of POSIX calls. Every status is looked at; a failure becomes an
!> error that names the call, the path and the system's text. Knows nothing of
!> MPI or of what is in the files.
module posix_file
   use, intrinsic :: iso_c_binding, only: c_char, c_f_pointer, c_int, c_intptr_t
   use, intrinsic :: iso_c_binding, only: c_null_char, c_ptr, c_size_t
   use, intrinsic :: iso_fortran_env, only: int64
   use errors, only: error_t, fail, keep_first
   use posix_api, only: c_close, c_fsync, c_preadv, c_pwritev, c_strerror, c_strlen, c_unlink
   use posix_api, only: iovec_t, shim_errno, shim_file_size, shim_first_hole, shim_interrupted
   use posix_api, only: shim_free_bytes, shim_missing, shim_open_existing, shim_open_new
   use posix_api, only: shim_is_same_file, shim_open_shared
   use text, only: to_text
   implicit none(type, external)
   private

   public :: open_new, open_shared, open_existing, close_file
   public :: write_vectors, read_vectors, sync_file, release_locks, remove_file
   public :: get_file_size, check_complete, check_creatable, check_free, check_room
   public :: is_same_file, library_path, system_failure

   !> What to add when a file could not be made.
   character(len=*), parameter, public :: write_remedy = &
                                          "; does the directory exist and may you write there?"
   !> What to add when a file could not be opened for reading.
   character(len=*), parameter, public :: read_remedy = &
                                          "; was it kept by a run of the same layer?"

   ! The most vectors that Linux takes in one call (IOV_MAX).
   integer, parameter :: vectors_per_call = 1024

contains

   !> Makes a new file, or empties the old one, and opens it for writing.
   subroutine open_new(path, fd, error)
      character(len=*), intent(in) :: path
      integer(c_int), intent(out) :: fd
      type(error_t), allocatable, intent(out) :: error
      integer(c_int) :: number

      do
         fd = shim_open_new(path//c_null_char)
         if (fd >= 0) return
         number = shim_errno()
         if (shim_interrupted(number) == 0) exit
      end do
      call system_failure("open", path, number, error)
      error%text = error%text//write_remedy
   end subroutine open_new

   !> Opens a file that other processes may write to at the same time: nothing of
   !> what is in it is lost. Unless `creates`, it must be there.
   subroutine open_shared(path, creates, fd, error)
      character(len=*), intent(in) :: path
      logical, intent(in) :: creates
      integer(c_int), intent(out) :: fd
      type(error_t), allocatable, intent(out) :: error
      integer(c_int) :: number

      do
         fd = shim_open_shared(path//c_null_char, merge(1_c_int, 0_c_int, creates))
         if (fd >= 0) return
         number = shim_errno()
         if (shim_interrupted(number) == 0) exit
      end do
      call system_failure("open", path, number, error)
      if (creates) error%text = error%text//write_remedy
   end subroutine open_shared

   !> Opens a file for reading.
   subroutine open_existing(path, fd, error)
      character(len=*), intent(in) :: path
      integer(c_int), intent(out) :: fd
      type(error_t), allocatable, intent(out) :: error
      integer(c_int) :: number

      do
         fd = shim_open_existing(path//c_null_char)
         if (fd >= 0) return
         number = shim_errno()
         if (shim_interrupted(number) == 0) exit
      end do
      call system_failure("open", path, number, error)
      if (shim_missing(number) /= 0) error%text = error%text//read_remedy
   end subroutine open_existing

   !> Writes all of the vectors, one after the other, from byte `offset` on.
   subroutine write_vectors(fd, path, vectors, offset, error)
      integer(c_int), intent(in) :: fd
      character(len=*), intent(in) :: path
      type(iovec_t), intent(in), contiguous :: vectors(:)
      integer(int64), intent(in) :: offset
      type(error_t), allocatable, intent(out) :: error

      call transfer_vectors(.true., fd, path, vectors, offset, error)
   end subroutine write_vectors

   !> Fills all of the vectors, one after the other, from byte `offset` on. It
   !> is an error when the file ends before that.
   subroutine read_vectors(fd, path, vectors, offset, error)
      integer(c_int), intent(in) :: fd
      character(len=*), intent(in) :: path
      type(iovec_t), intent(in), contiguous :: vectors(:)
      integer(int64), intent(in) :: offset
      type(error_t), allocatable, intent(out) :: error

      call transfer_vectors(.false., fd, path, vectors, offset, error)
   end subroutine read_vectors

   !> A call may move less than it was asked for. What is left of a vector that
   !> was cut is moved by itself, so that the others are used as they are.
   subroutine transfer_vectors(writing, fd, path, vectors, offset, error)
      logical, intent(in) :: writing
      integer(c_int), intent(in) :: fd
      character(len=*), intent(in) :: path
      type(iovec_t), intent(in), contiguous :: vectors(:)
      integer(int64), intent(in) :: offset
      type(error_t), allocatable, intent(out) :: error
      integer(c_size_t) :: moved, cut
      integer(int64) :: at, next
      integer(c_int) :: batch, number

      at = offset
      next = 1_int64
      cut = 0_c_size_t
      do while (next <= size(vectors, kind=int64))
         if (cut > 0_c_size_t) then
            moved = one_call(writing, fd, [rest_of(vectors(next), cut)], 1_c_int, at)
         else
            batch = int(min(int(vectors_per_call, int64), &
                            size(vectors, kind=int64) - next + 1_int64), c_int)
            moved = one_call(writing, fd, vectors(next:next + batch - 1), batch, at)
         end if
         if (moved <= 0_c_size_t) then
            number = shim_errno()
            if (moved < 0_c_size_t) then
               if (shim_interrupted(number) /= 0) cycle
            end if
            call transfer_failure(writing, path, at, moved, number, error)
            return
         end if
         at = at + moved
         moved = moved + cut
         cut = 0_c_size_t
         do while (moved > 0_c_size_t)
            if (moved < vectors(next)%length) then
               cut = moved
               exit
            end if
            moved = moved - vectors(next)%length
            next = next + 1_int64
         end do
      end do
   end subroutine transfer_vectors

   function one_call(writing, fd, vectors, count, offset) result(res)
      logical, intent(in) :: writing
      integer(c_int), intent(in) :: fd, count
      type(iovec_t), intent(in), contiguous :: vectors(:)
      integer(int64), intent(in) :: offset
      integer(c_size_t) :: res

      if (writing) then
         res = c_pwritev(fd, vectors, count, offset)
      else
         res = c_preadv(fd, vectors, count, offset)
      end if
   end function one_call

   !> The vector without its first `cut` bytes.
   function rest_of(vector, cut) result(res)
      type(iovec_t), intent(in) :: vector
      integer(c_size_t), intent(in) :: cut
      type(iovec_t) :: res

      res%base = transfer(transfer(vector%base, 0_c_intptr_t) + int(cut, c_intptr_t), res%base)
      res%length = vector%length - cut
   end function rest_of

   subroutine transfer_failure(writing, path, at, moved, number, error)
      logical, intent(in) :: writing
      character(len=*), intent(in) :: path
      integer(int64), intent(in) :: at
      integer(c_size_t), intent(in) :: moved
      integer(c_int), intent(in) :: number
      type(error_t), allocatable, intent(out) :: error

      if (moved < 0_c_size_t) then
         if (writing) then
            call system_failure("write", path, number, error)
         else
            call system_failure("read", path, number, error)
         end if
      else if (writing) then
         call fail(error, "write of "//path//" failed: nothing was written at byte "//to_text(at))
      else
         call fail(error, "read of "//path//" failed: the file ends at byte "//to_text(at))
      end if
   end subroutine transfer_failure

   !> Has the system bring the file's data to where they outlast a crash.
   subroutine sync_file(fd, path, error)
      integer(c_int), intent(in) :: fd
      character(len=*), intent(in) :: path
      type(error_t), allocatable, intent(out) :: error
      integer(c_int) :: number

      do
         if (c_fsync(fd) == 0) return
         number = shim_errno()
         if (shim_interrupted(number) == 0) exit
      end do
      call system_failure("fsync", path, number, error)
   end subroutine sync_file

   !> Closes a file. Not tried again when it fails: the descriptor is gone.
   subroutine close_file(fd, path, error)
      integer(c_int), intent(inout) :: fd
      character(len=*), intent(in) :: path
      type(error_t), allocatable, intent(out) :: error

      if (c_close(fd) /= 0) call system_failure("close", path, shim_errno(), error)
      fd = -1_c_int
   end subroutine close_file

   !> Removes a file; it is no error when there is none.
   subroutine remove_file(path, error)
      character(len=*), intent(in) :: path
      type(error_t), allocatable, intent(out) :: error
      integer(c_int) :: number

      if (c_unlink(path//c_null_char) == 0) return
      number = shim_errno()
      if (shim_missing(number) == 0) call system_failure("removal", path, number, error)
   end subroutine remove_file

   !> The size of a file in bytes.
   subroutine get_file_size(path, bytes, error)
      character(len=*), intent(in) :: path
      integer(int64), intent(out) :: bytes
      type(error_t), allocatable, intent(out) :: error

      bytes = shim_file_size(path//c_null_char)
      if (bytes < 0_int64) call system_failure("stat", path, shim_errno(), error)
   end subroutine get_file_size

   !> An error unless a new file can be made; leaves none.
   subroutine check_creatable(path, error)
      character(len=*), intent(in) :: path
      type(error_t), allocatable, intent(out) :: error
      integer(c_int) :: fd

      call open_new(path, fd, error)
      if (.not. allocated(error)) call close_file(fd, path, error)
      if (.not. allocated(error)) call remove_file(path, error)
   end subroutine check_creatable

   !> An error unless the file has this many bytes, or at least so many where a
   !> library keeps more than the data in it, and all were written. MPI libraries
   !> do return success for data that never reached a full device, and
   !> later data may then stand behind a hole of the right size. What a library has
   !> before the data, `header` bytes where that is known, may have holes: it may
   !> begin the data where a stripe does.
   subroutine check_complete(path, bytes, or_more, error, header)
      character(len=*), intent(in) :: path
      integer(int64), intent(in) :: bytes
      logical, intent(in) :: or_more
      type(error_t), allocatable, intent(out) :: error
      integer(int64), intent(in), optional :: header
      type(error_t), allocatable :: trouble
      integer(int64) :: least, size, found
      integer(c_int) :: fd

      call get_file_size(path, size, error)
      if (allocated(error)) return
      least = bytes
      if (present(header)) least = bytes + header
      if (size < least .or. (size > bytes .and. .not. or_more)) then
         call fail(error, path//" has "//to_text(size)//" bytes and should have " &
                   //to_text(least)//trim(merge(" or more", "        ", or_more)))
         return
      end if
      call open_existing(path, fd, error)
      if (allocated(error)) return
      found = shim_first_hole(fd, size - bytes)
      if (found < 0_int64) then
         call system_failure("lseek", path, shim_errno(), error)
      else if (found < size) then
         call fail(error, path//" has a hole: nothing was written at byte "//to_text(found))
      end if
      call close_file(fd, path, trouble)
      call keep_first(error, trouble)
   end subroutine check_complete

   !> Gives up all locks that this process has on a file: the system does so when
   !> the process closes the file, by whichever descriptor. ROMIO keeps its lock when
   !> a write fails, and the other processes would wait for it for ever.
   subroutine release_locks(path, error)
      character(len=*), intent(in) :: path
      type(error_t), allocatable, intent(out) :: error
      integer(c_int) :: fd

      call open_existing(path, fd, error)
      if (.not. allocated(error)) call close_file(fd, path, error)
   end subroutine release_locks

   !> Whether two paths lead to one file that is there.
   function is_same_file(one, other) result(res)
      character(len=*), intent(in) :: one, other
      logical :: res

      res = shim_is_same_file(one//c_null_char, other//c_null_char) /= 0_c_int
   end function is_same_file

   !> A path as libraries take it: some leave blanks out that it begins with, and
   !> take what is before a colon for the name of a file system.
   pure function library_path(path) result(res)
      character(len=*), intent(in) :: path
      character(len=:), allocatable :: res

      res = path
      if (path(1:1) == " " .or. index(path, ":") > 0 .and. path(1:1) /= "/") res = "./"//path
   end function library_path

   !> An error when so many bytes cannot be written below a directory.
   subroutine check_room(directory, bytes, error)
      character(len=*), intent(in) :: directory
      integer(int64), intent(in) :: bytes
      type(error_t), allocatable, intent(out) :: error
      integer(int64) :: free

      free = shim_free_bytes(directory//c_null_char)
      if (free < 0_int64) then
         call system_failure("statvfs", directory, shim_errno(), error)
      else if (free < bytes) then
         call fail(error, directory//" has "//to_text(free)//" bytes free, and "//to_text(bytes) &
                   //" are to be written")
      end if
   end subroutine check_room

   !> An error when fewer than `floor` bytes would be free below `directory` after
   !> `wanted` more were written.
   subroutine check_free(directory, wanted, floor, error)
      character(len=*), intent(in) :: directory
      integer(int64), intent(in) :: wanted, floor
      type(error_t), allocatable, intent(out) :: error
      integer(int64) :: free

      free = shim_free_bytes(directory//c_null_char)
      if (free < 0_int64) then
         call system_failure("statvfs", directory, shim_errno(), error)
      else if (free - wanted < floor) then
         call fail(error, directory//" has "//to_text(free)//" bytes free: "//to_text(wanted) &
                   //" more would leave less than --min-free="//to_text(floor))
      end if
   end subroutine check_free

   !> An error for a call that failed on a path with this error number.
   subroutine system_failure(what, path, number, error)
      character(len=*), intent(in) :: what, path
      integer(c_int), intent(in) :: number
      type(error_t), allocatable, intent(out) :: error

      call fail(error, what//" of "//path//" failed: "//system_text(number)//" (errno " &
                //to_text(int(number))//")")
   end subroutine system_failure

   function system_text(number) result(res)
      integer(c_int), intent(in) :: number
      character(len=:), allocatable :: res
      character(kind=c_char), pointer :: letters(:)
      type(c_ptr) :: string
      integer :: at

      string = c_strerror(number)
      call c_f_pointer(string, letters, [c_strlen(string)])
      allocate (character(len=size(letters)) :: res)
      do at = 1, size(letters)
         res(at:at) = letters(at)
      end do
   end function system_text

end module posix_file
