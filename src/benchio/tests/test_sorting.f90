program test_sorting
   use, intrinsic :: iso_fortran_env, only: int64, real64
   use benchio_sorting, only: median, order_of, sort
   use benchio_testing, only: expect, finish
   implicit none(type, external)
   integer(int64) :: at
   integer(int64), allocatable :: many(:)
   real(real64) :: reals(5)

   call expect("nothing", order_of([integer(int64) ::]), [integer(int64) ::])
   call expect("equal numbers keep their order", &
               order_of([3_int64, 1_int64, 3_int64, 1_int64, -huge(at)]), &
               [5_int64, 2_int64, 4_int64, 1_int64, 3_int64])
   ! 7 and 1000 have no common factor, so that each number occurs once.
   many = [(mod(7*at, 1000_int64), at=0, 999)]
   call expect("a thousand", many(order_of(many)), [(at, at=0, 999)])

   reals = [2.0_real64, -1.0_real64, 5.0_real64, 2.0_real64, 0.0_real64]
   call sort(reals)
   call expect("in place", nint(reals, int64), [-1_int64, 0_int64, 2_int64, 2_int64, 5_int64])
   call expect("the median of an odd number", median(reals), 2.0_real64, 0.0_real64)
   call expect("of an even number", median(reals(:4)), 1.0_real64, 0.0_real64)
   call expect("of one", median(reals(5:)), 5.0_real64, 0.0_real64)
   call finish()
end program test_sorting
