!> One measured phase: the stages of a layer between two barriers, and the times of all
!> processes.
module benchio_phase
   use, intrinsic :: iso_fortran_env, only: int64, real64
   use benchio_backend, only: backend_t, outcome_t
   use benchio_call_times, only: latency_t
   use benchio_errors, only: error_t, keep_first
   use benchio_mpi_checks, only: check
   use benchio_posix_api, only: shim_end_limits
   use benchio_sorting, only: median, sort
   use benchio_task, only: hint_t
   use benchio_team, only: team_t
   use benchio_text, only: string_t
   use benchio_wait_limit, only: start_limits
   use benchio_witnesses, only: add_up, count_bytes, count_calls, counts_t
   use mpi_f08, only: MPI_Allreduce, MPI_Barrier, MPI_Bcast, MPI_DOUBLE_PRECISION, MPI_Gather, &
                      MPI_INTEGER, MPI_MAX, MPI_Wtick, MPI_Wtime
   implicit none(type, external)
   private

   public :: phase_t, run_phase

   !> The record of a phase; complete on rank 0.
   type :: phase_t
      logical :: writing = .true.
      integer :: repeat = 1
      !> Whether the time includes a sync of each file by its writers.
      logical :: fsync = .false.
      !> For reads: how they were kept from finding the data in memory, and what the user
      !> requested.
      character(len=:), allocatable :: cache, cache_asked
      !> Bytes that all processes moved.
      integer(int64) :: bytes = 0_int64
      !> From the opening to the closing barrier: the maximum over the processes.
      real(real64) :: seconds = 0.0_real64
      !> The times of the calls that moved data, if requested.
      type(latency_t) :: latency
      !> Evidence of how the data were moved, independent of the layer; see witnesses.
      type(counts_t) :: seen
      !> The times of open, transfer, sync and close: each the maximum over the processes.
      real(real64) :: stage_seconds(4) = 0.0_real64
      !> The hints in effect, read back from the open file.
      type(hint_t), allocatable :: hints(:)
      !> For layers that compute, which `seconds` excludes: the maximum of the computed
      !> seconds, and the minimum of the seconds with I/O pending, over the processes.
      logical :: computes = .false.
      real(real64) :: computed_seconds = 0.0_real64, hidden_seconds = 0.0_real64
      !> The mean time of a time step without I/O pending, and with: the maximum over the
      !> processes, 0 if there was none.
      real(real64) :: step_seconds = 0.0_real64, beside_seconds = 0.0_real64
      !> For each rank: the times of open, transfer, sync and close, and their sum.
      real(real64), allocatable :: rank_seconds(:, :)
      !> Statistics of those sums, and the rank of the maximum.
      real(real64) :: rank_min = 0.0_real64, rank_median = 0.0_real64, rank_max = 0.0_real64
      integer :: slowest_rank = 0
      character(len=:), allocatable :: slowest_host
      !> Notes to print.
      type(string_t), allocatable :: notes(:)
      !> Whether the data were compared, and the bytes that were correct.
      logical :: verified = .false.
      integer(int64) :: verified_bytes = 0_int64
   contains
      procedure :: bandwidth
      procedure :: is_short
   end type phase_t

