!> The layers adios, adios-default and adios-process: the whole array as a variable of ADIOS2,
!> whose engine BP5 creates a directory and divides the data among files in it.
!>
!> Memory: ADIOS2 makes a copy of the block during a write, since with its halo it is not
!> contiguous.
!>
!> ADIOS2 makes no call that flushes data to the file system, so `can_sync` is false.
!>
!> Errors: when an ADIOS2 call fails on one process, the others may never return from theirs,
!> and ADIOS2 must not be called again. All processes therefore agree after each call that
!> moves data, and after a failure make no further ADIOS2 calls. In ADIOS2 2.12 a process that
!> writes for others of its node does not even return when its write fails. Each process therefore
!> writes its own data: in adios to a file that its node shares, in adios-process to a file of its
!> own. adios-default leaves both to the library, by default one writing process and one file for
!> each node: there a failed write may make the run wait forever.
module benchio_layer_adios
   use, intrinsic :: iso_c_binding, only: c_null_char
   use, intrinsic :: iso_fortran_env, only: int64
   use adios2, only: adios2_adios, adios2_begin_step, adios2_close, adios2_constant_dims, &
                     adios2_declare_io, adios2_define_variable, adios2_end_step, adios2_engine, &
                     adios2_finalize, adios2_get, adios2_init, adios2_inquire_variable, &
                     adios2_io, adios2_mode_deferred, adios2_mode_readRandomAccess, &
                     adios2_mode_write, adios2_open, adios2_perform_gets, adios2_put, &
                     adios2_set_engine, adios2_set_memory_selection, adios2_set_parameter, &
                     adios2_set_selection, adios2_type_integer8, adios2_variable, &
                     adios2_variable_shape
   use benchio_adios_checks, only: agree_or_abort, check_adios
   use benchio_array_in_file, only: check_shape
   use benchio_block_backend, only: block_backend_t
   use benchio_directory_files, only: list_existing, remove_directory, sum_of_sizes
   use benchio_errors, only: error_t, fail
   use benchio_file_checks, only: check_creatable, check_room
   use benchio_posix_api, only: guard_removes_directory, shim_guard
   use benchio_posix_path, only: library_path
   use benchio_team, only: team_t
   use benchio_text, only: string_t, to_text
   implicit none(type, external)
   private

   public :: adios_t

   character(len=*), parameter :: variable_name = "array"

   !> The beginnings of the names of the engine's files: those with data, and all.
   character(len=*), parameter :: data_files = "data."
   character(len=*), parameter :: all_files(4) = ["data.     ", "md.       ", "mmd.      ", &
                                                  "profiling."]

   !> Bytes needed in addition to the data: in total, and for each process.
   integer(int64), parameter :: spare_bytes = 65536_int64, spare_bytes_each = 8192_int64

   type, extends(block_backend_t) :: adios_t
      !> Whose data are in one file: those of a `node`, whose processes all write; those of a
      !> `process`; or the library's `default`.
      character(len=7) :: file_of = "node"
      type(team_t), private :: team
      type(adios2_adios), private :: adios
      !> The settings for writing and for reading; a variable belongs to one of them.
      type(adios2_io), private :: writing, reading
      type(adios2_variable), private :: variable
      !> The open directory.
      type(adios2_engine), private :: engine
      character(len=:), allocatable, private :: directory
      !> Whether a call has failed on some process.
      logical, private :: is_broken = .false.
   contains
      procedure :: set_up
      procedure :: open_file
      procedure :: move_data
      procedure :: sync
      procedure :: close_file
      procedure :: take_down
      procedure :: guard_files
      procedure :: prepare_files
      procedure :: check_files
      procedure :: remove_files
      procedure :: list_cached
   end type adios_t

