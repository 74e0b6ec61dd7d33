!> The options of the command line: their names, what value each takes, and the
!> words of the help. The one list that parsing, help and suggestions share.
module option_table
   implicit none(type, external)
   private

   public :: option_t, name_of, takes_value, place_of, is_for

   type :: option_t
      !> The name, with `=` and what stands for the value where it takes one.
      character(len=24) :: usage
      !> The help, and more of it on a second line where one does not do.
      character(len=72) :: help, more
      !> How the names of the layers begin that alone it is for; empty for all.
      character(len=16) :: kinds = ""
   end type option_t

   !&< a table
   type(option_t), parameter, public :: options_known(*) = [ &
      option_t("--directory=PATH", "write below PATH; may be given more than once", ""), &
      option_t("--read", "after each write phase, read the data back in one of its own", ""), &
      option_t("--verify", "compare what was read, element by element; implies --read", ""), &
      option_t("--no-write", "read files that an earlier run kept; needs --read or --verify", ""), &
      option_t("--repeats=N", "measure each phase N times", ""), &
      option_t("--min-seconds=S", "repeat further until each phase took S seconds in all", ""), &
      option_t("--max-seconds=S", "begin no phase after S seconds, and say what is missing", ""), &
      option_t("--min-free=SIZE", "refuse to run if less than SIZE would be left free", ""), &
      option_t("--cache=MODE", "what keeps reads from the page cache: drop its pages, shift to", &
               "a rank of another node, direct (O_DIRECT), none"), &
      option_t("--decomposition=KIND", "cut the array into block, slab or pencil", ""), &
      option_t("--writers=N", "N processes write, and gather the data of the others", ""), &
      option_t("--hint=KEY=VALUE", "an MPI-IO hint, as ROMIO_HINTS and MPICH_MPIIO_HINTS give;", &
               "may be given more than once"), &
      option_t("--require-hints", "fail when a hint asked for is not shown to be in effect", ""), &
      option_t("--result=FILE", "write the figures to FILE, in JSON Lines", ""), &
      option_t("--ranks=FILE", "write each rank's times to FILE, as CSV", ""), &
      option_t("--seed=N", "the seed of the data, 0 to 2**63 - 1; drawn when not given", ""), &
      option_t("--keep", "leave the files of the last repeat", ""), &
      option_t("--steps=N", "the time steps written (5, 16)", "", "btio snapshot"), &
      option_t("--every=N", "time steps computed before each written one (100)", "", "snapshot"), &
      option_t("--compute=S", "seconds that a time step computes (0.001)", "", "snapshot"), &
      option_t("--record=SIZE", "the bytes of a record (those of N1 elements)", "", "strided"), &
      option_t("--files=N", "divide the data among N files (1)", "", "aligned"), &
      option_t("--layout=FILE", "a table of lines `path stripe_size ost ost ...`", "", "aligned"), &
     option_t("--stripe-size=SIZE", "without a table: the bytes of a stripe (1M)", "", "aligned"), &
      option_t("--stripe-count=N", "without a table: the number of targets (1)", "", "aligned"), &
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

   !> Whether an option has a meaning for a layer.
   pure function is_for(option, layer) result(res)
      type(option_t), intent(in) :: option
      character(len=*), intent(in) :: layer
      logical :: res

      res = option%kinds == "" .or. index(option%kinds, layer(:scan(layer//"-", "-") - 1)) > 0
   end function is_for

   !> The place of an option in the list; 0 for a name that is not there.
   pure function place_of(name) result(res)
      character(len=*), intent(in) :: name
      integer :: res

      do res = size(options_known), 1, -1
         if (name_of(options_known(res)) == name) return
      end do
   end function place_of

end module option_table
