!> The value of each element of the array: a function of its index in the global array
!> and of the run's seed.
!>
!> For one seed all elements have different values, and for one element all seeds give
!> different values. Verification therefore detects a swapped block, a shifted row and
!> the file of an earlier run.
!>
!> Only exclusive-or and shifts are used: both are defined for all 64 bits, while
!> integer overflow is not.
module benchio_fingerprint
   use, intrinsic :: iso_fortran_env, only: int64
   implicit none(type, external)
   private

   public :: mixed_seed, value_at

   ! Without it the seed 0 would be mixed to 0.
   integer(int64), parameter :: pattern = int(z"1E3779B97F4A7C15", int64)

contains

   !> The seed as `value_at` takes it. Three rounds, so that neighbouring seeds differ in
   !> their high bits too.
   elemental function mixed_seed(seed) result(res)
      integer(int64), intent(in) :: seed
      integer(int64) :: res

      res = mix(mix(mix(ieor(seed, pattern))))
   end function mixed_seed

   !> The value of the element with this index: 0-based, in Fortran order of the global
   !> array. `mixed` is the result of `mixed_seed`.
   elemental function value_at(index, mixed) result(res)
      integer(int64), intent(in) :: index, mixed
      integer(int64) :: res

      res = mix(mix(ieor(index, mixed)))
   end function value_at

   !> One xorshift round (Marsaglia 2003). Each step is invertible, so it is one-to-one.
   elemental function mix(bits) result(res)
      integer(int64), intent(in) :: bits
      integer(int64) :: res

      res = ieor(bits, ishft(bits, 13))
      res = ieor(res, ishft(res, -7))
      res = ieor(res, ishft(res, 17))
   end function mix

end module benchio_fingerprint
