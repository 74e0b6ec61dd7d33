!> How long the calls of a phase took, over all processes.
module benchio_call_times
   use, intrinsic :: iso_fortran_env, only: int64, real64
   use benchio_durations, only: bins, durations_t
   use benchio_errors, only: error_t
   use benchio_mpi_checks, only: check
   use mpi_f08, only: MPI_Allreduce, MPI_Comm, MPI_DOUBLE_PRECISION, MPI_INTEGER8, MPI_MAX, &
                      MPI_SUM, MPI_Wtime
   implicit none(type, external)
   private

   public :: call_times_t, latency_t

   !> The percentiles that are reported.
   integer, parameter, public :: percentiles(3) = [50, 95, 99]

   type :: latency_t
      !> The calls of all processes; 0 if none was timed.
      integer(int64) :: calls = 0_int64
      !> Seconds per call: at `percentiles`, and of the slowest call.
      real(real64) :: at(size(percentiles)) = 0.0_real64, slowest = 0.0_real64
   end type latency_t

   type :: call_times_t
      !> Whether calls are timed.
      logical :: is_on = .false.
      type(durations_t), private :: seen
      real(real64), private :: began = 0.0_real64
   contains
      procedure :: begin
      procedure :: finish
      procedure :: collect
   end type call_times_t

contains

   !> Starts the clock; to be called before a call that moves data.
   subroutine begin(self)
      class(call_times_t), intent(inout) :: self

      if (self%is_on) self%began = MPI_Wtime()
   end subroutine begin

   !> Stops the clock; to be called after a call that moved data.
   subroutine finish(self)
      class(call_times_t), intent(inout) :: self

      if (self%is_on) call self%seen%add(MPI_Wtime() - self%began)
   end subroutine finish

   !> Combines the times of all processes' calls; collective.
   subroutine collect(self, comm, res, error)
      class(call_times_t), intent(in) :: self
      type(MPI_Comm), intent(in) :: comm
      type(latency_t), intent(out) :: res
      type(error_t), allocatable, intent(out) :: error
      type(durations_t) :: all
      integer :: at, ierr

      call MPI_Allreduce(self%seen%counts, all%counts, bins, MPI_INTEGER8, MPI_SUM, comm, ierr)
      call check(ierr, "MPI_Allreduce", error)
      if (allocated(error)) return
      call MPI_Allreduce(self%seen%slowest, all%slowest, 1, MPI_DOUBLE_PRECISION, MPI_MAX, comm, &
                         ierr)
      call check(ierr, "MPI_Allreduce", error)
      if (allocated(error)) return
      res%calls = sum(all%counts)
      if (res%calls == 0_int64) return
      res%at = [(all%percentile(percentiles(at)), at=1, size(percentiles))]
      res%slowest = all%slowest
   end subroutine collect

end module benchio_call_times
