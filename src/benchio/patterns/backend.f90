!> What every layer is: a way to bring the data of all processes to files and
!> back. The rest of benchio knows layers by this type alone.
!>
!> A measured phase is open_file, write_data or read_data, sync (when asked) and
!> close_file. All processes call each of them, also after an error in the one
!> before: a layer in which processes work together must not leave the others
!> waiting. There is no agreement on errors in between, for that would make the
!> processes wait for each other inside the clock.
module backend
   use, intrinsic :: iso_fortran_env, only: int64, real64
   use aside, only: aside_t
   use errors, only: error_t
   use json, only: json_object_t
   use mpi_f08, only: MPI_Info, MPI_INFO_NULL
   use page_cache, only: drop_file, flush_file
   use posix_file, only: check_complete, check_creatable, remove_file
   use task, only: hint_t, task_t
   use team, only: team_t
   implicit none(type, external)
   private

   public :: backend_t, difference_t, path_in

   !> How what was read differs from what was written, for one process.
   type :: difference_t
      !> Bytes that were compared, and how many elements differ.
      integer(int64) :: compared_bytes = 0_int64, differing = 0_int64
      !> The first one that differs: its file and the byte where it begins there
      !> (negative where that is not known), its number in the whole of the data
      !> from 0, and both values.
      character(len=:), allocatable :: path
      integer(int64) :: byte = 0_int64, element = 0_int64
      integer(int64) :: expected = 0_int64, found = 0_int64
      !> Whether memory beside the data was changed.
      logical :: halo_changed = .false.
   end type difference_t

   type, abstract :: backend_t
      ! These are set by whoever makes a layer.
      !> What the layer is called, and of what kind it is.
      character(len=:), allocatable :: name, pattern, interface_name

      ! These are set by prepare.
      !> The file that this process's data go to, and the first file of all.
      character(len=:), allocatable :: path, first_path
      !> Bytes of data that `path` holds when it is complete.
      integer(int64) :: path_bytes = 0_int64
      !> Whether a library keeps more than the data in `path`, and what of it lies
      !> before them, once that is known.
      logical :: has_format = .false.
      integer(int64) :: header_bytes = 0_int64
      !> What the layer made of the options that are its own, for the record.
      type(json_object_t) :: settings
      !> The number of all files, and the bytes of data that a phase moves in all.
      integer :: files = 1
      !> Processes that call on the file system; 0 when it is for the layer to say.
      integer :: writers = 0
      integer(int64) :: total_bytes = 0_int64
      !> Whether this process is the one that removes and measures `path`.
      logical :: owns_path = .false.
      !> Whether to try first, outside the clock, if the file can be made.
      logical :: tries_first = .false.
      !> Whether this process is the one that sees to the pages of `path` in its
      !> node's cache: one on each node that reads it.
      logical :: tends_cache = .false.
      !> Whether each repeat writes over the files of the one before. Its data then
      !> go by `round` too, so that those of the one before cannot pass for them; the
      !> last repeat that was asked for has round 0, and so have files that were kept.
      logical :: overwrites = .false.
      integer :: round = 0
      !> Whether there is a way to have the data brought to the file system, and
      !> whether that is done asked or not.
      logical :: can_sync = .true., always_syncs = .false.
      !> Whether hints matter to the layer, whether its library keeps to itself
      !> which are in effect, and those that were asked for.
      logical :: uses_hints = .false., hides_hints = .false.
      type(hint_t), allocatable :: hints_asked(:)

      ! These tell of the phase that was last measured.
      !> What the library said of the open file's hints, until it is read; of some
      !> process at least.
      type(MPI_Info) :: info_used = MPI_INFO_NULL
      !> Whether the files were read past the page cache.
      logical :: was_direct = .false.
      !> What the clock is to leave out.
      type(aside_t) :: aside
      !> For layers that compute between writes: the seconds that were computed, and
      !> those of them during which I/O was under way. `aside` has them all.
      logical :: computes = .false.
      real(real64) :: computed_seconds = 0.0_real64, hidden_seconds = 0.0_real64
   contains
      procedure(check_task_i), deferred, nopass :: check_task
      procedure(prepare_i), deferred :: prepare
      procedure(memory_i), deferred :: fill
      procedure(memory_i), deferred :: forget
      procedure(open_i), deferred :: open_file
      procedure(stage_i), deferred :: write_data
      procedure(stage_i), deferred :: read_data
      procedure(stage_i), deferred :: sync
      procedure(stage_i), deferred :: close_file
      procedure(compare_i), deferred :: compare
      procedure(stage_i), deferred :: release
      procedure :: make_way
      procedure :: check_files
      procedure :: remove_files
      procedure :: flush_pages
      procedure :: drop_pages
   end type backend_t

   abstract interface
      !> A usage error when such data cannot be divided among so many processes: the
      !> same on all of them, and before any layer of the run does anything.
      subroutine check_task_i(task, processes, error)
         import :: error_t, task_t
         implicit none(type, external)
         type(task_t), intent(in) :: task
         integer, intent(in) :: processes
         type(error_t), allocatable, intent(out) :: error
      end subroutine check_task_i

      !> Does everything that need not be measured: names, memory, datatypes. The
      !> files go to `directory`. An error may be one process's own.
      subroutine prepare_i(self, team, task, directory, error)
         import :: backend_t, error_t, task_t, team_t
         implicit none(type, external)
         class(backend_t), intent(inout) :: self
         type(team_t), intent(in) :: team
         type(task_t), intent(in) :: task
         character(len=*), intent(in) :: directory
         type(error_t), allocatable, intent(out) :: error
      end subroutine prepare_i

      !> fill: makes the data that are to be written.
      !> forget: overwrites all memory that a read could find the data in without
      !> reading.
      subroutine memory_i(self)
         import :: backend_t
         implicit none(type, external)
         class(backend_t), intent(inout) :: self
      end subroutine memory_i

      !> Makes the files new for writing, or opens them for reading.
      subroutine open_i(self, writing, error)
         import :: backend_t, error_t
         implicit none(type, external)
         class(backend_t), intent(inout) :: self
         logical, intent(in) :: writing
         type(error_t), allocatable, intent(out) :: error
      end subroutine open_i

      !> write_data, read_data: moves the data.
      !> sync: has the system bring what was written to the file system.
      !> close_file: undoes open_file.
      !> release: gives back what prepare took.
      subroutine stage_i(self, error)
         import :: backend_t, error_t
         implicit none(type, external)
         class(backend_t), intent(inout) :: self
         type(error_t), allocatable, intent(out) :: error
      end subroutine stage_i

      !> Compares what was read with what `fill` makes.
      subroutine compare_i(self, res)
         import :: backend_t, difference_t
         implicit none(type, external)
         class(backend_t), intent(inout) :: self
         type(difference_t), intent(out) :: res
      end subroutine compare_i
   end interface

