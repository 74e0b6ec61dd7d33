!> The files that one process uses, of which it keeps at most `most_open` open. One more
!> is opened when it is needed, in place of the last such file.
module file_pool
   use, intrinsic :: iso_c_binding, only: c_int
   use direct_io, only: open_to_read, open_to_write
   use errors, only: error_t, keep_first
   use io_calls, only: io_calls_t
   use posix_api, only: mode_shared, mode_shared_existing
   use posix_file, only: close_file, sync_file
   use task, only: task_t
   use text, only: string_t
   implicit none(type, external)
   private

   public :: file_pool_t

   ! A common limit of open files is 1024 a process, with those of the MPI library.
   integer, parameter :: most_open = 256

   type :: file_pool_t
      type(string_t), allocatable :: paths(:)
      !> What says whether to use O_DIRECT, and whether to create files that are missing.
      type(task_t) :: task
      logical :: creates = .false.
      !> Whether all files that were opened for reading use O_DIRECT.
      logical :: is_direct = .true.
      logical, private :: writing = .false.
      integer(c_int), allocatable, private :: fds(:)
      !> The file that was opened beyond `most_open`; 0 for none.
      integer, private :: extra = 0
   contains
      procedure :: open_all
      procedure :: get
      procedure :: sync_all
      procedure :: close_all
   end type file_pool_t

contains

   !> Opens the files, up to `most_open` of them.
   subroutine open_all(self, writing, calls, error)
      class(file_pool_t), intent(inout) :: self
      logical, intent(in) :: writing
      type(io_calls_t), intent(inout) :: calls
      type(error_t), allocatable, intent(out) :: error
      integer :: file

      self%writing = writing
      self%is_direct = .true.
      if (.not. allocated(self%fds)) allocate (self%fds(size(self%paths)), source=-1_c_int)
      do file = 1, min(size(self%paths), most_open)
         call open_one(self, file, calls, error)
         if (allocated(error)) return
      end do
   end subroutine open_all

   subroutine open_one(self, file, calls, error)
      class(file_pool_t), intent(inout) :: self
      integer, intent(in) :: file
      type(io_calls_t), intent(inout) :: calls
      type(error_t), allocatable, intent(out) :: error
      logical :: is_direct

      associate (path => self%paths(file)%value)
         if (self%writing) then
            call open_to_write(path, merge(mode_shared, mode_shared_existing, self%creates), &
                               self%task, self%fds(file), calls, error)
         else
            call open_to_read(path, self%task, self%fds(file), calls, is_direct, error)
            self%is_direct = self%is_direct .and. is_direct
         end if
      end associate
   end subroutine open_one

   !> The descriptor of a file, which is opened if necessary.
   subroutine get(self, file, fd, calls, error)
      class(file_pool_t), intent(inout) :: self
      integer, intent(in) :: file
      integer(c_int), intent(out) :: fd
      type(io_calls_t), intent(inout) :: calls
      type(error_t), allocatable, intent(out) :: error

      if (self%fds(file) < 0) then
         if (self%extra > 0) call close_one(self, self%extra, error)
         self%extra = file
         if (.not. allocated(error)) call open_one(self, file, calls, error)
      end if
      fd = self%fds(file)
   end subroutine get

   !> Flushes all files. One that was closed in the meantime is opened again: fsync applies
   !> to the file, whichever descriptor wrote it.
   subroutine sync_all(self, error)
      class(file_pool_t), intent(inout) :: self
      type(error_t), allocatable, intent(out) :: error
      type(io_calls_t) :: calls
      integer(c_int) :: fd
      integer :: file

      do file = 1, size(self%paths)
         call self%get(file, fd, calls, error)
         if (.not. allocated(error)) call sync_file(fd, self%paths(file)%value, error)
         if (allocated(error)) return
      end do
   end subroutine sync_all

   !> Closes the files that are open.
   subroutine close_all(self, error)
      class(file_pool_t), intent(inout) :: self
      type(error_t), allocatable, intent(out) :: error
      type(error_t), allocatable :: trouble
      integer :: file

      self%extra = 0
      if (.not. allocated(self%fds)) return
      do file = 1, size(self%fds)
         call close_one(self, file, trouble)
         call keep_first(error, trouble)
      end do
   end subroutine close_all

   subroutine close_one(self, file, error)
      class(file_pool_t), intent(inout) :: self
      integer, intent(in) :: file
      type(error_t), allocatable, intent(out) :: error

      if (self%fds(file) >= 0) call close_file(self%fds(file), self%paths(file)%value, error)
   end subroutine close_one

end module file_pool
