!> What rank 0 prints during a run. Parsers of EPCC's benchio read the lines of `print_start`
!> and `print_rate`, which must follow each other.
module benchio_progress
   use, intrinsic :: iso_fortran_env, only: int64, output_unit, real64
   use benchio_backend, only: backend_t
   use benchio_call_times, only: latency_t, percentiles
   use benchio_layout, only: layout_t
   use benchio_options, only: options_t
   use benchio_phase, only: phase_t
   use benchio_sorting, only: median, sort
   use benchio_team, only: team_t
   use benchio_text, only: decimal, joined, to_text
   use benchio_version, only: program_version
   implicit none(type, external)
   private

   public :: print_banner, print_layer, print_plan, print_start, print_rate, print_repeats
   public :: print_finished

contains

   !> The header of a run. `layout` is the layout of the 3-D array, if any layer uses one.
   subroutine print_banner(team, mpi_library, asked, layout)
      type(team_t), intent(in) :: team
      character(len=*), intent(in) :: mpi_library
      type(options_t), intent(in) :: asked
      type(layout_t), intent(in), optional :: layout

      call print_line("")
      call print_line("benchio "//program_version//": parallel I/O")
      call print_line("----------------------------")
      call print_line("")
      call print_line("Date: "//now())
      call print_line("MPI library: "//mpi_library)
      call print_line("Running on "//to_text(team%size)//" process(es) on "//to_text(team%nodes) &
                      //" node(s), the first is "//team%host)
      if (present(layout)) then
         call print_line("Process grid is "//triple(int(layout%procs, int64)))
         call print_line("Array size is   "//triple(layout%block))
         call print_line("Global size is  "//triple(layout%whole))
      else
         call print_line("Sizes are "//triple(asked%task%sizes))
      end if
      call print_line("Layers: "//joined(asked%layers))
      call print_line("Directories: "//joined(asked%directories))
      call print_line("Seed: "//to_text(asked%task%seed))
   end subroutine print_banner

   !> The heading of a layer.
   subroutine print_layer(name)
      character(len=*), intent(in) :: name

      call print_line("")
      call print_line(repeat("-", len(name)))
      call print_line(name)
      call print_line(repeat("-", len(name)))
      call print_line("")
   end subroutine print_layer

   !> The data that a layer moves, and whether its write times include a sync.
   subroutine print_plan(layer, writing, fsync)
      class(backend_t), intent(in) :: layer
      logical, intent(in) :: writing, fsync

      call print_line("Data: "//size_text(layer%total_bytes)//" in "//to_text(layer%files) &
                      //" file(s), by "//to_text(layer%writers)//" process(es)")
      if (.not. writing) return
      if (layer%always_syncs .and. .not. fsync) then
         call print_line("Write times include fsync: "//layer%interface_name//" always calls it")
      else if (.not. fsync) then
         call print_line("Write times do not include fsync: the data may be in caches")
      else if (layer%can_sync) then
         call print_line("Write times include fsync")
      else
         call print_line("Write times do not include fsync: "//layer%interface_name &
                         //" cannot call it")
      end if
   end subroutine print_plan

   !> The line before a phase.
   subroutine print_start(writing, path)
      logical, intent(in) :: writing
      character(len=*), intent(in) :: path

      if (writing) then
         call print_line("Writing to "//path)
      else
         call print_line("Reading from "//path)
      end if
   end subroutine print_start

   !> The lines after a phase that succeeded.
   subroutine print_rate(phase)
      type(phase_t), intent(in) :: phase
      integer :: at

      call print_line("time =  "//decimal(phase%seconds)//" , rate =  " &
                      //decimal(phase%bandwidth())//" GiB/s" &
                      //trim(merge(" (short)", "        ", phase%is_short())))
      if (phase%computes) then
         call print_line("computing = "//decimal(phase%computed_seconds)//" s, " &
                         //decimal(phase%hidden_seconds)//" s of it with I/O pending")
         if (phase%beside_seconds > 0.0_real64) then
            call print_line("a time step = "//decimal(phase%step_seconds)//" s without I/O, " &
                            //decimal(phase%beside_seconds)//" s beside it")
         end if
      end if
      if (phase%latency%calls > 0_int64) call print_latency(phase%latency)
      if (.not. phase%writing) call print_read(phase)
      do at = 1, size(phase%notes)
         call print_line("Note: "//phase%notes(at)%value)
      end do
   end subroutine print_rate

   !> How long calls took, in milliseconds.
   subroutine print_latency(latency)
      type(latency_t), intent(in) :: latency
      character(len=:), allocatable :: line
      integer :: at

      line = to_text(latency%calls)//" calls, ms:"
      do at = 1, size(percentiles)
         line = line//" p"//to_text(percentiles(at))//" "//decimal(latency%at(at)*1000)//","
      end do
      call print_line(line//" max "//decimal(latency%slowest*1000))
   end subroutine print_latency

   !> Where the data of a read came from, and whether they were verified.
   subroutine print_read(phase)
      type(phase_t), intent(in) :: phase
      character(len=:), allocatable :: source

      select case (phase%cache)
      case ("dropped")
         source = "no page was in this node's page cache"
      case ("direct")
         source = "O_DIRECT; no page was in this node's page cache"
      case ("shifted")
         source = "each process read what another node wrote"
      case default
         source = "the data may come from memory"
      end select
      if (phase%verified) source = source//"; all data are correct"
      call print_line(source)
   end subroutine print_read

   !> The statistics of an operation that was repeated.
   subroutine print_repeats(operation, rates)
      character(len=*), intent(in) :: operation
      real(real64), intent(in) :: rates(:)
      real(real64) :: sorted(size(rates))

      if (size(rates) < 2) return
      sorted = rates
      call sort(sorted)
      call print_line(operation//" "//to_text(size(rates))//" times: median " &
                      //decimal(median(sorted))//", from "//decimal(sorted(1))//" to " &
                      //decimal(sorted(size(sorted)))//" GiB/s")
   end subroutine print_repeats

   subroutine print_finished(has_short)
      logical, intent(in) :: has_short

      call print_line("")
      if (has_short) then
         call print_line("(short): less than one second; noise and metadata operations may " &
                         //"dominate.")
         call print_line("Use larger sizes or --min-seconds.")
         call print_line("")
      end if
      call print_line("--------")
      call print_line("Finished")
      call print_line("--------")
      call print_line("")
   end subroutine print_finished

   !> Flushed at once, to show where a run hangs.
   subroutine print_line(line)
      character(len=*), intent(in) :: line

      write (output_unit, "(1x, a)") line
      flush (output_unit)
   end subroutine print_line

   !> The local time with its UTC offset, as in RFC 3339.
   function now() result(res)
      character(len=:), allocatable :: res
      character(len=10) :: date, time, zone

      call date_and_time(date, time, zone)
      res = date(1:4)//"-"//date(5:6)//"-"//date(7:8)//"T"//time(1:2)//":"//time(3:4)//":" &
            //time(5:6)//zone(1:3)//":"//zone(4:5)
   end function now

   !> Bytes in the largest binary unit that gives at least 1.
   pure function size_text(bytes) result(res)
      integer(int64), intent(in) :: bytes
      character(len=:), allocatable :: res
      character(len=3), parameter :: units(0:4) = ["B  ", "KiB", "MiB", "GiB", "TiB"]
      integer :: power

      do power = ubound(units, 1), 1, -1
         if (shiftr(bytes, 10*power) > 0_int64) exit
      end do
      if (mod(bytes, shiftl(1_int64, 10*power)) == 0_int64) then
         res = to_text(shiftr(bytes, 10*power))
      else
         res = decimal(real(bytes, real64)/2.0_real64**(10*power))
      end if
      res = res//" "//trim(units(power))
   end function size_text

   pure function triple(numbers) result(res)
      integer(int64), intent(in) :: numbers(3)
      character(len=:), allocatable :: res

      res = "("//to_text(numbers(1))//", "//to_text(numbers(2))//", "//to_text(numbers(3))//")"
   end function triple

end module benchio_progress
