!> What rank 0 prints while it runs. Parsers of EPCC's benchio read the lines of
!> `say_start` and `say_rate`, which must follow each other.
module progress
   use, intrinsic :: iso_fortran_env, only: int64, output_unit, real64
   use backend, only: backend_t
   use layout, only: layout_t
   use options, only: options_t
   use phase, only: phase_t
   use sorting, only: median, sort
   use team, only: team_t
   use text, only: decimal, joined, to_text
   use version, only: benchio_version
   implicit none(type, external)
   private

   public :: say_banner, say_layer, say_work, say_start, say_rate, say_repeats, say_finished

contains

   !> What is going to be run. `layout` is that of the layers of the 3-D array,
   !> where there are any.
   subroutine say_banner(team, mpi_library, asked, layout)
      type(team_t), intent(in) :: team
      character(len=*), intent(in) :: mpi_library
      type(options_t), intent(in) :: asked
      type(layout_t), intent(in), optional :: layout

      call say("")
      call say("benchio "//benchio_version//": parallel I/O")
      call say("----------------------------")
      call say("")
      call say("Date: "//now())
      call say("MPI library: "//mpi_library)
      call say("Running on "//to_text(team%size)//" process(es) on "//to_text(team%nodes) &
               //" node(s), the first of which is "//team%host)
      if (present(layout)) then
         call say("Process grid is "//triple(int(layout%procs, int64)))
         call say("Array size is   "//triple(layout%block))
         call say("Global size is  "//triple(layout%whole))
      else
         call say("Sizes are "//triple(asked%task%sizes))
      end if
      call say("Layers: "//joined(asked%layers))
      call say("Directories: "//joined(asked%directories))
      call say("Seed: "//to_text(asked%task%seed))
   end subroutine say_banner

   subroutine say_layer(name)
      character(len=*), intent(in) :: name

      call say("")
      call say(repeat("-", len(name)))
      call say(name)
      call say(repeat("-", len(name)))
      call say("")
   end subroutine say_layer

   !> What a layer moves, and whether its writes are at the file system when the clock
   !> stops.
   subroutine say_work(layer, writing, asked)
      class(backend_t), intent(in) :: layer
      logical, intent(in) :: writing, asked

    call say("Data: "//size_text(layer%total_bytes)//" in "//to_text(layer%files)//" file(s), by " &
               //to_text(layer%writers)//" process(es)")
      if (.not. writing) return
      if (layer%always_syncs .and. .not. asked) then
         call say("Write times include fsync: "//layer%interface_name//" makes it unasked")
      else if (.not. asked) then
         call say("Write times do not include fsync: the data may be in caches")
      else if (layer%can_sync) then
         call say("Write times include fsync")
      else
         call say("Write times do not include fsync: "//layer%interface_name//" has no way to it")
      end if
   end subroutine say_work

   !> The line before a phase.
   subroutine say_start(writing, path)
      logical, intent(in) :: writing
      character(len=*), intent(in) :: path

      if (writing) then
         call say("Writing to "//path)
      else
         call say("Reading from "//path)
      end if
   end subroutine say_start

   !> The lines after a phase that succeeded.
   subroutine say_rate(phase)
      type(phase_t), intent(in) :: phase
      integer :: at

      call say("time =  "//decimal(phase%seconds)//" , rate =  "//decimal(phase%bandwidth()) &
               //" GiB/s"//trim(merge(" (short)", "        ", phase%is_short())))
      if (phase%computes) then
         call say("besides computing for "//decimal(phase%computed_seconds)//" s, with I/O under " &
                  //"way for "//decimal(phase%hidden_seconds)//" s of them")
      end if
      if (.not. phase%writing) call say_what_was_read(phase)
      do at = 1, size(phase%notes)
         call say("Note: "//phase%notes(at)%value)
      end do
   end subroutine say_rate

   !> Where the data of a read came from, and whether they were right.
   subroutine say_what_was_read(phase)
      type(phase_t), intent(in) :: phase
      character(len=:), allocatable :: from

      select case (phase%cache)
      case ("dropped")
         from = "no page was in memory before"
      case ("direct")
         from = "by O_DIRECT; no page was in memory before"
      case ("shifted")
         from = "each process read what another node wrote"
      case default
         from = "it may come from memory"
      end select
      if (phase%verified) from = from//"; all as written"
      call say(from)
   end subroutine say_what_was_read

   !> The rates of an operation that was repeated.
   subroutine say_repeats(operation, rates)
      character(len=*), intent(in) :: operation
      real(real64), intent(in) :: rates(:)
      real(real64) :: sorted(size(rates))

      if (size(rates) < 2) return
      sorted = rates
      call sort(sorted)
      call say(operation//" "//to_text(size(rates))//" times: median "//decimal(median(sorted)) &
               //", from "//decimal(sorted(1))//" to "//decimal(sorted(size(sorted)))//" GiB/s")
   end subroutine say_repeats

   subroutine say_finished(has_short)
      logical, intent(in) :: has_short

      call say("")
      if (has_short) then
     call say("(short): it took less than a second, in which noise and metadata have a large part;")
         call say("larger sizes or --min-seconds tell more.")
         call say("")
      end if
      call say("--------")
      call say("Finished")
      call say("--------")
      call say("")
   end subroutine say_finished

   !> Flushed at once: who watches a run that hangs wants to know where.
   subroutine say(line)
      character(len=*), intent(in) :: line

      write (output_unit, "(1x, a)") line
      flush (output_unit)
   end subroutine say

   !> The time by the clock on the wall, with its offset from UTC, as in RFC 3339.
   function now() result(res)
      character(len=:), allocatable :: res
      character(len=10) :: date, time, zone

      call date_and_time(date, time, zone)
      res = date(1:4)//"-"//date(5:6)//"-"//date(7:8)//"T"//time(1:2)//":"//time(3:4)//":" &
            //time(5:6)//zone(1:3)//":"//zone(4:5)
   end function now

   !> Bytes in the largest binary unit of which there is at least one.
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

end module progress
