!> The run: each layer in each directory, with the requested repeats. After a failure all
!> processes stop together and leave no file of the phase.
module benchio_run
   use, intrinsic :: iso_fortran_env, only: real64
   use benchio_errors, only: error_t, keep_first, status_failed
   use benchio_measurement, only: context_t, measurement_t
   use benchio_mpi_checks, only: check
   use benchio_phase, only: phase_t
   use benchio_posix_api, only: shim_unguard
   use benchio_progress, only: print_layer, print_plan, print_rate, print_repeats, print_start
   use benchio_rank_times, only: rank_times_t
   use benchio_result_record, only: result_line
   use benchio_text_file, only: line_file_t
   use benchio_time_limit, only: time_limit_t
   use mpi_f08, only: MPI_Barrier
   implicit none(type, external)
   private

   public :: run_t

   type, extends(context_t) :: run_t
      type(line_file_t) :: results
      type(rank_times_t) :: rank_times
      type(time_limit_t) :: limit
      !> Rank 0: whether some phase was too short for a reliable rate.
      logical :: has_short = .false.
   contains
      procedure :: run_all
   end type run_t

   !> The seconds and, on rank 0, the rates in GiB/s of the repeats so far.
   type :: totals_t
      real(real64) :: write_seconds = 0.0_real64, read_seconds = 0.0_real64
      real(real64), allocatable :: write_rates(:), read_rates(:)
   end type totals_t

