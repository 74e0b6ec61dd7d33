!> The text of --help, from the tables of layers and options.
module benchio_usage
   use, intrinsic :: iso_fortran_env, only: output_unit
   use benchio_option_table, only: option_t, options_known
   use benchio_registry, only: default_names, layer_names, layer_summary
   use benchio_text, only: joined, string_t
   implicit none(type, external)
   private

   public :: print_help

contains

   !> Prints the help to standard output.
   subroutine print_help()
      type(string_t), allocatable :: layers(:)
      integer :: at

      allocate (layers, source=layer_names())
      call print_line("benchio N1 N2 N3 local|global [LAYER ...] [DIRECTORY ...] [fsync] " &
                      //"[OPTION ...]")
      call print_line("")
      call print_line("Measures the write and read rates of a 3-D array that is distributed over " &
                      //"MPI")
      call print_line("processes.")
      call print_line("")
      call print_line("N1 N2 N3   sizes of an array of 8-byte elements: of each process's block " &
                      //"(local)")
      call print_line("           or of the whole array (global)")
      call print_line("LAYER      any of the following; without one, "//joined(default_names()))
      call print_layers(layers)
      call print_line("DIRECTORY  any of the existing directories unstriped striped fullstriped; " &
                      //"all three")
      call print_line("           if none is given")
      call print_line("fsync      include the time to flush the data to the file system")
      call print_line("")
      do at = 1, size(options_known)
         call print_option(options_known(at))
      end do
      call print_line("")
      call print_line("Exit status: 0 if every phase was measured and, if requested, verified; " &
                      //"1 if a call")
      call print_line("or a verification failed; 2 for an invalid command line; 3 if " &
                      //"--max-seconds ended")
      call print_line("the run. See also benchio(1).")
   end subroutine print_help

   !> The layers with the same description on one line.
   subroutine print_layers(layers)
      type(string_t), intent(in) :: layers(:)
      integer, parameter :: width = 26
      character(len=:), allocatable :: names, summary
      integer :: at

      names = ""
      summary = ""
      do at = 1, size(layers)
         if (at > 1 .and. layer_summary(layers(at)%value) /= summary) call print_kind()
         names = names//" "//layers(at)%value
         summary = layer_summary(layers(at)%value)
      end do
      call print_kind()

   contains

      subroutine print_kind()
         if (len(names) > width - 2) then
            call print_line(" "//names)
            names = ""
         end if
         call print_line(" "//names//repeat(" ", width - len(names))//summary)
         names = ""
      end subroutine print_kind

   end subroutine print_layers

   subroutine print_option(option)
      type(option_t), intent(in) :: option
      character(len=:), allocatable :: kinds

      kinds = ""
      if (option%kinds /= "") kinds = trim(option%kinds)//": "
      call print_line(trim(option%usage//" "//kinds//option%help))
      if (option%more /= "") call print_line(repeat(" ", len(option%usage) + 1)//trim(option%more))
   end subroutine print_option

   subroutine print_line(line)
      character(len=*), intent(in) :: line

      write (output_unit, "(a)") line
   end subroutine print_line

end module benchio_usage
