!> How long the calls of a phase took: counts by bins of duration, as a call is too short to
!> keep the time of each. A bin is 1/64 of a power of two, so that a percentile is right
!> within 1 %.
module benchio_call_times
   use, intrinsic :: iso_fortran_env, only: int64, real64
   use benchio_errors, only: error_t
   use benchio_mpi_checks, only: check
   use mpi_f08, only: MPI_Allreduce, MPI_Comm, MPI_DOUBLE_PRECISION, MPI_INTEGER8, MPI_MAX, &
                      MPI_SUM, MPI_Wtime
   implicit none(type, external)
   private

   public :: call_times_t, latency_t

   ! A nanosecond and a day, as powers of two of seconds.
   integer, parameter :: shortest = -30, longest = 17
   integer, parameter :: bins_of_power = 64
   integer, parameter :: bins = (longest - shortest)*bins_of_power

   !> The percentiles that are reported.
   integer, parameter, public :: percentiles(3) = [50, 95, 99]

   type :: latency_t
      !> The calls of all processes; 0 if none was timed.
      integer(int64) :: calls = 0_int64
      !> The seconds of a call: at `percentiles`, and of the slowest.
      real(real64) :: at(size(percentiles)) = 0.0_real64, slowest = 0.0_real64
   end type latency_t

   type :: call_times_t
      !> Whether calls are timed.
      logical :: is_on = .false.
      integer(int64), private :: counts(bins) = 0_int64
      real(real64), private :: began = 0.0_real64, slowest = 0.0_real64
   contains
      procedure :: begin
      procedure :: finish
      procedure :: add
      procedure :: percentile
      procedure :: collect
   end type call_times_t

contains

   !> To be called before a call that moves data.
   subroutine begin(self)
      class(call_times_t), intent(inout) :: self

      if (self%is_on) self%began = MPI_Wtime()
   end subroutine begin

   !> To be called after it.
   subroutine finish(self)
      class(call_times_t), intent(inout) :: self

      if (self%is_on) call self%add(MPI_Wtime() - self%began)
   end subroutine finish

   pure subroutine add(self, seconds)
      class(call_times_t), intent(inout) :: self
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

   !> The duration that `percent` of the calls did not exceed (nearest rank): the middle of its
   !> bin, or of the slowest call if that is less.
   pure function percentile(self, percent) result(res)
      class(call_times_t), intent(in) :: self
      integer, intent(in) :: percent
      real(real64) :: res
      integer(int64) :: calls, seen, wanted
      integer :: bin

      calls = sum(self%counts)
      wanted = calls/100*percent + (mod(calls, 100_int64)*percent + 99)/100
      seen = 0_int64
      do bin = 1, bins
         seen = seen + self%counts(bin)
         if (seen >= wanted) exit
      end do
      res = mod(bin - 1, bins_of_power) + 0.5_real64
      res = scale(1.0_real64 + res/bins_of_power, shortest + (bin - 1)/bins_of_power)
      res = min(res, self%slowest)
   end function percentile

   !> The figures of the calls of all processes; collective.
   subroutine collect(self, comm, res, error)
      class(call_times_t), intent(in) :: self
      type(MPI_Comm), intent(in) :: comm
      type(latency_t), intent(out) :: res
      type(error_t), allocatable, intent(out) :: error
      type(call_times_t) :: all
      integer :: at, ierr

      call MPI_Allreduce(self%counts, all%counts, bins, MPI_INTEGER8, MPI_SUM, comm, ierr)
      call check(ierr, "MPI_Allreduce", error)
      if (allocated(error)) return
      call MPI_Allreduce(self%slowest, all%slowest, 1, MPI_DOUBLE_PRECISION, MPI_MAX, comm, ierr)
      call check(ierr, "MPI_Allreduce", error)
      if (allocated(error)) return
      res%calls = sum(all%counts)
      if (res%calls == 0_int64) return
      res%at = [(all%percentile(percentiles(at)), at=1, size(percentiles))]
      res%slowest = all%slowest
   end subroutine collect

end module benchio_call_times
