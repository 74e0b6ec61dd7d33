!> Evidence, independent of the layer, of how a phase moved its data: the number of collective and
!> of independent MPI-IO calls, and the number of processes for which the kernel moved the data.
module benchio_witnesses
   use, intrinsic :: iso_c_binding, only: c_int, c_int64_t
   use, intrinsic :: iso_fortran_env, only: int64, real64
   use benchio_errors, only: error_t, keep_first
   use benchio_team, only: team_t
   implicit none(type, external)
   private

   public :: counts_t, count_calls, count_bytes, add_up

   !> Totals over all processes; negative if unknown.
   type :: counts_t
      !> Calls of MPI-IO that moved data.
      integer(int64) :: collective = -1_int64, independent = -1_int64
      !> Processes whose system calls moved the data.
      integer(int64) :: movers = -1_int64
   end type counts_t

   !> A process has moved data if it moved at least one part in `least_part` of an equal share:
   !> system calls move other bytes, too.
   integer(int64), parameter :: least_part = 10_int64

   interface
      function c_calls(collective) bind(c, name="benchio_mpiio_calls") result(res)
         import :: c_int, c_int64_t
         implicit none(type, external)
         integer(c_int), intent(in), value :: collective
         integer(c_int64_t) :: res
      end function c_calls
   end interface

contains

   !> The calls of this process so far: collective ones, and independent ones.
   function count_calls() result(res)
      integer(int64) :: res(2)

      res = [c_calls(1_c_int), c_calls(0_c_int)]
   end function count_calls

   !> The bytes that system calls of this process have written or read so far; negative if the
   !> kernel does not count them. Those to and from sockets may be among them.
   function count_bytes(writing) result(res)
      logical, intent(in) :: writing
      integer(int64) :: res
      character(len=64) :: line
      integer :: unit, status, closed

      res = -1_int64
      open (newunit=unit, file="/proc/self/io", action="read", status="old", iostat=status)
      if (status /= 0) return
      do
         read (unit, "(a)", iostat=status) line
         if (status /= 0) exit
         if (line(:6) /= merge("wchar:", "rchar:", writing)) cycle
         read (line(7:), *, iostat=status) res
         if (status /= 0) res = -1_int64
         exit
      end do
      close (unit, iostat=closed)
      if (closed /= 0) res = -1_int64
   end function count_bytes

   !> Adds up what the processes counted between `before` and `after`, which hold the two results
   !> of `count_calls` and then the bytes of `count_bytes`; collective. `total` is the bytes that
   !> the phase moved. If no call was counted, the calls are unknown: not all can be seen.
   subroutine add_up(team, before, after, total, res, error)
      type(team_t), intent(in) :: team
      integer(int64), intent(in) :: before(3), after(3), total
      type(counts_t), intent(out) :: res
      type(error_t), allocatable, intent(out) :: error
      type(error_t), allocatable :: trouble
      integer(int64) :: collective, independent, movers
      logical :: known

      associate (mine => after - before)
         call team%sum_of(mine(1), collective, error)
         call team%sum_of(mine(2), independent, trouble)
         call keep_first(error, trouble)
         ! As reals: the product may not fit 64 bits.
         call team%sum_of(merge(1_int64, 0_int64, real(mine(3), real64)*least_part*team%size &
                                >= real(total, real64)), movers, trouble)
         call keep_first(error, trouble)
      end associate
      call team%all_of(before(3) >= 0_int64 .and. after(3) >= 0_int64, known, trouble)
      call keep_first(error, trouble)
      if (allocated(error)) return
      if (known) res%movers = movers
      if (collective + independent == 0_int64) return
      res%collective = collective
      res%independent = independent
   end subroutine add_up

end module benchio_witnesses