contains

   !> Bytes per second, in GiB/s. Where I/O overlaps with computing, only the seconds waited
   !> count: the rate then shows the cost of the I/O, not its speed.
   pure function bandwidth(self) result(res)
      class(phase_t), intent(in) :: self
      real(real64) :: res

      res = real(self%bytes, real64)/self%seconds/2.0_real64**30
   end function bandwidth

   !> Whether noise and metadata operations may dominate the time.
   pure function is_short(self) result(res)
      class(phase_t), intent(in) :: self
      logical :: res

      res = self%seconds < 1.0_real64
   end function is_short

   !> Measures a phase; collective. The error is this process's own.
   subroutine run_phase(team, layer, writing, fsync, latency, res, error)
      type(team_t), intent(in) :: team
      class(backend_t), intent(inout) :: layer
      logical, intent(in) :: writing, fsync, latency
      type(phase_t), intent(out) :: res
      type(error_t), allocatable, intent(out) :: error
      type(error_t), allocatable :: trouble
      real(real64) :: marks(0:5)
      integer(int64) :: before(3), after(3)
      integer :: ierr

      layer%outcome = outcome_t()
      layer%outcome%times%is_on = latency
      call start_limits(team)
      before(3) = count_bytes(writing)
      call MPI_Barrier(team%world, ierr)
      marks(0) = MPI_Wtime()
      call check(ierr, "MPI_Barrier", error)
      call layer%open_file(writing, trouble)
      call keep_first(error, trouble)
      marks(1) = MPI_Wtime()
      before(:2) = count_calls()
      call layer%move_data(writing, trouble)
      call keep_first(error, trouble)
      after(:2) = count_calls()
      marks(2) = MPI_Wtime()
      marks(3) = marks(2)
      if (fsync) then
         call layer%sync(trouble)
         call keep_first(error, trouble)
         marks(3) = MPI_Wtime()
      end if
      call layer%close_file(trouble)
      call keep_first(error, trouble)
      marks(4) = MPI_Wtime()
      call MPI_Barrier(team%world, ierr)
      marks(5) = MPI_Wtime()
      call shim_end_limits()
      call check(ierr, "MPI_Barrier", error)
      after(3) = count_bytes(writing)

      res%writing = writing
      allocate (res%hints(0), res%notes(0))
      res%fsync = fsync
      res%bytes = layer%total_bytes
      marks(2:) = marks(2:) - layer%outcome%untimed%seconds
      call collect_times(team, marks, res, trouble)
      call keep_first(error, trouble)
      call add_up(team, before, after, res%bytes, res%seen, trouble)
      call keep_first(error, trouble)
      if (latency) call layer%outcome%times%collect(team%world, res%latency, trouble)
      call keep_first(error, trouble)
      if (layer%computes .and. writing) call collect_computing(team, layer, res, trouble)
      call keep_first(error, trouble)
   end subroutine run_phase

   !> Collects the processes' times; collective.
   subroutine collect_times(team, marks, res, error)
      type(team_t), intent(in) :: team
      real(real64), intent(in) :: marks(0:5)
      type(phase_t), intent(inout) :: res
      type(error_t), allocatable, intent(out) :: error
      real(real64) :: mine(5), longest(5)
      real(real64), allocatable :: times(:)
      integer :: ierr

      mine(1) = marks(5) - marks(0)
      mine(2:) = marks(1:4) - marks(0:3)
      call MPI_Allreduce(mine, longest, size(mine), MPI_DOUBLE_PRECISION, MPI_MAX, team%world, ierr)
      call check(ierr, "MPI_Allreduce", error)
      if (allocated(error)) return
      ! The clock cannot resolve less than a tick.
      res%seconds = max(longest(1), MPI_Wtick())
      res%stage_seconds = longest(2:)

      allocate (res%rank_seconds(size(mine), merge(team%size, 1, team%rank == 0)))
      mine = [mine(2:), marks(4) - marks(0)]
      call MPI_Gather(mine, size(mine), MPI_DOUBLE_PRECISION, res%rank_seconds, size(mine), &
                      MPI_DOUBLE_PRECISION, 0, team%world, ierr)
      call check(ierr, "MPI_Gather", error)
      if (allocated(error)) return
      if (team%rank == 0) then
         times = res%rank_seconds(size(mine), :)
         res%slowest_rank = maxloc(times, 1) - 1
         call sort(times)
         associate (n => team%size)
            res%rank_min = times(1)
            res%rank_median = median(times)
            res%rank_max = times(n)
         end associate
      end if
      call MPI_Bcast(res%slowest_rank, 1, MPI_INTEGER, 0, team%world, ierr)
      call check(ierr, "MPI_Bcast", error)
      if (allocated(error)) return
      res%slowest_host = team%host
      call team%share_text(res%slowest_host, res%slowest_rank, error)
   end subroutine collect_times

   !> Collects the computed and hidden seconds, and the mean times of a step; collective.
   subroutine collect_computing(team, layer, res, error)
      type(team_t), intent(in) :: team
      class(backend_t), intent(in) :: layer
      type(phase_t), intent(inout) :: res
      type(error_t), allocatable, intent(out) :: error
      real(real64) :: mine(4), most(4)
      integer :: ierr

      ! The minimum of the hidden seconds is the negative of the maximum of their negatives.
      associate (outcome => layer%outcome)
         mine(1:2) = [outcome%computed_seconds, -outcome%hidden_seconds]
         mine(3) = mean(outcome%computed_seconds - outcome%hidden_seconds, &
                        outcome%computed_steps - outcome%hidden_steps)
         mine(4) = mean(outcome%hidden_seconds, outcome%hidden_steps)
      end associate
      call MPI_Allreduce(mine, most, size(mine), MPI_DOUBLE_PRECISION, MPI_MAX, team%world, ierr)
      call check(ierr, "MPI_Allreduce", error)
      res%computes = .true.
      res%computed_seconds = most(1)
      res%hidden_seconds = -most(2)
      res%step_seconds = most(3)
      res%beside_seconds = most(4)

   contains

      pure function mean(seconds, steps) result(each)
         real(real64), intent(in) :: seconds
         integer(int64), intent(in) :: steps
         real(real64) :: each

         each = 0.0_real64
         if (steps > 0) each = seconds/real(steps, real64)
      end function mean

   end subroutine collect_computing

end module benchio_phase
