!> A histogram of durations, which are too many to keep individually. A bin is 1/64 of a power of
!> two wide, so that a percentile is accurate to 1 %.
module benchio_durations
   use, intrinsic :: iso_fortran_env, only: int64, real64
   implicit none(type, external)
   private

   public :: durations_t

   ! A nanosecond and a day, as powers of two of seconds.
   integer, parameter :: shortest = -30, longest = 17
   integer, parameter :: bins_of_power = 64
   integer, parameter, public :: bins = (longest - shortest)*bins_of_power

   type :: durations_t
      integer(int64) :: counts(bins) = 0_int64
      !> The longest duration, in seconds.
      real(real64) :: slowest = 0.0_real64
   contains
      procedure :: add
      procedure :: percentile
   end type durations_t

contains

   pure subroutine add(self, seconds)
      class(durations_t), intent(inout) :: self
      real(real64), intent(in) :: seconds
      integer :: bin

      ! A positive number is fraction * 2**exponent, with 0.5 <= fraction < 1.
      bin = 1
      if (seconds > 0.0_real64) then
         bin = (exponent(seconds) - 1 - shortest)*bins_of_power &
               + int((2.0_real64*fraction(seconds) - 1.0_real64)*bins_of_power) + 1
      end if
      bin = min(max(bin, 1), bins)
      self%counts(bin) = self%counts(bin) + 1
      self%slowest = max(self%slowest, seconds)
   end subroutine add

   !> The duration that `percent` % of all did not exceed (nearest rank): the middle of its bin,
   !> or the slowest if that is less.
   pure function percentile(self, percent) result(res)
      class(durations_t), intent(in) :: self
      integer, intent(in) :: percent
      real(real64) :: res
      integer(int64) :: total, seen, wanted
      integer :: bin

      total = sum(self%counts)
      wanted = total/100*percent + (mod(total, 100_int64)*percent + 99)/100
      seen = 0_int64
      do bin = 1, bins
         seen = seen + self%counts(bin)
         if (seen >= wanted) exit
      end do
      res = mod(bin - 1, bins_of_power) + 0.5_real64
      res = scale(1.0_real64 + res/bins_of_power, shortest + (bin - 1)/bins_of_power)
      res = min(res, self%slowest)
   end function percentile

end module benchio_durations
