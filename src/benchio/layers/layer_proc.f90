!> The layer proc: one file for each process, written directly from the array.
!>
!> Memory: 16 bytes for each row of the block, for the vectors of the system calls. They are
!> prepared before the phase, and no data are copied.
module layer_proc
   use, intrinsic :: iso_c_binding, only: c_int, c_loc, c_size_t
   use, intrinsic :: iso_fortran_env, only: int64
   use backend, only: path_in
   use block_backend, only: block_backend_t
   use direct_read, only: direct_reader_t, open_to_read
   use errors, only: error_t, fail
   use layout, only: element_bytes
   use posix_api, only: iovec_t
   use posix_file, only: close_fd => close_file, open_new, sync_file, write_vectors
   use team, only: team_t
   use text, only: to_text
   implicit none(type, external)
   private

   public :: proc_t

   type, extends(block_backend_t) :: proc_t
      private
      integer(c_int) :: fd = -1_c_int
      type(iovec_t), allocatable :: rows(:)
      type(direct_reader_t) :: direct
   contains
      procedure :: set_up
      procedure :: open_file
      procedure :: write_data
      procedure :: read_data
      procedure :: sync
      procedure :: close_file
      procedure :: take_down
   end type proc_t

contains

   subroutine set_up(self, team, directory, error)
      class(proc_t), intent(inout) :: self
      type(team_t), intent(in) :: team
      character(len=*), intent(in) :: directory
      type(error_t), allocatable, intent(out) :: error
      integer(int64) :: j, k, row
      integer :: status

      self%path = path_in(directory, self%name, team%rank)
      self%first_path = path_in(directory, self%name, 0)
      self%path_bytes = self%block%layout%block_elements()*element_bytes
      self%files = team%size
      self%owns_path = .true.
      self%clears_cache = .true.

      associate (n => self%block%layout%block)
         allocate (self%rows(n(2)*n(3)), stat=status)
         if (status /= 0) then
            call fail(error, "no memory for a list of "//to_text(n(2)*n(3))//" rows")
            return
         end if
         row = 0_int64
         do k = 1, n(3)
            do j = 1, n(2)
               row = row + 1
               self%rows(row)%base = c_loc(self%block%cells(1, j, k))
               self%rows(row)%length = int(n(1)*element_bytes, c_size_t)
            end do
         end do
      end associate
   end subroutine set_up

   subroutine open_file(self, writing, error)
      class(proc_t), intent(inout) :: self
      logical, intent(in) :: writing
      type(error_t), allocatable, intent(out) :: error

      if (writing) then
         call open_new(self%path, self%fd, error)
      else
         call open_to_read(self%path, self%task%direct, self%fd, self%outcome%was_direct, error)
      end if
   end subroutine open_file

   subroutine write_data(self, error)
      class(proc_t), intent(inout) :: self
      type(error_t), allocatable, intent(out) :: error

      if (self%fd >= 0) call write_vectors(self%fd, self%path, self%rows, 0_int64, error)
   end subroutine write_data

   subroutine read_data(self, error)
      class(proc_t), intent(inout) :: self
      type(error_t), allocatable, intent(out) :: error

      if (self%fd < 0) return
      call self%direct%read_vectors(self%outcome%was_direct, self%fd, self%path, self%rows, &
                                    0_int64, error)
   end subroutine read_data

   subroutine sync(self, error)
      class(proc_t), intent(inout) :: self
      type(error_t), allocatable, intent(out) :: error

      if (self%fd >= 0) call sync_file(self%fd, self%path, error)
   end subroutine sync

   subroutine close_file(self, error)
      class(proc_t), intent(inout) :: self
      type(error_t), allocatable, intent(out) :: error

      if (self%fd >= 0) call close_fd(self%fd, self%path, error)
   end subroutine close_file

   subroutine take_down(self, error)
      class(proc_t), intent(inout) :: self
      type(error_t), allocatable, intent(out) :: error

      if (allocated(self%rows)) deallocate (self%rows)
      call self%direct%free()
      call self%close_file(error)
   end subroutine take_down

end module layer_proc