contains

   ! What follows is right for a layer with one file that this process may have a
   ! part in, `path`. Others have procedures of their own.

   !> Sees, outside the clock, that the files can be made new; nothing was written yet.
   subroutine make_way(self, error)
      class(backend_t), intent(in) :: self
      type(error_t), allocatable, intent(out) :: error

      call self%remove_files(error)
      if (self%tries_first .and. .not. allocated(error)) call check_creatable(self%path, error)
   end subroutine make_way

   !> An error unless all data are in the files that this process owns.
   subroutine check_files(self, error)
      class(backend_t), intent(in) :: self
      type(error_t), allocatable, intent(out) :: error

      if (.not. self%owns_path) return
      call check_complete(self%path, self%path_bytes, self%has_format, error, self%header_bytes)
   end subroutine check_files

   !> Removes the files that this process owns, where they are.
   subroutine remove_files(self, error)
      class(backend_t), intent(in) :: self
      type(error_t), allocatable, intent(out) :: error

      if (self%owns_path) call remove_file(self%path, error)
   end subroutine remove_files

   !> Brings what this node has written to the file system: pages that are not
   !> there yet cannot be dropped.
   subroutine flush_pages(self, error)
      class(backend_t), intent(in) :: self
      type(error_t), allocatable, intent(out) :: error

      if (self%tends_cache) call flush_file(self%path, error)
   end subroutine flush_pages

   !> Drops the files' pages from this node's cache. `dropped` is true when none
   !> is left; that some are is no error.
   subroutine drop_pages(self, dropped, error)
      class(backend_t), intent(in) :: self
      logical, intent(out) :: dropped
      type(error_t), allocatable, intent(out) :: error

      dropped = .true.
      if (self%tends_cache) call drop_file(self%path, dropped, error)
   end subroutine drop_pages

   !> The path of a file of a layer; `number` for one of several.
   pure function path_in(directory, layer, number) result(res)
      character(len=*), intent(in) :: directory, layer
      integer, intent(in), optional :: number
      character(len=:), allocatable :: res
      character(len=12) :: digits

      digits = ""
      if (present(number)) write (digits, "(i0.6)") number
      res = directory
      if (res(len(res):) /= "/") res = res//"/"
      res = res//layer//trim(digits)//".dat"
   end function path_in

end module backend