contains

   subroutine set_up(self, team, directory, error)
      class(adios_t), intent(inout) :: self
      type(team_t), intent(in) :: team
      character(len=*), intent(in) :: directory
      type(error_t), allocatable, intent(out) :: error
      integer :: ierr

      self%team = team
      call self%plan_shared_file(team, directory)
      self%files = team%nodes
      if (self%file_of == "process") self%files = team%size
      if (self%file_of == "default") self%writers = team%nodes
      self%directory = directory
      self%data_start = -1_int64
      self%can_sync = .false.

      call adios2_init(self%adios, team%world%MPI_VAL, ierr)
      call check_adios(ierr, "adios2_init", error)
      if (allocated(error)) return
      call declare(self, "writing", self%writing, error)
      if (allocated(error)) return
      call declare(self, "reading", self%reading, error)
      if (allocated(error)) return
      associate (layout => self%block%layout)
         call adios2_define_variable(self%variable, self%writing, variable_name, &
                                     adios2_type_integer8, 3, layout%whole, layout%start, &
                                     layout%block, adios2_constant_dims, ierr)
         call check_adios(ierr, "adios2_define_variable", error)
         if (allocated(error)) return
      end associate
      call select_memory(self, self%variable, error)
   end subroutine set_up

   subroutine declare(self, name, io, error)
      class(adios_t), intent(in) :: self
      character(len=*), intent(in) :: name
      type(adios2_io), intent(inout) :: io
      type(error_t), allocatable, intent(out) :: error
      integer :: ierr

      call adios2_declare_io(io, self%adios, name, ierr)
      call check_adios(ierr, "adios2_declare_io", error)
      if (allocated(error)) return
      call adios2_set_engine(io, "BP5", ierr)
      call check_adios(ierr, "adios2_set_engine", error)
      if (allocated(error) .or. self%file_of == "default") return
      call adios2_set_parameter(io, "NumAggregators", to_text(self%team%size), ierr)
      call check_adios(ierr, "adios2_set_parameter", error)
      if (allocated(error)) return
      call adios2_set_parameter(io, "NumSubFiles", to_text(self%files), ierr)
      call check_adios(ierr, "adios2_set_parameter", error)
   end subroutine declare

   !> Tells ADIOS2 where in its memory, which includes the halo, the block lies.
   subroutine select_memory(self, variable, error)
      class(adios_t), intent(in) :: self
      type(adios2_variable), intent(in) :: variable
      type(error_t), allocatable, intent(out) :: error
      integer :: ierr

      call adios2_set_memory_selection(variable, 3, spread(self%block%halo, 1, 3), &
                                       self%block%room(), ierr)
      call check_adios(ierr, "adios2_set_memory_selection", error)
   end subroutine select_memory

   subroutine open_file(self, writing, error)
      class(adios_t), intent(inout) :: self
      logical, intent(in) :: writing
      type(error_t), allocatable, intent(out) :: error
      character(len=:), allocatable :: name
      integer :: ierr

      name = library_path(self%path)
      if (writing) then
         call adios2_open(self%engine, self%writing, name, adios2_mode_write, &
                          self%team%world%MPI_VAL, ierr)
         call check_adios(ierr, "adios2_open of "//self%path, error)
      else
         call adios2_open(self%engine, self%reading, name, adios2_mode_readRandomAccess, &
                          self%team%world%MPI_VAL, ierr)
         call check_adios(ierr, "adios2_open of "//self%path, error)
      end if
      call agree_or_abort(self%team, self%is_broken, error)
   end subroutine open_file

   subroutine move_data(self, writing, error)
      class(adios_t), intent(inout) :: self
      logical, intent(in) :: writing
      type(error_t), allocatable, intent(out) :: error

      if (self%is_broken) return
      if (writing) then
         call put_block(self, error)
      else
         call get_block(self, error)
      end if
      call agree_or_abort(self%team, self%is_broken, error)
   end subroutine move_data

   subroutine put_block(self, error)
      class(adios_t), intent(inout) :: self
      type(error_t), allocatable, intent(out) :: error
      integer :: ierr

      call adios2_begin_step(self%engine, ierr)
      call check_adios(ierr, "adios2_begin_step of "//self%path, error)
      if (allocated(error)) return
      call adios2_put(self%engine, self%variable, self%block%cells, adios2_mode_deferred, ierr)
      call check_adios(ierr, "adios2_put of "//self%path, error)
      ! The end of the step is collective, also after an error in the put.
      call adios2_end_step(self%engine, ierr)
      call check_adios(ierr, "adios2_end_step of "//self%path, error)
   end subroutine put_block

   subroutine get_block(self, error)
      class(adios_t), intent(inout) :: self
      type(error_t), allocatable, intent(out) :: error
      type(adios2_variable) :: variable
      integer(int64), allocatable :: sizes(:)
      integer :: axes, ierr

      call adios2_inquire_variable(variable, self%reading, variable_name, ierr)
      call check_adios(ierr, "adios2_inquire_variable of "//self%path, error)
      if (allocated(error)) return
      call adios2_variable_shape(sizes, axes, variable, ierr)
      call check_adios(ierr, "adios2_variable_shape of "//self%path, error)
      if (allocated(error)) return
      associate (layout => self%block%layout)
         call check_shape(self%path, sizes, layout%whole, error)
         if (allocated(error)) return
         call adios2_set_selection(variable, 3, layout%start, layout%block, ierr)
         call check_adios(ierr, "adios2_set_selection of "//self%path, error)
         if (allocated(error)) return
      end associate
      call select_memory(self, variable, error)
      if (allocated(error)) return
      call adios2_get(self%engine, variable, self%block%cells, adios2_mode_deferred, ierr)
      call check_adios(ierr, "adios2_get of "//self%path, error)
      if (allocated(error)) return
      call adios2_perform_gets(self%engine, ierr)
      call check_adios(ierr, "adios2_perform_gets of "//self%path, error)
   end subroutine get_block

   !> Never called, since `can_sync` is false.
   subroutine sync(self, error)
      class(adios_t), intent(inout) :: self
      type(error_t), allocatable, intent(out) :: error

      call fail(error, "ADIOS2 cannot flush "//self%path)
   end subroutine sync

   subroutine close_file(self, error)
      class(adios_t), intent(inout) :: self
      type(error_t), allocatable, intent(out) :: error
      integer :: ierr

      if (self%is_broken .or. .not. self%engine%valid) return
      call adios2_close(self%engine, ierr)
      call check_adios(ierr, "adios2_close of "//self%path, error)
      self%engine%valid = .false.
      call agree_or_abort(self%team, self%is_broken, error)
   end subroutine close_file

   subroutine take_down(self, error)
      class(adios_t), intent(inout) :: self
      type(error_t), allocatable, intent(out) :: error
      integer :: ierr

      call self%close_file(error)
      if (self%is_broken .or. .not. self%adios%valid) return
      call adios2_finalize(self%adios, ierr)
      call check_adios(ierr, "adios2_finalize", error)
      self%adios%valid = .false.
   end subroutine take_down

   subroutine guard_files(self)
      class(adios_t), intent(in) :: self

      if (self%owns_path) call shim_guard(self%path//c_null_char, guard_removes_directory)
   end subroutine guard_files

   subroutine prepare_files(self, error)
      class(adios_t), intent(in) :: self
      type(error_t), allocatable, intent(out) :: error

      call self%remove_files(error)
      if (allocated(error) .or. .not. self%tests_creation) return
      call check_creatable(self%path, error)
      if (allocated(error)) return
      call check_room(self%directory, self%total_bytes + spare_bytes &
                      + spare_bytes_each*self%team%size, error)
   end subroutine prepare_files

   !> An error if the files with data are too small for the data. They may be larger, since
   !> they can contain unused bytes.
   subroutine check_files(self, error)
      class(adios_t), intent(in) :: self
      type(error_t), allocatable, intent(out) :: error
      integer(int64) :: bytes
      integer :: files

      if (.not. self%owns_path) return
      call sum_of_sizes(self%path, data_files, files, bytes, error)
      if (allocated(error)) return
      if (bytes < self%path_bytes) then
         call fail(error, self%path//" has "//to_text(bytes)//" bytes in "//to_text(files) &
                   //" files of data and should have "//to_text(self%path_bytes)//" or more")
      end if
   end subroutine check_files

   subroutine remove_files(self, error)
      class(adios_t), intent(in) :: self
      type(error_t), allocatable, intent(out) :: error

      if (self%owns_path) call remove_directory(self%path, all_files, error)
   end subroutine remove_files

   subroutine list_cached(self, paths, error)
      class(adios_t), intent(in) :: self
      type(string_t), allocatable, intent(out) :: paths(:)
      type(error_t), allocatable, intent(out) :: error

      allocate (paths(0))
      if (self%clears_cache) call list_existing(self%path, paths, error)
   end subroutine list_cached

end module benchio_layer_adios
