!> The phases of one layer in one directory, with everything that surrounds the measured
!> time: the preparation of the files, the checks of the hints and caches, and the proof.
module benchio_measurement
   use benchio_backend, only: backend_t
   use benchio_errors, only: error_t, fail
   use benchio_file_checks, only: check_closed_to_others, check_free, check_limit, &
                                  check_room
   use benchio_gather, only: gather_to_writers
   use benchio_mpi_hints, only: missed_hints, read_hints
   use benchio_options, only: options_t
   use benchio_phase, only: phase_t, run_phase
   use benchio_posix_api, only: shim_unguard
   use benchio_posix_path, only: is_same_file, remedy
   use benchio_proof, only: check_bypassed, compare_data, drop_cache
   use benchio_registry, only: make_layer
   use benchio_team, only: team_t
   use benchio_text, only: append, string_t
   implicit none(type, external)
   private

   public :: context_t, measurement_t

   !> What all measurements of a run share.
   type :: context_t
      !> The processes; and with --cache=shift the same ones with permuted ranks, for reads.
      type(team_t) :: team, readers
      type(options_t) :: asked
      character(len=:), allocatable :: mpi_library
   end type context_t

   type :: measurement_t
      character(len=:), allocatable :: name, directory
      class(backend_t), allocatable :: layer
      integer :: repeat = 1
      !> Whether this run wrote the files, and may remove them.
      logical :: owns_files = .false.
      !> Whether the layer was prepared for the team of readers.
      logical, private :: is_shifted = .false.
      !> The notes that were already printed.
      character(len=:), allocatable, private :: notes
   contains
      procedure :: prepare
      procedure :: check_result_paths
      procedure :: check_space
      procedure :: write_phase
      procedure :: read_phase
      procedure :: release
   end type measurement_t

