!> The options of the command line: their names, what value each takes, and the
!> words of the help. The one list that parsing, help and suggestions share.
module option_table
   implicit none(type, external)
   private

   public :: option_t, name_of, takes_value, place_of

   type :: option_t
      !> The name, with `=` and what stands for the value where it takes one.
      character(len=24) :: usage
      !> The help, and more of it on a second line where one does not do.
      character(len=72) :: help, more
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
      option_t("--steps=N", "btio, snapshot: the time steps written (5, 16)", ""), &
      option_t("--every=N", "snapshot: time steps computed before each written one (100)", ""), &
      option_t("--compute=S", "snapshot: seconds that a time step computes (0.001)", ""), &
      option_t("--record=SIZE", "strided: the bytes of a record (those of N1 elements)", ""), &
      option_t("--files=N", "aligned: divide the data among N files (1)", ""), &
      option_t("--layout=FILE", "aligned: a table of lines `path stripe_size ost ost ...`", ""), &
      option_t("--stripe-size=SIZE", "aligned, without a table: the bytes of a stripe (1M)", ""), &
      option_t("--stripe-count=N", "aligned, without a table: the number of targets (1)", ""), &
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

   !> The place of an option in the list; 0 for a name that is not there.
   pure function place_of(name) result(res)
      character(len=*), intent(in) :: name
      integer :: res

      do res = size(options_known), 1, -1
         if (name_of(options_known(res)) == name) return
      end do
   end function place_of

end module option_table
