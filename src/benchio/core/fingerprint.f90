!> The value of each element of the array: a function of its place in the
!> global array and of the run's seed.
!>
!> For one seed no two elements have the same value, and for one element no two
!> seeds give the same value. So neither a swapped block, nor a shifted row, nor
!> the file of an earlier run can pass for the data of this one.
!>
!> Only exclusive-or and shifts are used: both are defined for all 64 bits,
!> while integer overflow is not. Knows nothing of arrays, files or processes.
module fingerprint
   use, intrinsic :: iso_fortran_env, only: int64
   implicit none(type, external)
   private

   public :: mixed_seed, value_at

   ! An odd-looking pattern: without it the seed 0 would be its own mixture.
   integer(int64), parameter :: pattern = int(z"1E3779B97F4A7C15", int64)

contains

   !> The seed as `value_at` wants it; mixed once and not for each element.
   !> Three rounds, so that neighbouring seeds differ in their high bits too.
   elemental function mixed_seed(seed) result(res)
      integer(int64), intent(in) :: seed
      integer(int64) :: res

      res = mix(mix(mix(ieor(seed, pattern))))
   end function mixed_seed

   !> The value of the element with this index (0-based, in Fortran order of
   !> the global array) under a seed that `mixed_seed` has mixed.
   elemental function value_at(index, mixed) result(res)
      integer(int64), intent(in) :: index, mixed
      integer(int64) :: res

      res = mix(mix(ieor(index, mixed)))
   end function value_at

   !> One xorshift round. Each of its steps can be undone, so it is one-to-one.
   elemental function mix(bits) result(res)
      integer(int64), intent(in) :: bits
      integer(int64) :: res

      res = ieor(bits, ishft(bits, 13))
      res = ieor(res, ishft(res, -7))
      res = ieor(res, ishft(res, 17))
   end function mix

end module fingerprint
