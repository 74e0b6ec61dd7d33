!> The run: each layer in each directory, as often as asked, phase by phase.
!> After a failure all processes stop together and leave no file of the phase.
module run
   use, intrinsic :: iso_fortran_env, only: int64, real64
   use backend, only: backend_t
   use evidence, only: compare_data, drop_cache
   use errors, only: error_t, fail, keep_first, status_failed
   use gather, only: gather_to_writers
   use mpi_checks, only: check
   use mpi_f08, only: MPI_Barrier
   use mpi_hints, only: missed_hints, read_hints
   use options, only: options_t
   use phase, only: phase_t, run_phase
   use posix_file, only: check_free, is_same_file
   use progress, only: say_layer, say_rate, say_repeats, say_start, say_work
   use rank_times, only: rank_times_t
   use registry, only: make_layer
   use result_record, only: result_line
   use line_file, only: line_file_t
   use stop_watch, only: stop_watch_t
   use team, only: team_t
   use text, only: append
   implicit none(type, external)
   private

   public :: run_t

   !> What the parts of a run have in common.
   type :: run_t
      !> The processes; and, where reads are to be shifted, the same ones in the
      !> order in which they read.
      type(team_t) :: team, readers
      type(options_t) :: asked
      character(len=:), allocatable :: mpi_library
      type(line_file_t) :: results
      type(rank_times_t) :: rank_times
      type(stop_watch_t) :: watch
      !> Rank 0: whether a phase was too short to be sure of.
      logical :: has_short = .false.
   contains
      procedure :: everything
   end type run_t

   !> A layer at work in a directory.
   type :: work_t
      character(len=:), allocatable :: name, directory
      class(backend_t), allocatable :: layer
      !> Whether the layer's processes are in the order in which they read.
      logical :: is_shifted = .false.
      integer :: repeat = 1
      !> The rates of all writes and of all reads, in GiB/s.
      real(real64), allocatable :: write_rates(:), read_rates(:)
      !> Whether what is in the files is this run's own, and may be removed.
      logical :: owns_files = .false.
      !> What rank 0 has already said of this work.
      character(len=:), allocatable :: notes
   contains
      procedure :: prepare
      procedure :: release
      procedure :: note
   end type work_t

