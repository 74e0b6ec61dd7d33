!> The abstract layer: a way to write the data of all processes to files and to read them
!> back. The run knows layers only by this type.
!>
!> A measured phase calls open_file, move_data, sync (if requested) and close_file. All processes
!> make all of these calls, even after an error in an earlier one: otherwise collective calls would
!> hang. They do not exchange errors in between, because that would synchronise the processes
!> while the clock runs.
module benchio_backend
   use, intrinsic :: iso_c_binding, only: c_null_char
   use, intrinsic :: iso_fortran_env, only: int64, real64
   use benchio_call_times, only: call_times_t
   use benchio_difference, only: difference_t
   use benchio_errors, only: error_t
   use benchio_file_checks, only: check_complete, check_creatable
   use benchio_file_names, only: path_in
   use benchio_json, only: json_object_t
   use benchio_posix_api, only: guard_removes, shim_guard
   use benchio_posix_path, only: remove_file
   use benchio_task, only: hint_t, task_t
   use benchio_team, only: team_t
   use benchio_text, only: append, string_t
   use benchio_untimed, only: untimed_t
   use mpi_f08, only: MPI_Info, MPI_INFO_NULL
   implicit none(type, external)
   private

   public :: backend_t, identity_t, outcome_t

   !> What a layer is called; the registry sets it.
   type :: identity_t
      character(len=:), allocatable :: name, pattern, interface_name
   end type identity_t

   !> What a layer reports about a phase, apart from its data; reset before each phase.
   type :: outcome_t
      !> The hints of the open file as the library reported them, on one process at least.
      type(MPI_Info) :: info_used = MPI_INFO_NULL
      !> Whether the files were read with O_DIRECT.
      logical :: was_direct = .false.
      !> The times of the calls that move data.
      type(call_times_t) :: times
      !> Time to exclude from the phase.
      type(untimed_t) :: untimed
      !> For a layer that computes between writes: the seconds computed in total, and with I/O
      !> pending. `untimed` includes both.
      real(real64) :: computed_seconds = 0.0_real64, hidden_seconds = 0.0_real64
      !> The time steps computed in them.
      integer(int64) :: computed_steps = 0_int64, hidden_steps = 0_int64
   end type outcome_t

   type, abstract, extends(identity_t) :: backend_t
      ! The plan, which prepare sets.
      !> The file that this process uses, and the first file of all.
      character(len=:), allocatable :: path, first_path
      !> Bytes of data in the complete file `path`.
      integer(int64) :: path_bytes = 0_int64
      !> Whether a library stores more than the data in `path`, and how much of it precedes
      !> the data, once known.
      logical :: has_format = .false.
      integer(int64) :: header_bytes = 0_int64
      !> The effective values of the layer's own options, for the record.
      type(json_object_t) :: settings
      !> The number of files, and the bytes of data that a phase moves in total.
      integer :: files = 1
      integer(int64) :: total_bytes = 0_int64
      !> The number of processes that call the file system.
      integer :: writers = 0
      !> Whether this process removes and checks `path`.
      logical :: owns_path = .false.
      !> Whether this process tests, before the phase, that the file can be created.
      logical :: tests_creation = .false.
      !> Whether this process handles the pages of `path` in its node's cache: one process of
      !> each node that moves its data.
      logical :: clears_cache = .false.
      !> Whether each repeat overwrites the files of the previous one. The data then depend
      !> on `round`, so that old data are not taken for new. The last requested repeat, and
      !> files that were kept, have round 0.
      logical :: overwrites = .false.
      integer :: round = 0
      !> Whether the layer can flush the data to the file system, and whether it does so
      !> without being asked.
      logical :: can_sync = .true., always_syncs = .false.
      !> Whether the layer takes hints, whether its library does not report those in effect,
      !> and the hints requested.
      logical :: uses_hints = .false., hides_hints = .false.
      type(hint_t), allocatable :: hints_asked(:)
      !> Whether the layer computes between writes.
      logical :: computes = .false.

      type(outcome_t) :: outcome
   contains
      procedure(check_task_i), deferred, nopass :: check_task
      procedure(prepare_i), deferred :: prepare
      procedure(memory_i), deferred :: fill
      procedure(memory_i), deferred :: poison
      procedure(access_i), deferred :: open_file
      procedure(access_i), deferred :: move_data
      procedure(stage_i), deferred :: sync
      procedure(stage_i), deferred :: close_file
      procedure(compare_i), deferred :: compare
      procedure(stage_i), deferred :: release
      procedure :: plan_shared_file
      procedure :: guard_files
      procedure :: prepare_files
      procedure :: check_files
      procedure :: remove_files
      procedure :: list_cached
   end type backend_t

   abstract interface
      !> A usage error if the data cannot be divided among this many processes: the same on
      !> all of them, and before any layer of the run starts.
      subroutine check_task_i(task, processes, error)
         import :: error_t, task_t
         implicit none(type, external)
         type(task_t), intent(in) :: task
         integer, intent(in) :: processes
         type(error_t), allocatable, intent(out) :: error
      end subroutine check_task_i

      !> Does everything that is not measured: paths, memory, datatypes. The files go to
      !> `directory`. Collective; the error may be this process's own.
      subroutine prepare_i(self, team, task, directory, error)
         import :: backend_t, error_t, task_t, team_t
         implicit none(type, external)
         class(backend_t), intent(inout) :: self
         type(team_t), intent(in) :: team
         type(task_t), intent(in) :: task
         character(len=*), intent(in) :: directory
         type(error_t), allocatable, intent(out) :: error
      end subroutine prepare_i

      !> fill: generates the data to write.
      !> poison: overwrites all memory in which a read could find the data without reading.
      subroutine memory_i(self)
         import :: backend_t
         implicit none(type, external)
         class(backend_t), intent(inout) :: self
      end subroutine memory_i

      !> open_file: creates the files to write, or opens them to read.
      !> move_data: writes or reads the data.
      subroutine access_i(self, writing, error)
         import :: backend_t, error_t
         implicit none(type, external)
         class(backend_t), intent(inout) :: self
         logical, intent(in) :: writing
         type(error_t), allocatable, intent(out) :: error
      end subroutine access_i

      !> sync: flushes the written data to the file system.
      !> close_file: undoes open_file.
      !> release: undoes prepare.
      subroutine stage_i(self, error)
         import :: backend_t, error_t
         implicit none(type, external)
         class(backend_t), intent(inout) :: self
         type(error_t), allocatable, intent(out) :: error
      end subroutine stage_i

      !> Compares the data read with those that `fill` generates.
      subroutine compare_i(self, res)
         import :: backend_t, difference_t
         implicit none(type, external)
         class(backend_t), intent(inout) :: self
         type(difference_t), intent(out) :: res
      end subroutine compare_i
   end interface

