!> What benchio says of itself. Knows the layers by the registry alone.
module usage
   use, intrinsic :: iso_fortran_env, only: output_unit
   use registry, only: layer_names, layer_summary
   use text, only: joined, string_t
   implicit none(type, external)
   private

   public :: print_help

contains

   !> Prints the help to standard output.
   subroutine print_help()
      type(string_t), allocatable :: layers(:)
      character(len=:), allocatable :: name
      integer :: at

      allocate (layers, source=layer_names())
      call say("benchio N1 N2 N3 local|global [LAYER ...] [DIRECTORY ...] [fsync] [OPTION ...]")
      call say("")
      call say("Measures how fast a 3-D array that is spread over MPI processes goes to files")
      call say("and comes back.")
      call say("")
      call say("N1 N2 N3   sizes of an array of 8-byte elements: of each process's block (local)")
      call say("           or of the whole array (global)")
      call say("LAYER      any of: "//joined(layers)//"; all of them when none is given")
      do at = 1, size(layers)
         name = layers(at)%value
         call say("             "//name//repeat(" ", max(1, 8 - len(name)))//layer_summary(name))
      end do
      call say("DIRECTORY  any of: unstriped striped fullstriped, directories that must be there;")
      call say("           all three when none is given")
      call say( &
         "fsync      include in each time what it takes to bring the data to the file system")
      call say("")
      call say("--directory=PATH   write below PATH; may be given more than once")
      call say("--read             after each write phase, read the data back in one of its own")
      call say("--verify           compare what was read, element by element, outside the clock;")
      call say("                   implies --read")
      call say("--no-write         read files that an earlier run kept; needs --read or --verify")
      call say("--repeats=N        measure each phase N times")
      call say("--seed=N           the seed of the data, 0 to 2**63 - 1; drawn when not given")
      call say("--hint=KEY=VALUE   an MPI-IO hint; may be given more than once")
      call say("--result=FILE      write the figures to FILE, in JSON Lines")
      call say("--keep             leave the files of the last repeat")
      call say("--help, --version")
      call say("")
      call say("Exit status: 0 when every phase was measured and, where asked, verified; 1 when a")
      call say("call or a verification failed; 2 when the command line makes no sense.")
   end subroutine print_help

   subroutine say(line)
      character(len=*), intent(in) :: line

      write (output_unit, "(a)") line
   end subroutine say

end module usage
