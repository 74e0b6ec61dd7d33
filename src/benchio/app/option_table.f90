!> The table of options of the command line: their names, values and help texts. Parsing, help
!> and suggestions use it.
module benchio_option_table
   implicit none(type, external)
   private

   public :: option_t, name_of, takes_value, place_of, is_for

   type :: option_t
      !> The name, with `=` and a placeholder if it takes a value.
      character(len=24) :: usage
      !> The help text, and its second line.
      character(len=72) :: help, more
      !> The beginnings of the names of the layers that it applies to; empty for all layers.
      character(len=38) :: kinds = ""
      !> What it acts on, if not every run has it: `writes` or `reads`, the `blocks` of a 3-D array,
      !> `MPI-IO`, or the `result` file.
      character(len=6) :: acts_on = ""
   end type option_t

   !&< a table
   type(option_t), parameter, public :: options_known(*) = [ &
      option_t("--directory=PATH", "write below PATH; may be given more than once", ""), &
      option_t("--read", "after each write, read the data back in a phase of its own", ""), &
      option_t("--verify", "compare the data read, element by element; implies --read", ""), &
      option_t("--no-write", "read files that an earlier run kept; needs --read or --verify", ""), &
      option_t("--repeats=N", "measure each phase N times", ""), &
      option_t("--min-seconds=S", "repeat until each phase took S seconds in total", ""), &
      option_t("--max-seconds=S", "start no phase after S seconds; report what is missing", ""), &
      option_t("--min-free=SIZE", "do not run if it would leave less than SIZE free", "", &
               acts_on="writes"), &
      option_t("--cache=MODE", "how reads avoid the page cache: drop its pages, shift to", &
               "a rank on another node, direct (O_DIRECT), none", acts_on="reads"), &
      option_t("--direct", "move data only with O_DIRECT, from aligned memory; POSIX layers", &
               ""), &
      option_t("--halo=N", "elements around each block in memory (1); 0: contiguous", "", &
               acts_on="blocks"), &
      option_t("--latency", "", "report how long the calls that move data took", &
               "serial proc node mpiio strided aligned"), &
      option_t("--decomposition=KIND", "cut the array by block, slab or pencil", "", &
               acts_on="blocks"), &
      option_t("--writers=N", "N processes gather the data of the others and write", ""), &
      option_t("--hint=KEY=VALUE", "an MPI-IO hint, beside ROMIO_HINTS and MPICH_MPIIO_HINTS;", &
               "may be given more than once", acts_on="MPI-IO"), &
      option_t("--require-hints", "fail unless all requested hints are shown to be in effect", &
               "", acts_on="MPI-IO"), &
      option_t("--environment=NAME", "record this variable, where all ranks have the same value;", &
               "may be given more than once", acts_on="result"), &
      option_t("--result=FILE", "write the results to FILE, in JSON Lines", ""), &
      option_t("--ranks=FILE", "write the times of each rank to FILE, as CSV", ""), &
      option_t("--seed=N", "the seed of the data, 0 to 2**63 - 1; random by default", ""), &
      option_t("--keep", "keep the files of the last repeat", "", acts_on="writes"), &
      option_t("--steps=N", "time steps to write (5, 16)", "", "btio snapshot"), &
      option_t("--every=N", "time steps computed before each one written (100)", "", "snapshot", &
               acts_on="writes"), &
      option_t("--compute=S", "seconds of computing in a time step (0.001)", "", "snapshot", &
               acts_on="writes"), &
      option_t("--exchange", "swap the faces of the blocks in each time step", "", "snapshot", &
               acts_on="writes"), &
      option_t("--record=SIZE", "bytes of a record (8 * N1)", "", "strided mapped"), &
      option_t("--files=N", "divide the data among N files (1)", "", "group aligned"), &
      option_t("--layout=FILE", "a table of lines `path stripe_size ost ost ...`", "", "aligned"), &
      option_t("--stripe-size=SIZE", "without a table: bytes of a stripe (1M)", "", "aligned"), &
      option_t("--stripe-count=N", "without a table: number of targets (1)", "", "aligned"), &
      option_t("--help", "", ""), &
      option_t("--version", "", "")]
   !&>

contains

   pure function name_of(option) result(res)
      type(option_t), intent(in) :: option
      character(len=:), allocatable :: res

      res = trim(option%usage)
      if (takes_value(option)) res = res(:index(res, "=") - 1)
   end function name_of

   pure function takes_value(option) result(res)
      type(option_t), intent(in) :: option
      logical :: res

      res = index(option%usage, "=") > 0
   end function takes_value

   !> Whether an option applies to a layer.
   pure function is_for(option, layer) result(res)
      type(option_t), intent(in) :: option
      character(len=*), intent(in) :: layer
      logical :: res

      res = option%kinds == "" .or. index(option%kinds, layer(:scan(layer//"-", "-") - 1)) > 0
   end function is_for

   !> The position of an option in the table; 0 for an unknown name.
   pure function place_of(name) result(res)
      character(len=*), intent(in) :: name
      integer :: res

      do res = size(options_known), 1, -1
         if (name_of(options_known(res)) == name) return
      end do
   end function place_of

end module benchio_option_table
