!> What benchio says of itself. Knows the layers by the registry alone.
module usage
   use, intrinsic :: iso_fortran_env, only: output_unit
   use option_table, only: option_t, options_known
   use registry, only: default_names, layer_names, layer_summary
   use text, only: joined, string_t
   implicit none(type, external)
   private

   public :: print_help

contains

   !> Prints the help to standard output.
   subroutine print_help()
      type(string_t), allocatable :: layers(:)
      integer :: at

      allocate (layers, source=layer_names())
      call say("benchio N1 N2 N3 local|global [LAYER ...] [DIRECTORY ...] [fsync] [OPTION ...]")
      call say("")
      call say("Measures how fast a 3-D array that is spread over MPI processes goes to files")
      call say("and comes back.")
      call say("")
      call say("N1 N2 N3   sizes of an array of 8-byte elements: of each process's block (local)")
      call say("           or of the whole array (global)")
      call say("LAYER      any of the following; without one, "//joined(default_names()))
      call say_layers(layers)
      call say("DIRECTORY  any of: unstriped striped fullstriped, directories that must be there;")
      call say("           all three when none is given")
      call say( &
         "fsync      include in each time what it takes to bring the data to the file system")
      call say("")
      do at = 1, size(options_known)
         call say_option(options_known(at))
      end do
      call say("")
      call say("Exit status: 0 when every phase was measured and, where asked, verified; 1 when a")
      call say("call or a verification failed; 2 when the command line makes no sense; 3 when")
      call say("--max-seconds ended the run. See also benchio(1).")
   end subroutine print_help

   !> The layers of a kind on a line, with what they are.
   subroutine say_layers(layers)
      type(string_t), intent(in) :: layers(:)
      character(len=:), allocatable :: names, summary
      integer :: at

      names = ""
      summary = ""
      do at = 1, size(layers)
         if (at > 1 .and. layer_summary(layers(at)%value) /= summary) call say_kind()
         names = names//" "//layers(at)%value
         summary = layer_summary(layers(at)%value)
      end do
      call say_kind()

   contains

      subroutine say_kind()
         call say(" "//names//repeat(" ", max(2, 26 - len(names)))//summary)
         names = ""
      end subroutine say_kind

   end subroutine say_layers

   subroutine say_option(option)
      type(option_t), intent(in) :: option

      character(len=:), allocatable :: kinds

      kinds = ""
      if (option%kinds /= "") kinds = trim(option%kinds)//": "
      call say(trim(option%usage//" "//kinds//option%help))
      if (option%more /= "") call say(repeat(" ", len(option%usage) + 1)//trim(option%more))
   end subroutine say_option

   subroutine say(line)
      character(len=*), intent(in) :: line

      write (output_unit, "(a)") line
   end subroutine say

end module usage
