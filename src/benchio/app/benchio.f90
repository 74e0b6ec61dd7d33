!> benchio measures how fast an array that is spread over MPI processes goes to
!> files and comes back. This program starts MPI, runs what the command line
!> asks for, and alone decides how the run ends: errors reach it as values.
program benchio
   use, intrinsic :: iso_c_binding, only: c_int
   use, intrinsic :: iso_fortran_env, only: error_unit, int64, output_unit
   use backend, only: backend_t
   use block_backend, only: lay_out
   use errors, only: error_t, keep_first, status_failed, status_usage
   use gather, only: check_writers
   use hint_environment, only: add_hints_of_environment
   use layout, only: layout_t
   use mpi_checks, only: check, mpi_text
   use mpi_f08, only: MPI_Bcast, MPI_COMM_WORLD, MPI_Finalize, MPI_Get_library_version, &
                      MPI_Init, MPI_INTEGER8, MPI_MAX_LIBRARY_VERSION_STRING, MPI_SUCCESS
   use options, only: command_words, parse
   use posix_api, only: c_exit
   use progress, only: say_banner, say_finished
   use registry, only: has_blocks, make_layer
   use run, only: run_t
   use usage, only: print_help
   use version, only: benchio_version
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

   !> Ends the process. `stop` would print itself once a rank; the `quiet` that keeps
   !> it from doing so came with gfortran 12.
   subroutine end_run(status)
      integer, intent(in) :: status

      flush (output_unit)
      flush (error_unit)
      call c_exit(int(status, c_int))
   end subroutine end_run

   !> All that happens between MPI's start and its end. Rank 0 prints the error.
   subroutine main(error)
      type(error_t), allocatable, intent(out) :: error
      type(run_t) :: all
      type(error_t), allocatable :: trouble

      call all%team%start(MPI_COMM_WORLD, error)
      if (.not. allocated(error)) call parse(command_words(), all%asked, error)
      if (.not. allocated(error)) then
         if (all%asked%help .or. all%asked%version) then
            if (all%team%rank == 0) call say_of_itself(all%asked%help)
            return
         end if
         call prepare(all, error)
      end if
      if (.not. allocated(error)) then
         call all%watch%start(all%asked%max_seconds)
         call all%everything(error)
         call all%results%finish(trouble)
         call keep_first(error, trouble)
         call all%rank_times%finish(trouble)
         call keep_first(error, trouble)
         call all%team%agree(error)
      end if
      if (all%team%rank /= 0) return
      if (allocated(error)) then
         call complain(error)
      else
         call say_finished(all%has_short)
      end if
   end subroutine main

   subroutine say_of_itself(help)
      logical, intent(in) :: help

      if (help) then
         call print_help()
      else
         write (output_unit, "(a)") "benchio "//benchio_version
      end if
   end subroutine say_of_itself

   !> Readies all that the layers have in common: what can go wrong before any I/O
   !> does so here. Collective, and so is its error.
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
      if (.not. all%asked%seed_given) call draw(all%asked%task%seed)
      call MPI_Bcast(all%asked%task%seed, 1, MPI_INTEGER8, 0, all%team%world, ierr)
      call check(ierr, "MPI_Bcast", error)
      if (allocated(error)) return
      if (all%asked%cache == "shift") then
         call all%readers%start_shifted(all%team, error)
         call all%team%agree(error)
         if (allocated(error)) return
      end if
      if (all%team%rank == 0) call say_banner(all%team, all%mpi_library, all%asked, layout)
      call start_files(all, error)
   end subroutine prepare

   !> Sees that each layer can divide its data among the processes, and how those of
   !> the 3-D array do it, where there are any.
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
               call check_writers(asked%task, team%size, error)
            end if
            if (allocated(error)) return
            if (allocated(layout) .or. .not. has_blocks(asked%layers(at)%value)) cycle
            allocate (layout)
            call lay_out(asked%task, team%size, team%rank, layout, error)
            if (allocated(error)) return
         end do
      end associate
   end subroutine check_layers

   !> The files that rank 0 writes the figures to.
   subroutine start_files(all, error)
      type(run_t), intent(inout) :: all
      type(error_t), allocatable, intent(out) :: error

      if (all%team%rank == 0 .and. allocated(all%asked%result_path)) then
         call all%results%start(all%asked%result_path, error)
      end if
      call all%team%agree(error)
      if (allocated(error) .or. .not. allocated(all%asked%ranks_path)) return
      call all%rank_times%start(all%team, all%asked%ranks_path, error)
      call all%team%agree(error)
   end subroutine start_files

   !> The first line of what the MPI library says of itself.
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

   !> A seed that differs from run to run, 0 to 2**63 - 1: from the system's
   !> randomness, and from the clock for systems that have none.
   subroutine draw(seed)
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
   end subroutine draw

   !> An error of several lines has benchio's name before each.
   subroutine complain(error)
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
   end subroutine complain

end program benchio
