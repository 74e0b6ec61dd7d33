!> The block of the array that a process holds, with a halo of `--halo` elements on every side.
!> With a halo, as in simulation codes, the data are not contiguous in memory.
module benchio_block_data
   use, intrinsic :: iso_c_binding, only: c_f_pointer, c_loc, c_ptr
   use, intrinsic :: iso_fortran_env, only: int64
   use benchio_difference, only: difference_t
   use benchio_errors, only: error_t, fail
   use benchio_fingerprint, only: mixed_seed, value_at
   use benchio_layout, only: element_bytes, layout_t
   use benchio_posix_api, only: c_free, c_posix_memalign, memory_alignment
   use benchio_text, only: to_text
   implicit none(type, external)
   private

   public :: block_t

   ! The value of the halo. A layer must neither write nor overwrite it.
   integer(int64), parameter :: halo_marker = -1_int64
   ! The value of the interior before a read, so that a read that does nothing fails the
   ! verification.
   integer(int64), parameter :: unread_marker = -2_int64

   type :: block_t
      type(layout_t) :: layout
      !> The elements of the halo on each side.
      integer(int64) :: halo = 0_int64
      !> The elements: the interior from 1 on, and the halo around it. Aligned for O_DIRECT.
      integer(int64), pointer, contiguous :: cells(:, :, :) => null()
      integer(int64), private :: mixed = 0_int64
   contains
      procedure :: create
      procedure :: room
      procedure :: free
      procedure :: fill
      procedure :: poison
      procedure :: compare
   end type block_t

contains

   !> Allocates the block and its halo, 8 bytes an element.
   subroutine create(self, layout, halo, seed, error)
      class(block_t), intent(inout) :: self
      type(layout_t), intent(in) :: layout
      integer, intent(in) :: halo
      integer(int64), intent(in) :: seed
      type(error_t), allocatable, intent(out) :: error
      integer(int64), pointer, contiguous :: memory(:)
      type(c_ptr) :: start
      integer(int64) :: elements

      self%layout = layout
      self%halo = halo
      self%mixed = mixed_seed(seed)
      elements = product(self%room())
      if (c_posix_memalign(start, memory_alignment, elements*element_bytes) /= 0) then
         associate (n => layout%block)
            call fail(error, "no memory for a block of "//to_text(n(1))//" x "//to_text(n(2)) &
                      //" x "//to_text(n(3))//" elements of "//to_text(element_bytes) &
                      //" bytes, and "//to_text(halo)//" around it")
         end associate
         return
      end if
      call c_f_pointer(start, memory, [elements])
      associate (n => self%room(), first => 1 - self%halo)
         self%cells(first:first + n(1) - 1, first:first + n(2) - 1, first:first + n(3) - 1) => &
            memory
      end associate
   end subroutine create

   !> The elements along each axis, with the halo.
   pure function room(self) result(res)
      class(block_t), intent(in) :: self
      integer(int64) :: res(3)

      res = self%layout%block + 2*self%halo
   end function room

   subroutine free(self)
      class(block_t), intent(inout) :: self

      if (associated(self%cells)) call c_free(c_loc(self%cells))
      self%cells => null()
   end subroutine free

   !> Sets each element of the interior to its value, and the halo to its marker. `first`
   !> is the number of elements in the arrays before this one.
   subroutine fill(self, first)
      class(block_t), intent(inout) :: self
      integer(int64), intent(in) :: first
      integer(int64) :: i, j, k, before

      self%cells = halo_marker
      associate (n => self%layout%block)
         do k = 1, n(3)
            do j = 1, n(2)
               before = first + self%layout%global_index(0_int64, j, k)
               do i = 1, n(1)
                  self%cells(i, j, k) = value_at(before + i, self%mixed)
               end do
            end do
         end do
      end associate
   end subroutine fill

   !> Overwrites everything, so that only a read can restore the values.
   subroutine poison(self)
      class(block_t), intent(inout) :: self

      self%cells = halo_marker
      associate (n => self%layout%block)
         self%cells(1:n(1), 1:n(2), 1:n(3)) = unread_marker
      end associate
   end subroutine poison

   !> Compares every element of the interior with its value, and every element of the halo
   !> with its marker. `first` as for `fill`.
   function compare(self, first) result(res)
      class(block_t), intent(in) :: self
      integer(int64), intent(in) :: first
      type(difference_t) :: res
      integer(int64) :: i, j, k, before, expected

      associate (n => self%layout%block)
         do k = 1, n(3)
            do j = 1, n(2)
               before = first + self%layout%global_index(0_int64, j, k)
               do i = 1, n(1)
                  expected = value_at(before + i, self%mixed)
                  if (self%cells(i, j, k) == expected) cycle
                  call res%count_element(before + i, expected, self%cells(i, j, k))
               end do
            end do
         end do
         res%compared_bytes = product(n)*element_bytes
         res%halo_changed = any(self%cells(:0, :, :) /= halo_marker) &
                            .or. any(self%cells(n(1) + 1:, :, :) /= halo_marker) &
                            .or. any(self%cells(:, :0, :) /= halo_marker) &
                            .or. any(self%cells(:, n(2) + 1:, :) /= halo_marker) &
                            .or. any(self%cells(:, :, :0) /= halo_marker) &
                            .or. any(self%cells(:, :, n(3) + 1:) /= halo_marker)
      end associate
   end function compare

end module benchio_block_data