contains

   !> Plans one file of `total_bytes` that all processes of the team share; `number` tells the
   !> files of several teams apart.
   subroutine plan_shared_file(self, team, directory, number)
      class(backend_t), intent(inout) :: self
      type(team_t), intent(in) :: team
      character(len=*), intent(in) :: directory
      integer, intent(in), optional :: number

      self%path = path_in(directory, self%name, number)
      self%first_path = self%path
      self%path_bytes = self%total_bytes
      self%writers = team%size
      self%owns_path = team%rank == 0
      self%clears_cache = team%node_rank == 0
      ! The system's error text says more than the texts of MPI or of an I/O library, and MPICH 4.0
      ! may crash in an MPI_File_open that fails.
      self%tests_creation = team%rank == 0
   end subroutine plan_shared_file

   ! These handle `path` alone. Layers with more files override them.

   !> Makes a signal that ends this process remove the files that it uses.
   subroutine guard_files(self)
      class(backend_t), intent(in) :: self

      call shim_guard(self%path//c_null_char, guard_removes)
   end subroutine guard_files

   !> Removes old files and tests, before the phase, that new ones can be created.
   subroutine prepare_files(self, error)
      class(backend_t), intent(in) :: self
      type(error_t), allocatable, intent(out) :: error

      call self%remove_files(error)
      if (self%tests_creation .and. .not. allocated(error)) call check_creatable(self%path, error)
   end subroutine prepare_files

   !> An error unless the files that this process owns are complete.
   subroutine check_files(self, error)
      class(backend_t), intent(in) :: self
      type(error_t), allocatable, intent(out) :: error

      if (.not. self%owns_path) return
      call check_complete(self%path, self%path_bytes, self%has_format, error, self%header_bytes)
   end subroutine check_files

   !> Removes the files that this process owns, if they exist.
   subroutine remove_files(self, error)
      class(backend_t), intent(in) :: self
      type(error_t), allocatable, intent(out) :: error

      if (self%owns_path) call remove_file(self%path, error)
   end subroutine remove_files

   !> The files whose pages this process handles in its node's cache.
   subroutine list_cached(self, paths, error)
      class(backend_t), intent(in) :: self
      type(string_t), allocatable, intent(out) :: paths(:)
      type(error_t), allocatable, intent(out) :: error

      allocate (paths(0))
      if (self%clears_cache) call append(paths, self%path)
   end subroutine list_cached

end module benchio_backend