contains

   !> Makes the layer and prepares it for the writers or, with `as_readers`, for the readers.
   !> Collective, with the same error on all processes.
   subroutine prepare(self, context, as_readers, error)
      class(measurement_t), intent(inout) :: self
      class(context_t), intent(in) :: context
      logical, intent(in) :: as_readers
      type(error_t), allocatable, intent(out) :: error

      if (allocated(self%layer)) then
         if (self%is_shifted .eqv. as_readers) return
         call self%release(context, error)
         if (allocated(error)) return
      end if
      self%is_shifted = as_readers
      call make_layer(self%name, self%layer)
      if (context%asked%task%writers > 0) then
         call gather_to_writers(self%layer, context%asked%task%writers)
      end if
      if (as_readers) then
         call self%layer%prepare(context%readers, context%asked%task, self%directory, error)
      else
         call self%layer%prepare(context%team, context%asked%task, self%directory, error)
      end if
      call context%team%agree(error)
   end subroutine prepare

   !> Undoes prepare; collective, with the same error on all processes.
   subroutine release(self, context, error)
      class(measurement_t), intent(inout) :: self
      class(context_t), intent(in) :: context
      type(error_t), allocatable, intent(out) :: error

      if (.not. allocated(self%layer)) return
      call self%layer%release(error)
      call context%team%agree(error)
      deallocate (self%layer)
   end subroutine release

   !> An error if a write would leave less free space than --min-free; collective.
   subroutine check_space(self, context, error)
      class(measurement_t), intent(in) :: self
      class(context_t), intent(in) :: context
      type(error_t), allocatable, intent(out) :: error
      character(len=:), allocatable :: where

      if (context%asked%min_free_bytes == 0 .or. .not. context%asked%write) return
      where = self%directory
      if (allocated(context%asked%task%layout_path)) where = self%layer%first_path
      if (context%team%rank == 0) then
         call check_free(where, self%layer%total_bytes, context%asked%min_free_bytes, error)
      end if
      call context%team%agree(error)
   end subroutine check_space

   !> Writes the files anew, measured, and checks that they are complete.
   subroutine write_phase(self, context, res, error)
      class(measurement_t), intent(inout) :: self
      class(context_t), intent(in) :: context
      type(phase_t), intent(out) :: res
      type(error_t), allocatable, intent(out) :: error
      logical :: has_table

      has_table = allocated(context%asked%task%layout_path)
      associate (layer => self%layer, team => context%team)
         layer%round = round_of(self, context)
         call layer%fill()
         if (.not. (layer%overwrites .and. self%repeat > 1)) then
            ! The layer checks the directories of the files in a table.
            if (team%rank == 0 .and. .not. has_table) then
               call check_closed_to_others(self%directory, error)
            end if
            call team%agree(error)
            if (.not. allocated(error)) call layer%prepare_files(error)
            if (.not. allocated(error)) call check_limit(layer%path, layer%path_bytes, error)
            if (team%rank == 0 .and. self%repeat == 1 .and. &
                .not. (allocated(error) .or. has_table)) then
               call check_room(self%directory, layer%total_bytes, error)
            end if
         end if
         call team%agree(error)
         if (allocated(error)) return
         self%owns_files = .true.
         call shim_unguard()
         call layer%guard_files()
         call run_phase(team, layer, .true., context%asked%fsync .and. layer%can_sync, &
                        context%asked%task%latency, res, error)
         call suggest_room(error)
         call team%agree(error)
         if (allocated(error)) return
         if (context%asked%task%direct) call check_bypassed(team, layer, error)
         if (allocated(error)) return
         call layer%check_files(error)
         call suggest_room(error)
         call team%agree(error)
         if (allocated(error)) return
         res%fsync = res%fsync .or. layer%always_syncs
      end associate
      call check_hints(self, context, res, error)
   end subroutine write_phase

   !> Adds the likely cause to the error of an incomplete write.
   subroutine suggest_room(error)
      type(error_t), allocatable, intent(inout) :: error

      if (.not. allocated(error)) return
      if (.not. (error%has_other_size .or. error%has_hole)) return
      error%text = error%text//"; is the file system or a quota full?"
   end subroutine suggest_room

   !> Adds the likely cause to an error in files of another run.
   subroutine suggest_run(error)
      type(error_t), allocatable, intent(inout) :: error

      if (.not. allocated(error)) return
      if (error%has_other_size) then
         error%text = error%text//"; was it written with other sizes or another number of " &
                      //"processes?"
      else if (error%is_missing) then
         error%text = error%text//remedy(.false.)
      end if
   end subroutine suggest_run

   !> An error if a file of results is a data file of the layer; collective.
   subroutine check_result_paths(self, context, error)
      class(measurement_t), intent(in) :: self
      class(context_t), intent(in) :: context
      type(error_t), allocatable, intent(out) :: error
      type(error_t), allocatable :: missing
      type(string_t), allocatable :: paths(:)
      integer :: at

      ! The directory of a library may not be there yet.
      call self%layer%list_cached(paths, missing)
      call append(paths, self%layer%path)
      associate (asked => context%asked)
         do at = 1, size(paths)
            if (allocated(asked%result_path)) call check_path(asked%result_path)
            if (allocated(asked%ranks_path)) call check_path(asked%ranks_path)
         end do
      end associate
      call context%team%agree(error)

   contains

      subroutine check_path(path)
         character(len=*), intent(in) :: path

         if (is_same_file(paths(at)%value, path)) then
            call fail(error, path//" is requested for results, but is a data file of the layer " &
                      //self%name)
         end if
      end subroutine check_path

   end subroutine check_result_paths

   !> The round of the data in files that each repeat overwrites; see backend_t.
   pure function round_of(self, context) result(res)
      class(measurement_t), intent(in) :: self
      class(context_t), intent(in) :: context
      integer :: res

      res = 0
      if (context%asked%write .and. self%layer%overwrites) res = context%asked%repeats - self%repeat
   end function round_of

   !> Reads the files, measured, after the page cache was cleared; compares the data if
   !> requested.
   subroutine read_phase(self, context, res, error)
      class(measurement_t), intent(inout) :: self
      class(context_t), intent(in) :: context
      type(phase_t), intent(out) :: res
      type(error_t), allocatable, intent(out) :: error
      logical :: dropped, direct

      call self%prepare(context, context%asked%cache == "shift", error)
      if (allocated(error)) return
      associate (layer => self%layer, team => context%team)
         layer%round = round_of(self, context)
         call layer%poison()
         call layer%check_files(error)
         if (.not. context%asked%write) call suggest_run(error)
         call team%agree(error)
         if (allocated(error)) return
         dropped = .false.
         if (context%asked%task%reads_direct .or. context%asked%cache == "drop") then
            call drop_cache(team, layer, dropped, error)
            if (allocated(error)) return
         end if
         call run_phase(team, layer, .false., .false., context%asked%task%latency, res, error)
         call team%agree(error)
         if (allocated(error)) return
         ! Only now is it known where a library's data start, and so whether the file is complete.
         if (layer%has_format) call layer%check_files(error)
         call team%agree(error)
         if (allocated(error)) return
         call team%all_of(layer%outcome%was_direct, direct, error)
         call team%agree(error)
         if (allocated(error)) return
      end associate
      res%cache = "none"
      if (dropped) res%cache = "dropped"
      if (dropped .and. direct) res%cache = "direct"
      if (context%asked%task%direct .and. res%cache /= "direct") then
         call fail(error, "the read of "//self%layer%first_path//" was to bypass the page cache " &
                   //"(--direct), which could not be cleared before")
         return
      end if
      ! In files of another run the writers and the last readers of the data are unknown.
      if (self%is_shifted .and. context%readers%is_shifted .and. context%asked%write) then
         res%cache = "shifted"
      end if
      call note_cache(self, context, res)
      call check_hints(self, context, res, error)
      if (allocated(error) .or. .not. context%asked%task%verify) return
      res%verified = .true.
      call compare_data(context%team, self%layer, res%verified_bytes, error)
   end subroutine read_phase

   !> Records how the page cache was to be avoided, with a note if that was not possible.
   subroutine note_cache(self, context, res)
      class(measurement_t), intent(inout) :: self
      class(context_t), intent(in) :: context
      type(phase_t), intent(inout) :: res

      select case (context%asked%cache)
      case ("drop")
         res%cache_asked = "dropped"
      case ("shift")
         res%cache_asked = "shifted"
      case default
         res%cache_asked = context%asked%cache
      end select
      if (context%team%rank /= 0 .or. res%cache == res%cache_asked) return
      select case (res%cache_asked)
      case ("shifted")
         call note(self, res, "not every process can read what another node wrote")
      case ("direct")
         call note(self, res, "O_DIRECT is not possible here with this layer")
      case default
         call note(self, res, "pages of the files stay in memory: reads may come from there")
      end select
   end subroutine note_cache

   !> Reads the hints in effect and compares them with those requested. Collective, with the
   !> same error on all processes.
   subroutine check_hints(self, context, phase, error)
      class(measurement_t), intent(inout) :: self
      class(context_t), intent(in) :: context
      type(phase_t), intent(inout) :: phase
      type(error_t), allocatable, intent(out) :: error
      character(len=:), allocatable :: missed

      associate (layer => self%layer, asked => context%asked)
         if (.not. layer%uses_hints) then
            if (asked%require_hints .and. size(asked%task%hints) > 0) then
               call fail(error, "the layer "//layer%name//" takes no hints, but --require-hints " &
                         //"is set")
            end if
            return
         end if
         call read_hints(context%team, layer%outcome%info_used, layer%hints_asked, phase%hints, &
                         layer%hides_hints, error)
         call context%team%agree(error)
         if (allocated(error)) return
         if (context%team%rank == 0) then
            missed = missed_hints(layer%hints_asked, phase%hints, layer%hides_hints)
            if (len(missed) > 0 .and. asked%require_hints) then
               call fail(error, missed//" ("//layer%first_path//")")
            else
               call note(self, phase, missed)
            end if
         end if
      end associate
      call context%team%agree(error)
   end subroutine check_hints

   !> Adds a note to a phase, unless it is empty or was added before.
   subroutine note(self, phase, text)
      class(measurement_t), intent(inout) :: self
      type(phase_t), intent(inout) :: phase
      character(len=*), intent(in) :: text

      if (.not. allocated(self%notes)) self%notes = ""
      if (len(text) == 0 .or. index(self%notes, text) > 0) return
      call append(phase%notes, text)
      self%notes = self%notes//text
   end subroutine note

end module benchio_measurement
