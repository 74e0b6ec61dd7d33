!> The files that one process uses. The first `most_open` of them stay open; of the others only
!> one is open at a time, until another one is needed.
module benchio_file_pool
   use, intrinsic :: iso_c_binding, only: c_int
   use, intrinsic :: iso_fortran_env, only: int64, int8
   use benchio_call_times, only: call_times_t
   use benchio_data_file, only: data_file_t
   use benchio_errors, only: error_t, keep_first
   use benchio_posix_api, only: mode_existing, mode_shared, mode_shared_existing
   use benchio_task, only: task_t
   use benchio_text, only: string_t
   implicit none(type, external)
   private

   public :: file_pool_t

   ! A common limit of open files is 1024 a process, the MPI library's included.
   integer, parameter :: most_open = 256

   type :: file_pool_t
      type(string_t), allocatable :: paths(:)
      !> The task, which says whether to use O_DIRECT; and whether to create missing files.
      type(task_t) :: task
      logical :: creates = .false.
      !> Whether all files that were opened use O_DIRECT.
      logical :: is_direct = .true.
      integer(c_int), private :: mode = mode_existing
      type(data_file_t), allocatable, private :: files(:)
      !> The file that was opened beyond `most_open`; 0 for none.
      integer, private :: extra = 0
   contains
      procedure :: open_all
      procedure :: move_bytes
      procedure :: sync_all
      procedure :: close_all
   end type file_pool_t

contains

   !> Opens the files, up to `most_open` of them.
   subroutine open_all(self, writing, error)
      class(file_pool_t), intent(inout) :: self
      logical, intent(in) :: writing
      type(error_t), allocatable, intent(out) :: error
      integer :: file

      self%mode = mode_existing
      if (writing) self%mode = merge(mode_shared, mode_shared_existing, self%creates)
      self%is_direct = .true.
      if (.not. allocated(self%files)) allocate (self%files(size(self%paths)))
      do file = 1, min(size(self%paths), most_open)
         call open_one(self, file, error)
         if (allocated(error)) return
      end do
   end subroutine open_all

   !> Opens a file, unless it is open.
   subroutine open_one(self, file, error)
      class(file_pool_t), intent(inout) :: self
      integer, intent(in) :: file
      type(error_t), allocatable, intent(out) :: error

      if (self%files(file)%is_open()) return
      if (file > most_open) then
         if (self%extra > 0) call self%files(self%extra)%close_file(error)
         if (allocated(error)) return
         self%extra = file
      end if
      call self%files(file)%open_file(self%paths(file)%value, self%mode, self%task, error)
      self%is_direct = self%is_direct .and. self%files(file)%is_direct
   end subroutine open_one

   !> Writes contiguous memory at byte `offset` of a file, or fills it from there on.
   subroutine move_bytes(self, writing, file, memory, offset, times, error)
      class(file_pool_t), intent(inout) :: self
      logical, intent(in) :: writing
      integer, intent(in) :: file
      integer(int8), intent(inout), target, contiguous :: memory(:)
      integer(int64), intent(in) :: offset
      type(call_times_t), intent(inout) :: times
      type(error_t), allocatable, intent(out) :: error

      call open_one(self, file, error)
      if (allocated(error)) return
      call self%files(file)%move_bytes(writing, memory, offset, times, error)
   end subroutine move_bytes

   !> Flushes all files. One that was closed in the meantime is opened again: fsync applies
   !> to the file, whichever descriptor wrote it.
   subroutine sync_all(self, error)
      class(file_pool_t), intent(inout) :: self
      type(error_t), allocatable, intent(out) :: error
      integer :: file

      do file = 1, size(self%paths)
         call open_one(self, file, error)
         if (.not. allocated(error)) call self%files(file)%sync(error)
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
      if (.not. allocated(self%files)) return
      do file = 1, size(self%files)
         call self%files(file)%close_file(trouble)
         call keep_first(error, trouble)
      end do
   end subroutine close_all

end module benchio_file_pool
