!> How the data that one process read differ from the data that were written.
module benchio_difference
   use, intrinsic :: iso_fortran_env, only: int64
   implicit none(type, external)
   private

   public :: difference_t

   type :: difference_t
      !> Bytes that were compared, and the number of elements that differ.
      integer(int64) :: compared_bytes = 0_int64, differing = 0_int64
      !> The first element that differs: its file, the byte where it begins there (negative
      !> if unknown), its index in all data from 0, and both values.
      character(len=:), allocatable :: path
      integer(int64) :: byte = 0_int64, element = 0_int64
      integer(int64) :: expected = 0_int64, found = 0_int64
      !> Whether the read changed memory beside the data.
      logical :: halo_changed = .false.
   contains
      procedure :: count_element
      procedure :: add
   end type difference_t

contains

   !> Counts an element that differs.
   pure subroutine count_element(self, element, expected, found)
      class(difference_t), intent(inout) :: self
      integer(int64), intent(in) :: element, expected, found

      self%differing = self%differing + 1
      if (self%differing > 1) return
      self%element = element
      self%expected = expected
      self%found = found
   end subroutine count_element

   !> Adds the result of a later comparison.
   subroutine add(self, later)
      class(difference_t), intent(inout) :: self
      type(difference_t), intent(in) :: later

      if (self%differing == 0_int64 .and. later%differing > 0_int64) then
         self%path = later%path
         self%byte = later%byte
         self%element = later%element
         self%expected = later%expected
         self%found = later%found
      end if
      self%compared_bytes = self%compared_bytes + later%compared_bytes
      self%differing = self%differing + later%differing
      self%halo_changed = self%halo_changed .or. later%halo_changed
   end subroutine add

end module benchio_difference
