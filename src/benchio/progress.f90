!> What rank 0 prints while it runs. Parsers of EPCC's benchio read the lines of
!> `say_start` and `say_rate`, which must follow each other.
module progress
   use, intrinsic :: iso_fortran_env, only: int64, output_unit, real64
   use backend, only: backend_t
   use layout, only: layout_t
   use options, only: options_t
   use phase, only: phase_t
   use team, only: team_t
   use text, only: decimal, joined, to_text
   implicit none(type, external)
   private

   public :: say_banner, say_layer, say_fsync, say_start, say_rate, say_note, say_finished

contains

   !> What is going to be run. `layout` is that of the layers of the 3-D array,
   !> where there are any.
   subroutine say_banner(team, asked, layout)
      type(team_t), intent(in) :: team
      type(options_t), intent(in) :: asked
      type(layout_t), intent(in), optional :: layout

      call say("")
      call say("benchio: parallel I/O of a 3-D array")
      call say("------------------------------------")
      call say("")
      call say("Running on "//to_text(team%size)//" process(es) on "//to_text(team%nodes) &
               //" node(s)")
      if (present(layout)) then
         call say("Process grid is "//triple(int(layout%procs, int64)))
         call say("Array size is   "//triple(layout%block))
         call say("Global size is  "//triple(layout%whole))
         call say("Total amount of data = "//decimal(layout%gibibytes())//" GiB")
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

   !> Whether a layer's writes are at the file system when the clock stops.
   subroutine say_fsync(layer, asked)
      class(backend_t), intent(in) :: layer
      logical, intent(in) :: asked

      if (layer%always_syncs .and. .not. asked) then
         call say("Write times include fsync: "//layer%interface_name//" makes it unasked")
      else if (.not. asked) then
         call say("Write times do not include fsync: the data may be in caches")
      else if (layer%can_sync) then
         call say("Write times include fsync")
      else
         call say("Write times do not include fsync: "//layer%interface_name//" has no way to it")
      end if
   end subroutine say_fsync

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

   !> The line after a phase that succeeded.
   subroutine say_rate(phase)
      type(phase_t), intent(in) :: phase

      call say("time =  "//decimal(phase%seconds)//" , rate =  "//decimal(phase%bandwidth()) &
               //" GiB/s"//trim(merge(" (short)", "        ", phase%is_short())))
      if (phase%computes) then
         call say("computed for "//decimal(phase%computed_seconds)//" s, which the time leaves " &
                  //"out; I/O was under way for "//decimal(phase%hidden_seconds)//" s of them")
      end if
   end subroutine say_rate

   subroutine say_note(note)
      character(len=*), intent(in) :: note

      call say("Note: "//note)
   end subroutine say_note

   subroutine say_finished()
      call say("")
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

   pure function triple(numbers) result(res)
      integer(int64), intent(in) :: numbers(3)
      character(len=:), allocatable :: res

      res = "("//to_text(numbers(1))//", "//to_text(numbers(2))//", "//to_text(numbers(3))//")"
   end function triple

end module progress