contains

   !> Runs all that was asked; collective. An error is that of all processes.
   subroutine everything(self, error)
      class(run_t), intent(inout) :: self
      type(error_t), allocatable, intent(out) :: error
      integer :: at, where

      do at = 1, size(self%asked%layers)
         if (self%team%rank == 0) call say_layer(self%asked%layers(at)%value)
         do where = 1, size(self%asked%directories)
            if (allocated(error)) then
               error%text = error%text//"; "//self%asked%layers(at)%value//" in " &
                            //self%asked%directories(where)%value
               cycle
            end if
            call one_layer(self, self%asked%layers(at)%value, &
                           self%asked%directories(where)%value, error)
            if (allocated(error) .and. .not. self%watch%has_stopped) return
         end do
      end do
   end subroutine everything

   !> One layer in one directory.
   subroutine one_layer(self, name, directory, error)
      class(run_t), intent(inout) :: self
      character(len=*), intent(in) :: name, directory
      type(error_t), allocatable, intent(out) :: error
      type(error_t), allocatable :: trouble
      type(work_t) :: work
      real(real64) :: spent(2)
      logical :: is_last

      work%name = name
      work%directory = directory
      work%notes = ""
      allocate (work%write_rates(0), work%read_rates(0))
      call work%prepare(self, .false., error)
      if (.not. allocated(error)) then
         if (self%team%rank == 0) call say_work(work%layer, self%asked%write, self%asked%fsync)
         call check_space(self, work, error)
      end if
      spent = 0.0_real64
      is_last = .false.
      do while (.not. allocated(error) .and. .not. is_last)
         call one_repeat(self, work, spent, is_last, error)
         work%repeat = work%repeat + 1
      end do
      if (self%team%rank == 0) then
         call say_repeats("write", work%write_rates)
         call say_repeats("read", work%read_rates)
      end if
      call work%release(self, trouble)
      call keep_first(error, trouble)
   end subroutine one_layer

   !> Makes the layer, with the processes in the order in which they write or in
   !> that in which they read; collective, and so is its error.
   subroutine prepare(self, run, shifted, error)
      class(work_t), intent(inout) :: self
      type(run_t), intent(in) :: run
      logical, intent(in) :: shifted
      type(error_t), allocatable, intent(out) :: error

      if (allocated(self%layer)) then
         if (self%is_shifted .eqv. shifted) return
         call self%release(run, error)
         if (allocated(error)) return
      end if
      self%is_shifted = shifted
      call make_layer(self%name, self%layer)
      if (run%asked%task%writers > 0) call gather_to_writers(self%layer, run%asked%task%writers)
      if (shifted) then
         call self%layer%prepare(run%readers, run%asked%task, self%directory, error)
      else
         call self%layer%prepare(run%team, run%asked%task, self%directory, error)
      end if
      call run%team%agree(error)
   end subroutine prepare

   !> Gives the layer back; collective, and so is its error.
   subroutine release(self, run, error)
      class(work_t), intent(inout) :: self
      type(run_t), intent(in) :: run
      type(error_t), allocatable, intent(out) :: error

      if (.not. allocated(self%layer)) return
      call self%layer%release(error)
      call run%team%agree(error)
      deallocate (self%layer)
   end subroutine release

   !> Has something said of this work, once, behind the line of a phase.
   subroutine note(self, phase, text)
      class(work_t), intent(inout) :: self
      type(phase_t), intent(inout) :: phase
      character(len=*), intent(in) :: text

      if (len(text) == 0 .or. index(self%notes, text) > 0) return
      call append(phase%notes, text)
      self%notes = self%notes//text
   end subroutine note

   !> Refuses to write when too little would be left free; collective.
   subroutine check_space(self, work, error)
      class(run_t), intent(in) :: self
      type(work_t), intent(in) :: work
      type(error_t), allocatable, intent(out) :: error
      character(len=:), allocatable :: where

      if (self%asked%min_free_bytes == 0_int64 .or. .not. self%asked%write) return
      where = work%directory
      if (allocated(self%asked%task%layout_path)) where = work%layer%first_path
      if (self%team%rank == 0) then
         call check_free(where, work%layer%total_bytes, self%asked%min_free_bytes, error)
      end if
      call self%team%agree(error)
   end subroutine check_space

   !> A write and a read, as far as asked. Whatever happens, files that are not
   !> to be kept are removed. `spent` adds up the seconds of writes and reads.
   subroutine one_repeat(self, work, spent, is_last, error)
      class(run_t), intent(inout) :: self
      type(work_t), intent(inout) :: work
      real(real64), intent(inout) :: spent(2)
      logical, intent(out) :: is_last
      type(error_t), allocatable, intent(out) :: error
      type(error_t), allocatable :: trouble

      call measure(self, work, spent, error)
      is_last = work%repeat >= self%asked%repeats
      if (self%asked%write) is_last = is_last .and. spent(1) >= self%asked%min_seconds
      if (self%asked%read) is_last = is_last .and. spent(2) >= self%asked%min_seconds
      if (.not. work%owns_files .or. .not. allocated(work%layer)) return
      if (.not. allocated(error)) then
         if (is_last .and. self%asked%keep) return
         if (.not. is_last .and. work%layer%overwrites) return
      end if
      call work%layer%remove_files(trouble)
      work%owns_files = .false.
      call self%team%agree(trouble)
      if (allocated(trouble) .and. allocated(error)) then
         error%text = error%text//new_line("a")//trouble%text
         error%status = status_failed
      else
         call keep_first(error, trouble)
      end if
   end subroutine one_repeat

   !> The phases of a repeat. When the data are to be verified, nothing is said
   !> of the write either before they were found right.
   subroutine measure(self, work, spent, error)
      class(run_t), intent(inout) :: self
      type(work_t), intent(inout) :: work
      real(real64), intent(inout) :: spent(2)
      type(error_t), allocatable, intent(out) :: error
      type(phase_t) :: wrote, got
      logical :: holds_back

      holds_back = self%asked%write .and. self%asked%task%verify
      call work%prepare(self, .false., error)
      if (allocated(error)) return
      if (self%asked%write) then
         call self%watch%look(self%team, "write", work%layer%first_path, work%repeat, error)
         if (allocated(error)) return
         if (self%team%rank == 0) call say_start(.true., work%layer%first_path)
         call write_phase(self, work, wrote, error)
         if (allocated(error)) return
         spent(1) = spent(1) + wrote%seconds
         if (.not. holds_back) call report(self, work, wrote, error)
         if (allocated(error)) return
      end if
      if (.not. self%asked%read) return

      call self%watch%look(self%team, "read", work%layer%first_path, work%repeat, error)
      if (allocated(error) .and. holds_back) then
         error%text = error%text//"; the write before it was made, and is not proven"
      end if
      if (allocated(error)) return
      if (self%team%rank == 0 .and. .not. holds_back) then
         call say_start(.false., work%layer%first_path)
      end if
      call read_phase(self, work, got, error)
      if (allocated(error)) return
      spent(2) = spent(2) + got%seconds
      if (holds_back) then
         wrote%verified = .true.
         wrote%verified_bytes = got%verified_bytes
         call report(self, work, wrote, error)
         if (allocated(error)) return
         if (self%team%rank == 0) call say_start(.false., work%layer%first_path)
      end if
      call report(self, work, got, error)
   end subroutine measure

   subroutine write_phase(self, work, res, error)
      class(run_t), intent(inout) :: self
      type(work_t), intent(inout) :: work
      type(phase_t), intent(out) :: res
      type(error_t), allocatable, intent(out) :: error

      associate (layer => work%layer)
         layer%round = round_of(self, work)
         call layer%fill()
         if (.not. (layer%overwrites .and. work%repeat > 1)) then
            call check_results_apart(self, layer, error)
            if (.not. allocated(error)) call layer%make_way(error)
         end if
         call self%team%agree(error)
         if (allocated(error)) return
         work%owns_files = .true.
         call run_phase(self%team, layer, .true., self%asked%fsync .and. layer%can_sync, res, error)
         call self%team%agree(error)
         if (allocated(error)) return
         call layer%check_files(error)
         if (allocated(error)) error%text = error%text//"; is the file system or a quota full?"
         call self%team%agree(error)
         if (allocated(error)) return
         res%fsync = res%fsync .or. layer%always_syncs
      end associate
      call look_at_hints(self, work, res, error)
   end subroutine write_phase

   !> The files with the figures must not be among those with the data.
   subroutine check_results_apart(self, layer, error)
      class(run_t), intent(in) :: self
      class(backend_t), intent(in) :: layer
      type(error_t), allocatable, intent(out) :: error

      if (allocated(self%asked%result_path)) then
         if (is_same_file(layer%path, self%asked%result_path)) call refuse(self%asked%result_path)
      end if
      if (allocated(self%asked%ranks_path)) then
         if (is_same_file(layer%path, self%asked%ranks_path)) call refuse(self%asked%ranks_path)
      end if

   contains

      subroutine refuse(path)
         character(len=*), intent(in) :: path

         call fail(error, path//" is to hold figures, and is a file of the layer "//layer%name)
      end subroutine refuse

   end subroutine check_results_apart

   !> Which data the files of a layer that overwrites them hold in this repeat.
   pure function round_of(self, work) result(res)
      class(run_t), intent(in) :: self
      type(work_t), intent(in) :: work
      integer :: res

      res = 0
      if (self%asked%write .and. work%layer%overwrites) res = self%asked%repeats - work%repeat
   end function round_of

   subroutine read_phase(self, work, res, error)
      class(run_t), intent(inout) :: self
      type(work_t), intent(inout) :: work
      type(phase_t), intent(out) :: res
      type(error_t), allocatable, intent(out) :: error
      logical :: dropped, direct

      call work%prepare(self, self%asked%cache == "shift", error)
      if (allocated(error)) return
      associate (layer => work%layer)
         layer%round = round_of(self, work)
         call layer%forget()
         call layer%check_files(error)
         call self%team%agree(error)
         if (allocated(error)) return
         dropped = .false.
         if (self%asked%task%direct .or. self%asked%cache == "drop") then
            call drop_cache(self%team, layer, dropped, error)
            if (allocated(error)) return
         end if
         call run_phase(self%team, layer, .false., .false., res, error)
         call self%team%agree(error)
         if (allocated(error)) return
         ! Where a library's data begin is known only now, and so whether all are there.
         if (layer%has_format) call layer%check_files(error)
         call self%team%agree(error)
         if (allocated(error)) return
         call self%team%all_of(layer%was_direct, direct, error)
         call self%team%agree(error)
         if (allocated(error)) return
      end associate
      res%cache = "none"
      if (dropped) res%cache = "dropped"
      if (dropped .and. direct) res%cache = "direct"
      ! Who wrote files of another run, and who read them last, nobody knows.
      if (work%is_shifted .and. self%readers%has_moved .and. self%asked%write) res%cache = "shifted"
      call say_cache(self, work, res)
      call look_at_hints(self, work, res, error)
      if (allocated(error) .or. .not. self%asked%task%verify) return
      res%verified = .true.
      call compare_data(self%team, work%layer, res%verified_bytes, error)
   end subroutine read_phase

   !> Fills in what the record says of the cache, and says where it is not what
   !> was asked for.
   subroutine say_cache(self, work, res)
      class(run_t), intent(in) :: self
      type(work_t), intent(inout) :: work
      type(phase_t), intent(inout) :: res

      select case (self%asked%cache)
      case ("drop")
         res%cache_asked = "dropped"
      case ("shift")
         res%cache_asked = "shifted"
      case default
         res%cache_asked = self%asked%cache
      end select
      if (self%team%rank /= 0 .or. res%cache == res%cache_asked) return
      select case (res%cache_asked)
      case ("shifted")
         call work%note(res, "not every process can read what another node wrote")
      case ("direct")
         call work%note(res, "O_DIRECT is not possible here with this layer")
      case default
         call work%note(res, "pages of the files stay in memory: reads may come from there")
      end select
   end subroutine say_cache

   !> Reads the hints in effect, and sees whether they are those asked for;
   !> collective, and so is its error.
   subroutine look_at_hints(self, work, phase, error)
      class(run_t), intent(in) :: self
      type(work_t), intent(inout) :: work
      type(phase_t), intent(inout) :: phase
      type(error_t), allocatable, intent(out) :: error
      character(len=:), allocatable :: missed

      associate (layer => work%layer)
         if (.not. layer%uses_hints) then
            if (self%asked%require_hints .and. size(self%asked%task%hints) > 0) then
              call fail(error, "the layer "//layer%name//" takes no hints, which --require-hints " &
                         //"asks for")
            end if
            return
         end if
         call read_hints(self%team, layer%info_used, layer%hints_asked, phase%hints, &
                         layer%hides_hints, error)
         call self%team%agree(error)
         if (allocated(error)) return
         if (self%team%rank == 0) then
            missed = missed_hints(layer%hints_asked, phase%hints, layer%hides_hints)
            if (len(missed) > 0 .and. self%asked%require_hints) then
               call fail(error, missed//" ("//layer%first_path//")")
            else
               call work%note(phase, missed)
            end if
         end if
      end associate
      call self%team%agree(error)
   end subroutine look_at_hints

   !> Prints and records a phase; collective, since rank 0 may fail to.
   subroutine report(self, work, phase, error)
      class(run_t), intent(inout) :: self
      type(work_t), intent(inout) :: work
      type(phase_t), intent(inout) :: phase
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
            call say_rate(phase)
            if (phase%writing) then
               work%write_rates = [work%write_rates, phase%bandwidth()]
            else
               work%read_rates = [work%read_rates, phase%bandwidth()]
            end if
            self%has_short = self%has_short .or. phase%is_short()
         end if
      end if
      call MPI_Barrier(self%team%world, ierr)
      call check(ierr, "MPI_Barrier", trouble)
      call keep_first(error, trouble)
      call self%team%agree(error)
   end subroutine report

end module run
