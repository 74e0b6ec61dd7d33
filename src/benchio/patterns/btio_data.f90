!> The cells that a process of btio holds, for one time step at a time. As in NAS BT they
!> follow one another in an array with space for the largest cell, each with a halo on
!> every side: the data are never contiguous in memory.
module benchio_btio_data
   use, intrinsic :: iso_fortran_env, only: int64
   use benchio_btio_partition, only: halo_points, partition_t, values_per_point
   use benchio_difference, only: difference_t
   use benchio_errors, only: error_t, fail
   use benchio_fingerprint, only: mixed_seed, value_at
   use benchio_layout, only: element_bytes
   use benchio_text, only: to_text
   implicit none(type, external)
   private

   public :: cells_t

   ! The value around the cells' points. A layer must neither write nor overwrite it.
   integer(int64), parameter :: halo_marker = -1_int64
   ! The value of the points before a read, so that a read that does nothing fails the
   ! verification.
   integer(int64), parameter :: unread_marker = -2_int64

   type :: cells_t
      type(partition_t) :: partition
      !> The axes are: value of a point, the three axes of the grid, and cell. The points of
      !> a cell run from 1.
      integer(int64), allocatable :: values(:, :, :, :, :)
      integer(int64), private :: mixed = 0_int64
   contains
      procedure :: create
      procedure :: fill
      procedure :: poison
      procedure :: compare
   end type cells_t

contains

   !> Allocates the memory.
   subroutine create(self, partition, seed, error)
      class(cells_t), intent(inout) :: self
      type(partition_t), intent(in) :: partition
      integer(int64), intent(in) :: seed
      type(error_t), allocatable, intent(out) :: error
      integer :: status

      self%partition = partition
      self%mixed = mixed_seed(seed)
      associate (h => halo_points, n => partition%most_points(), cells => size(partition%cells))
         allocate (self%values(values_per_point, 1 - h:n(1) + h, 1 - h:n(2) + h, 1 - h:n(3) + h, &
                               cells), stat=status)
         if (status == 0) return
         call fail(error, "no memory for "//to_text(cells)//" cells of "//to_text(n(1))//" x " &
                   //to_text(n(2))//" x "//to_text(n(3))//" points of " &
                   //to_text(values_per_point)//" values of "//to_text(element_bytes)//" bytes")
      end associate
   end subroutine create

   !> Sets the values of a step, and everything around the points to the halo's marker.
   subroutine fill(self, step)
      class(cells_t), intent(inout) :: self
      integer, intent(in) :: step
      integer(int64) :: i, j, k, m, first
      integer :: cell

      self%values = halo_marker
      do cell = 1, size(self%partition%cells)
         associate (n => self%partition%cells(cell)%points)
            do k = 1, n(3)
               do j = 1, n(2)
                  first = self%partition%element_of(step, cell, [1_int64, j, k])
                  do i = 1, n(1)
                     do m = 1, values_per_point
                        self%values(m, i, j, k, cell) = value_at(first, self%mixed)
                        first = first + 1
                     end do
                  end do
               end do
            end do
         end associate
      end do
   end subroutine fill

   !> Overwrites everything, so that only a read can restore the values.
   subroutine poison(self)
      class(cells_t), intent(inout) :: self
      integer :: cell

      self%values = halo_marker
      do cell = 1, size(self%partition%cells)
         associate (n => self%partition%cells(cell)%points)
            self%values(:, 1:n(1), 1:n(2), 1:n(3), cell) = unread_marker
         end associate
      end do
   end subroutine poison

   !> Compares every value with the one expected in `step`, and everything around the points with
   !> the halo's marker; adds the differences to `res`.
   subroutine compare(self, step, res)
      class(cells_t), intent(in) :: self
      integer, intent(in) :: step
      type(difference_t), intent(inout) :: res
      integer(int64) :: i, j, k, m, first, expected
      integer :: cell

      do cell = 1, size(self%partition%cells)
         associate (n => self%partition%cells(cell)%points)
            do k = 1, n(3)
               do j = 1, n(2)
                  first = self%partition%element_of(step, cell, [1_int64, j, k])
                  do i = 1, n(1)
                     do m = 1, values_per_point
                        expected = value_at(first, self%mixed)
                        if (self%values(m, i, j, k, cell) /= expected) then
                           call res%count_element(first, expected, self%values(m, i, j, k, cell))
                        end if
                        first = first + 1
                     end do
                  end do
               end do
            end do
            res%compared_bytes = res%compared_bytes + values_per_point*product(n)*element_bytes
            if (changed_around(self, cell, n)) res%halo_changed = .true.
         end associate
      end do
   end subroutine compare

   !> Whether anything around the points of a cell was changed.
   pure function changed_around(self, cell, n) result(res)
      class(cells_t), intent(in) :: self
      integer, intent(in) :: cell
      integer(int64), intent(in) :: n(3)
      logical :: res

      associate (cells => self%values(:, :, :, :, cell), h => halo_points)
         ! The bounds of the associate name begin at 1, in the halo.
         res = any(cells(:, :h, :, :) /= halo_marker) &
               .or. any(cells(:, h + n(1) + 1:, :, :) /= halo_marker) &
               .or. any(cells(:, :, :h, :) /= halo_marker) &
               .or. any(cells(:, :, h + n(2) + 1:, :) /= halo_marker) &
               .or. any(cells(:, :, :, :h) /= halo_marker) &
               .or. any(cells(:, :, :, h + n(3) + 1:) /= halo_marker)
      end associate
   end function changed_around

end module benchio_btio_data