contains

   !> Runs everything requested; collective, with the same error on all processes.
   subroutine run_all(self, error)
      class(run_t), intent(inout) :: self
      type(error_t), allocatable, intent(out) :: error
      integer :: at, where

      if (.not. self%asked%write) call check_kept(self, error)
      if (allocated(error)) return
      do at = 1, size(self%asked%layers)
         if (self%team%rank == 0) call print_layer(self%asked%layers(at)%value)
         do where = 1, size(self%asked%directories)
            if (allocated(error)) then
               error%text = error%text//"; "//self%asked%layers(at)%value//" in " &
                            //self%asked%directories(where)%value
               cycle
            end if
            call run_layer(self, self%asked%layers(at)%value, &
                           self%asked%directories(where)%value, error)
            if (allocated(error) .and. .not. self%limit%is_reached) return
         end do
      end do
   end subroutine run_all

   !> An error if a result file is a data file that an earlier run kept for any of the layers; to be
   !> called before it is emptied. Collective, with the same error on all processes.
   subroutine check_kept(self, error)
      class(run_t), intent(inout) :: self
      type(error_t), allocatable, intent(out) :: error
      type(error_t), allocatable :: trouble
      type(measurement_t) :: work
      integer :: at, where

      if (.not. (allocated(self%asked%result_path) .or. allocated(self%asked%ranks_path))) return
      do at = 1, size(self%asked%layers)
         do where = 1, size(self%asked%directories)
            if (at == 1 .and. where == 1) cycle ! run_layer looks at its own files first
            work%name = self%asked%layers(at)%value
            work%directory = self%asked%directories(where)%value
            ! An error in preparing a layer is reported when that layer runs.
            call work%prepare(self, .false., trouble)
            if (.not. allocated(trouble)) call work%check_result_paths(self, error)
            call work%release(self, trouble)
            call keep_first(error, trouble)
            if (allocated(error)) return
         end do
      end do
   end subroutine check_kept

   !> Runs one layer in one directory.
   subroutine run_layer(self, name, directory, error)
      class(run_t), intent(inout) :: self
      character(len=*), intent(in) :: name, directory
      type(error_t), allocatable, intent(out) :: error
      type(error_t), allocatable :: trouble
      type(measurement_t) :: work
      type(totals_t) :: totals
      logical :: is_last

      work%name = name
      work%directory = directory
      allocate (totals%write_rates(0), totals%read_rates(0))
      call work%prepare(self, .false., error)
      if (allocated(error)) then
         ! Old results must not be taken for results of this run.
         call clear_results(self, trouble)
      else
         call work%check_result_paths(self, error)
         if (.not. allocated(error)) call clear_results(self, error)
      end if
      if (.not. allocated(error)) then
         if (self%team%rank == 0) call print_plan(work%layer, self%asked%write, self%asked%fsync)
         call work%check_space(self, error)
      end if
      is_last = .false.
      do while (.not. allocated(error) .and. .not. is_last)
         call run_repeat(self, work, totals, is_last, error)
         work%repeat = work%repeat + 1
      end do
      if (self%team%rank == 0) then
         call print_repeats("write", totals%write_rates)
         call print_repeats("read", totals%read_rates)
      end if
      call work%release(self, trouble)
      call keep_first(error, trouble)
   end subroutine run_layer

   !> Empties the result files when the first layer is about to run; collective.
   subroutine clear_results(self, error)
      class(run_t), intent(inout) :: self
      type(error_t), allocatable, intent(out) :: error
      type(error_t), allocatable :: trouble

      if (self%team%rank == 0) then
         call self%results%clear(error)
         call self%rank_times%clear(trouble)
         call keep_first(error, trouble)
      end if
      call self%team%agree(error)
   end subroutine clear_results

   !> Runs the phases of one repeat and, even after an error, removes the files unless they
   !> are to be kept. `is_last` returns whether the requested repeats are complete.
   subroutine run_repeat(self, work, totals, is_last, error)
      class(run_t), intent(inout) :: self
      type(measurement_t), intent(inout) :: work
      type(totals_t), intent(inout) :: totals
      logical, intent(out) :: is_last
      type(error_t), allocatable, intent(out) :: error
      type(error_t), allocatable :: trouble

      call run_phases(self, work, totals, error)
      associate (asked => self%asked)
         is_last = work%repeat >= asked%repeats
         if (asked%write) is_last = is_last .and. totals%write_seconds >= asked%min_seconds
         if (asked%read) is_last = is_last .and. totals%read_seconds >= asked%min_seconds
         if (.not. work%owns_files .or. .not. allocated(work%layer)) return
         if (.not. allocated(error)) then
            if (is_last .and. asked%keep) then
               call shim_unguard()
               return
            end if
            if (.not. is_last .and. work%layer%overwrites) return
         end if
      end associate
      call work%layer%remove_files(trouble)
      call shim_unguard()
      work%owns_files = .false.
      call self%team%agree(trouble)
      if (allocated(trouble) .and. allocated(error)) then
         error%text = error%text//new_line("a")//trouble%text
         error%status = status_failed
      else
         call keep_first(error, trouble)
      end if
   end subroutine run_repeat

   !> Runs the phases of one repeat. With --verify the write is reported only after its data
   !> were read back and found correct.
   subroutine run_phases(self, work, totals, error)
      class(run_t), intent(inout) :: self
      type(measurement_t), intent(inout) :: work
      type(totals_t), intent(inout) :: totals
      type(error_t), allocatable, intent(out) :: error
      type(phase_t) :: wrote, got
      logical :: holds_back

      holds_back = self%asked%write .and. self%asked%task%verify
      call work%prepare(self, .false., error)
      if (allocated(error)) return
      if (self%asked%write) then
         call self%limit%check_phase(self%team, "write", work%layer%first_path, work%repeat, error)
         if (allocated(error)) return
         if (self%team%rank == 0) call print_start(.true., work%layer%first_path)
         call work%write_phase(self, wrote, error)
         if (allocated(error)) return
         totals%write_seconds = totals%write_seconds + wrote%seconds
         if (.not. holds_back) call report(self, work, wrote, totals, error)
         if (allocated(error)) return
      end if
      if (.not. self%asked%read) return

      call self%limit%check_phase(self%team, "read", work%layer%first_path, work%repeat, error)
      if (allocated(error) .and. holds_back) then
         error%text = error%text//"; the write before it was not verified, and is not reported"
      end if
      if (allocated(error)) return
      if (self%team%rank == 0 .and. .not. holds_back) then
         call print_start(.false., work%layer%first_path)
      end if
      call work%read_phase(self, got, error)
      if (allocated(error)) return
      totals%read_seconds = totals%read_seconds + got%seconds
      if (holds_back) then
         wrote%verified = .true.
         wrote%verified_bytes = got%verified_bytes
         call report(self, work, wrote, totals, error)
         if (allocated(error)) return
         if (self%team%rank == 0) call print_start(.false., work%layer%first_path)
      end if
      call report(self, work, got, totals, error)
   end subroutine run_phases

   !> Prints and records a phase; collective, with the same error on all processes.
   subroutine report(self, work, phase, totals, error)
      class(run_t), intent(inout) :: self
      type(measurement_t), intent(in) :: work
      type(phase_t), intent(inout) :: phase
      type(totals_t), intent(inout) :: totals
      type(error_t), allocatable, intent(out) :: error
      type(error_t), allocatable :: trouble
      integer :: ierr

      phase%repeat = work%repeat
      if (self%team%rank == 0) then
         call self%results%append(result_line(self%team, self%asked%task, work%layer, phase, &
                                              self%mpi_library), error)
         call self%rank_times%append(work%layer, phase, trouble)
         call keep_first(error, trouble)
         if (.not. allocated(error)) then
            call print_rate(phase)
            if (phase%writing) then
               totals%write_rates = [totals%write_rates, phase%bandwidth()]
            else
               totals%read_rates = [totals%read_rates, phase%bandwidth()]
            end if
            self%has_short = self%has_short .or. phase%is_short()
         end if
      end if
      call MPI_Barrier(self%team%world, ierr)
      call check(ierr, "MPI_Barrier", error)
      call self%team%agree(error)
   end subroutine report

end module benchio_run
