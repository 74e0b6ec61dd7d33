!> benchio measures the write and read rates of an array that is distributed over MPI
!> processes. This program starts MPI and runs what the command line requests. Procedures return
!> errors as values, and only this program ends the run.
!>
!> The folders, from top to bottom; a module uses only its own folder and lower ones:
!>
!>     app       the program, its command line and its help
!>     run       the phases, their clock, their proof, and the result files
!>     layers    one module for each layer, and the registry that declares them
!>     patterns  the abstract layer, and what the layers of one pattern share
!>     io        files: POSIX, MPI-IO, HDF5, netCDF, PnetCDF, ADIOS2
!>     core      errors, the processes, text, the values of the data
program benchio
   use, intrinsic :: iso_c_binding, only: c_int
   use, intrinsic :: iso_fortran_env, only: error_unit, int64, output_unit
   use benchio_backend, only: backend_t
   use benchio_block_backend, only: block_backend_t, lay_out
   use benchio_command_line, only: command_words, parse
   use benchio_environment, only: fill_values
   use benchio_errors, only: error_t, fail, keep_first, status_failed, status_usage
   use benchio_hint_environment, only: add_hints_of_environment
   use benchio_layout, only: layout_t
   use benchio_mpi_checks, only: check, mpi_text
   use benchio_posix_api, only: c_exit
   use benchio_posix_path, only: is_same_file
   use benchio_progress, only: print_banner, print_finished
   use benchio_registry, only: fill_table, make_layer
   use benchio_run, only: run_t
   use benchio_usage, only: print_help
   use benchio_version, only: program_version
   use benchio_writer_groups, only: check_groups
   use mpi_f08, only: MPI_Bcast, MPI_COMM_WORLD, MPI_Finalize, MPI_Get_library_version, &
                      MPI_Init, MPI_INTEGER8, MPI_MAX_LIBRARY_VERSION_STRING, MPI_SUCCESS
   implicit none(type, external)

   type(error_t), allocatable :: error
   integer :: ierr, status

   call MPI_Init(ierr)
   if (ierr /= MPI_SUCCESS) then
      write (error_unit, "(a)") "benchio: MPI_Init failed: "//mpi_text(ierr)
      call end_run(status_failed)
   end if
   status = 0
   call main(error)
   if (allocated(error)) status = error%status
   call MPI_Finalize(ierr)
   if (ierr /= MPI_SUCCESS .and. status == 0) then
      write (error_unit, "(a)") "benchio: MPI_Finalize failed: "//mpi_text(ierr)
      status = status_failed
   end if
   call end_run(status)

