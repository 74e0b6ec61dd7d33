!> Sorting of numbers.
module benchio_sorting
   use, intrinsic :: iso_fortran_env, only: int64, real64
   implicit none(type, external)
   private

   public :: order_of, sort, median

contains

   !> The permutation that sorts the numbers in ascending order. A stable merge sort: a
   !> table may have millions of stripes.
   pure function order_of(numbers) result(res)
      integer(int64), intent(in) :: numbers(:)
      integer(int64) :: res(size(numbers, kind=int64))
      integer(int64), allocatable :: merged(:)
      integer(int64) :: length, start, middle, past, left, right, at, total

      total = size(numbers, kind=int64)
      res = [(at, at=1, total)]
      allocate (merged(total))
      length = 1_int64
      do while (length < total)
         do start = 1, total, 2*length
            middle = min(start + length, total + 1)
            past = min(start + 2*length, total + 1)
            left = start
            right = middle
            do at = start, past - 1
               if (takes_left(left, middle, right, past)) then
                  merged(at) = res(left)
                  left = left + 1
               else
                  merged(at) = res(right)
                  right = right + 1
               end if
            end do
         end do
         res = merged
         length = 2*length
      end do

   contains

      pure function takes_left(left, middle, right, past) result(res_left)
         integer(int64), intent(in) :: left, middle, right, past
         logical :: res_left

         res_left = left < middle
         if (res_left .and. right < past) res_left = numbers(res(left)) <= numbers(res(right))
      end function takes_left

   end function order_of

   !> Sorts in ascending order, in place, by Shell's method.
   pure subroutine sort(values)
      real(real64), intent(inout) :: values(:)
      real(real64) :: held
      integer :: gap, at, to

      gap = size(values)/2
      do while (gap > 0)
         do at = gap + 1, size(values)
            held = values(at)
            to = at
            do while (to > gap)
               if (values(to - gap) <= held) exit
               values(to) = values(to - gap)
               to = to - gap
            end do
            values(to) = held
         end do
         gap = gap/2
      end do
   end subroutine sort

   !> The median of one or more numbers in ascending order.
   pure function median(sorted) result(res)
      real(real64), intent(in) :: sorted(:)
      real(real64) :: res

      associate (n => size(sorted))
         res = (sorted((n + 1)/2) + sorted(n/2 + 1))/2.0_real64
      end associate
   end function median

end module benchio_sorting
