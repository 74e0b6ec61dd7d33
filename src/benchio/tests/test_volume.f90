program test_volume
   use, intrinsic :: iso_fortran_env, only: int64
   use benchio_errors, only: error_t
   use benchio_testing, only: expect, expect_refused, finish
   use benchio_volume, only: multiply
   implicit none(type, external)
   type(error_t), allocatable :: error
   integer(int64) :: bytes

   call multiply([7_int64, 7_int64, 73_int64, 127_int64, 337_int64, 92737_int64, 649657_int64], &
                 bytes, error)
   call expect("the factors of 2**63 - 1", (.not. allocated(error)))
   call expect("their product", bytes, huge(bytes))
   call multiply([2_int64**32, 2_int64**31], bytes, error)
   call expect_refused("2**63", error)
   call multiply([2_int64**31, 4_int64, 2_int64**30], bytes, error)
   call expect_refused("2**63 of three", error)
   call finish()
end program test_volume