contains

   !> Ends the process. `stop` would print a message on each rank; its `quiet` specifier needs
   !> gfortran 12.
   subroutine end_run(status)
      integer, intent(in) :: status

      flush (output_unit)
      flush (error_unit)
      call c_exit(int(status, c_int))
   end subroutine end_run

   !> Everything between MPI_Init and MPI_Finalize. Rank 0 prints the error.
   subroutine main(error)
      type(error_t), allocatable, intent(out) :: error
      type(run_t) :: all
      type(error_t), allocatable :: trouble

      call all%team%start(MPI_COMM_WORLD, error)
      call fill_table()
      if (.not. allocated(error)) call parse(command_words(), all%asked, error)
      if (.not. allocated(error)) then
         if (all%asked%help .or. all%asked%version) then
            if (all%team%rank == 0) call print_about(all%asked%help)
            return
         end if
         call prepare(all, error)
         if (.not. allocated(error)) then
            call all%limit%start(all%asked%max_seconds)
            call all%run_all(error)
         end if
         call all%results%finish(trouble)
         call keep_first(error, trouble)
         call all%rank_times%finish(trouble)
         call keep_first(error, trouble)
         call all%team%agree(error)
      end if
      if (all%team%rank /= 0) return
      if (allocated(error)) then
         call print_error(error)
      else
         call print_finished(all%has_short)
      end if
   end subroutine main

   subroutine print_about(help)
      logical, intent(in) :: help

      if (help) then
         call print_help()
      else
         write (output_unit, "(a)") "benchio "//program_version
      end if
   end subroutine print_about

   !> Prepares what all layers share, and reports every error that can be found without I/O.
   !> Collective, with the same error on all processes.
   subroutine prepare(all, error)
      type(run_t), intent(inout) :: all
      type(error_t), allocatable, intent(out) :: error
      type(layout_t), allocatable :: layout
      integer :: ierr

      call check_layers(all, layout, error)
      if (allocated(error)) return
      call get_library(all%mpi_library, error)
      if (allocated(error)) return
      call add_hints_of_environment(all%asked%task%hints, error)
      call all%team%agree(error)
      if (allocated(error)) return
      call fill_values(all%team, all%asked%task%environment, error)
      if (allocated(error)) return
      if (.not. all%asked%seed_given) call draw_seed(all%asked%task%seed)
      call MPI_Bcast(all%asked%task%seed, 1, MPI_INTEGER8, 0, all%team%world, ierr)
      call check(ierr, "MPI_Bcast", error)
      if (allocated(error)) return
      if (all%asked%cache == "shift") then
         call all%readers%start_shifted(all%team, error)
         call all%team%agree(error)
         if (allocated(error)) return
      end if
      if (all%team%rank == 0) call print_banner(all%team, all%mpi_library, all%asked, layout)
      call start_files(all, error)
   end subroutine prepare

   !> Checks that each layer can divide its data among the processes. Returns the layout of the
   !> 3-D array if some layer uses it.
   subroutine check_layers(all, layout, error)
      type(run_t), intent(in) :: all
      type(layout_t), allocatable, intent(out) :: layout
      type(error_t), allocatable, intent(out) :: error
      class(backend_t), allocatable :: layer
      integer :: at

      associate (asked => all%asked, team => all%team)
         do at = 1, size(asked%layers)
            call make_layer(asked%layers(at)%value, layer)
            call layer%check_task(asked%task, team%size, error)
            if (asked%task%writers > 0 .and. .not. allocated(error)) then
               call check_groups(asked%task, team%size, "--writers", asked%task%writers, error)
            end if
            if (allocated(error)) return
            select type (layer)
            class is (block_backend_t)
               if (allocated(layout)) cycle
               allocate (layout)
               call lay_out(asked%task, team%size, team%rank, layout, error)
               if (allocated(error)) return
            end select
         end do
      end associate
   end subroutine check_layers

   !> Creates the result files, which must differ from each other and from the table. An existing
   !> one is emptied only once it is known not to be a data file.
   subroutine start_files(all, error)
      type(run_t), intent(inout) :: all
      type(error_t), allocatable, intent(out) :: error

      associate (asked => all%asked)
         if (all%team%rank == 0 .and. allocated(asked%result_path)) then
            call all%results%start(asked%result_path, error)
         end if
         call all%team%agree(error)
         if (allocated(error)) return
         if (allocated(asked%ranks_path)) then
            call all%rank_times%start(all%team, asked%ranks_path, error)
         end if
         if (all%team%rank == 0) then
            call check_different(asked%result_path, asked%ranks_path, error)
            call check_different(asked%result_path, asked%task%layout_path, error)
            call check_different(asked%ranks_path, asked%task%layout_path, error)
         end if
      end associate
      call all%team%agree(error)
   end subroutine start_files

   subroutine check_different(one, other, error)
      character(len=:), allocatable, intent(in) :: one, other
      type(error_t), allocatable, intent(inout) :: error

      if (allocated(error) .or. .not. (allocated(one) .and. allocated(other))) return
      if (is_same_file(one, other)) then
         call fail(error, one//" and "//other//" are the same file; --result, --ranks and " &
                   //"--layout must name different ones")
      end if
   end subroutine check_different

   !> The first line of the MPI library's version text.
   subroutine get_library(name, error)
      character(len=:), allocatable, intent(out) :: name
      type(error_t), allocatable, intent(out) :: error
      character(len=MPI_MAX_LIBRARY_VERSION_STRING) :: buffer
      integer :: length, at, ierr

      name = ""
      call MPI_Get_library_version(buffer, length, ierr)
      call check(ierr, "MPI_Get_library_version", error)
      if (allocated(error)) return
      length = scan(buffer(:length)//achar(0), achar(0)//achar(10)//achar(13)) - 1
      do at = 1, length
         if (buffer(at:at) == achar(9)) buffer(at:at) = " "
      end do
      name = trim(buffer(:length))
   end subroutine get_library

   !> A random seed, 0 to 2**63 - 1, from the system's randomness or, without it, from
   !> the clock.
   subroutine draw_seed(seed)
      integer(int64), intent(out) :: seed
      real :: parts(4)
      integer(int64) :: ticks
      integer :: at

      call random_init(repeatable=.false., image_distinct=.false.)
      call random_number(parts)
      call system_clock(ticks)
      seed = ticks
      do at = 1, size(parts)
         seed = ieor(ishft(seed, 16), int(parts(at)*65536.0, int64))
      end do
      seed = ibclr(ieor(seed, ishft(ticks, 20)), 63)
   end subroutine draw_seed

   !> Prints an error, with benchio's name before each line.
   subroutine print_error(error)
      type(error_t), intent(in) :: error
      character(len=:), allocatable :: rest
      integer :: cut

      flush (output_unit)
      rest = error%text
      do
         cut = index(rest, new_line("a"))
         if (cut == 0) exit
         write (error_unit, "(a)") "benchio: "//rest(:cut - 1)
         rest = rest(cut + 1:)
      end do
      write (error_unit, "(a)") "benchio: "//rest
      if (error%status == status_usage .and. index(rest, "--help") == 0) then
         write (error_unit, "(a)") "benchio: see benchio --help"
      end if
   end subroutine print_error

end program benchio
