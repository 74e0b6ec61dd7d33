!> The layer proc: one file for each process, written directly from the array.
!>
!> Memory: with a halo 16 bytes for each row of the block, for the vectors of the system calls.
!> They are prepared before the phase, and no data are copied.
module benchio_layer_proc
   use, intrinsic :: iso_c_binding, only: c_loc, c_size_t
   use, intrinsic :: iso_fortran_env, only: int64
   use benchio_block_backend, only: block_backend_t
   use benchio_data_file, only: data_file_t
   use benchio_errors, only: error_t, fail
   use benchio_file_names, only: path_in
   use benchio_layout, only: element_bytes
   use benchio_posix_api, only: iovec_t, mode_existing, mode_new
   use benchio_team, only: team_t
   use benchio_text, only: to_text
   implicit none(type, external)
   private

   public :: proc_t

   type, extends(block_backend_t) :: proc_t
      private
      type(data_file_t) :: file
      type(iovec_t), allocatable :: stretches(:)
   contains
      procedure :: set_up
      procedure :: open_file
      procedure :: move_data
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

      self%path = path_in(directory, self%name, team%rank)
      self%first_path = path_in(directory, self%name, 0)
      self%path_bytes = self%block%layout%block_elements()*element_bytes
      self%files = team%size
      self%owns_path = .true.
      self%clears_cache = .true.

      call list_stretches(self, error)
   end subroutine set_up

   !> Lists the stretches of contiguous data: the block without a halo, else its rows.
   subroutine list_stretches(self, error)
      class(proc_t), intent(inout) :: self
      type(error_t), allocatable, intent(out) :: error
      integer(int64) :: length, count, at, j, k
      integer :: status

      associate (block => self%block, n => self%block%layout%block)
         length = n(1)
         if (block%halo == 0_int64) length = block%layout%block_elements()
         count = block%layout%block_elements()/length
         allocate (self%stretches(count), stat=status)
         if (status /= 0) then
            call fail(error, "no memory for a list of "//to_text(count)//" rows")
            return
         end if
         do at = 1, count
            j = 1 + mod(at - 1, n(2))
            k = 1 + (at - 1)/n(2)
            self%stretches(at)%base = c_loc(block%cells(1, j, k))
            self%stretches(at)%length = int(length*element_bytes, c_size_t)
         end do
      end associate
   end subroutine list_stretches

   subroutine open_file(self, writing, error)
      class(proc_t), intent(inout) :: self
      logical, intent(in) :: writing
      type(error_t), allocatable, intent(out) :: error

      call self%file%open_file(self%path, merge(mode_new, mode_existing, writing), self%task, error)
      self%outcome%was_direct = self%file%is_direct
   end subroutine open_file

   subroutine move_data(self, writing, error)
      class(proc_t), intent(inout) :: self
      logical, intent(in) :: writing
      type(error_t), allocatable, intent(out) :: error

      if (.not. self%file%is_open()) return
      call self%file%move(writing, self%stretches, 0_int64, self%outcome%times, error)
   end subroutine move_data

   subroutine sync(self, error)
      class(proc_t), intent(inout) :: self
      type(error_t), allocatable, intent(out) :: error

      call self%file%sync(error)
   end subroutine sync

   subroutine close_file(self, error)
      class(proc_t), intent(inout) :: self
      type(error_t), allocatable, intent(out) :: error

      call self%file%close_file(error)
   end subroutine close_file

   subroutine take_down(self, error)
      class(proc_t), intent(inout) :: self
      type(error_t), allocatable, intent(out) :: error

      if (allocated(self%stretches)) deallocate (self%stretches)
      call self%file%close_file(error)
   end subroutine take_down

end module benchio_layer_proc
