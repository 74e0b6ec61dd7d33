program test_durations
   use, intrinsic :: iso_fortran_env, only: real64
   use benchio_durations, only: durations_t
   use benchio_testing, only: expect, finish
   use benchio_text, only: to_text
   implicit none(type, external)
   integer, parameter :: percents(5) = [1, 50, 95, 99, 100]
   type(durations_t) :: seen, extreme
   real(real64) :: seconds(200)
   integer :: at

   ! Nine orders of magnitude; by nearest rank, N percent of 200 are 2 N of them.
   seconds = [(1e-7_real64*1.11_real64**at, at=0, 199)]
   do at = 1, 200
      call seen%add(seconds(201 - at))
   end do
   do at = 1, size(percents)
      call expect(to_text(percents(at))//" %", seen%percentile(percents(at)), &
                  seconds(2*percents(at)), 0.01_real64)
   end do
   call expect("the slowest", seen%slowest, seconds(200), 0.0_real64)

   call extreme%add(0.0_real64)
   call extreme%add(-1.0_real64)
   call expect("a clock that stands still", extreme%percentile(50), 0.0_real64, 0.0_real64)
   call extreme%add(1e9_real64)
   call expect("longer than a day", extreme%percentile(100) > 86400.0_real64)
   call finish()
end program test_durations
