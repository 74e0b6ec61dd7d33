!> The command line: what was asked, as values. It refuses what it does not
!> know, by name and wherever it stands. Knows the layers' names only.
module options
   use, intrinsic :: iso_fortran_env, only: int64
   use backend, only: hint_t
   use errors, only: error_t, fail, status_usage
   use registry, only: absent_names, layer_names
   use text, only: append, joined, nearest_word, read_integer, string_t, to_text
   implicit none(type, external)
   private

   public :: options_t, parse, command_words

   !> EPCC's three directories, in the order in which they are used.
   character(len=11), parameter :: named_directories(3) = &
                                   [character(len=11) :: "unstriped", "striped", "fullstriped"]

   type :: options_t
      !> The sizes N1 N2 N3, and whether they are those of the whole array.
      integer(int64) :: sizes(3) = 0_int64
      logical :: is_global = .false.
      !> What to run, and where, in the order of running.
      type(string_t), allocatable :: layers(:), directories(:)
      logical :: fsync = .false., write = .true., read = .false., verify = .false.
      logical :: keep = .false., help = .false., version = .false.
      integer :: repeats = 1
      !> The seed, unless it is to be drawn.
      integer(int64) :: seed = 0_int64
      logical :: seed_given = .false.
      type(hint_t), allocatable :: hints(:)
      !> The path of the result file, where one was asked.
      character(len=:), allocatable :: result_path
   end type options_t

contains

   !> The words of the command line, whatever their length.
   function command_words() result(res)
      type(string_t), allocatable :: res(:)
      integer :: at, length

      allocate (res(command_argument_count()))
      do at = 1, size(res)
         call get_command_argument(at, length=length)
         allocate (character(len=length) :: res(at)%value)
         if (length > 0) call get_command_argument(at, res(at)%value)
      end do
   end function command_words

   !> Reads the words of a command line. All errors are usage errors.
   subroutine parse(words, res, error)
      type(string_t), intent(in) :: words(:)
      type(options_t), intent(out) :: res
      type(error_t), allocatable, intent(out) :: error
      type(string_t), allocatable :: layers(:), directories(:)
      integer :: at

      allocate (res%hints(0), layers(0), directories(0))
      res%help = has_word(words, "--help")
      res%version = has_word(words, "--version")
      if (res%help .or. res%version) return
      if (size(words) < 4) then
         call fail(error, "N1 N2 N3 and local or global must be given; see benchio --help", &
                   status_usage)
         return
      end if
      do at = 1, 3
         call read_size(at, words(at)%value, res%sizes(at), error)
         if (allocated(error)) return
      end do
      res%is_global = words(4)%value == "global"
      if (.not. has_word([string_t("local"), string_t("global")], words(4)%value)) then
         call fail(error, "the fourth argument must be local or global, and not '" &
                   //words(4)%value//"'", status_usage)
         return
      end if
      do at = 5, size(words)
         call parse_word(words(at)%value, res, layers, directories, error)
         if (allocated(error)) return
      end do
      call settle(res, layers, directories, error)
   end subroutine parse

   subroutine read_size(axis, word, number, error)
      integer, intent(in) :: axis
      character(len=*), intent(in) :: word
      integer(int64), intent(out) :: number
      type(error_t), allocatable, intent(out) :: error
      logical :: ok

      call read_integer(word, number, ok)
      if (ok .and. number > 0) return
      call fail(error, "N"//to_text(axis)//" must be a whole number from 1 to 2**63 - 1, " &
                //"and not '"//word//"'", status_usage)
   end subroutine read_size

   !> A word after the four that must be there.
   subroutine parse_word(word, res, layers, directories, error)
      character(len=*), intent(in) :: word
      type(options_t), intent(inout) :: res
      type(string_t), allocatable, intent(inout) :: layers(:), directories(:)
      type(error_t), allocatable, intent(out) :: error

      if (ends_in_blank(word)) then
         call refuse(word, error)
      else if (index(word, "--") == 1) then
         call parse_option(word, res, directories, error)
      else if (word == "fsync") then
         res%fsync = .true.
      else if (has_word(layer_names(), word)) then
         call append(layers, word)
      else if (any(named_directories == word)) then
         call append(directories, word)
      else if (has_word(absent_names(), word)) then
         call fail(error, word//" was not compiled in; there are: "//joined(layer_names()), &
                   status_usage)
      else
         call refuse(word, error)
      end if
   end subroutine parse_word

   subroutine parse_option(word, res, directories, error)
      character(len=*), intent(in) :: word
      type(options_t), intent(inout) :: res
      type(string_t), allocatable, intent(inout) :: directories(:)
      type(error_t), allocatable, intent(out) :: error
      character(len=:), allocatable :: name, value
      integer :: equals

      equals = index(word, "=")
      if (equals == 0) then
         call parse_switch(word, res, error)
         return
      end if
      name = word(:equals - 1)
      value = word(equals + 1:)
      if (len(value) == 0 .and. has_word(valued_options(), name)) then
         call fail(error, name//" needs a value: "//name//"=...", status_usage)
         return
      end if
      select case (name)
      case ("--directory")
         call append(directories, value)
      case ("--repeats")
         call parse_repeats(value, res%repeats, error)
      case ("--seed")
         call read_integer(value, res%seed, res%seed_given)
         if (.not. res%seed_given) call fail(error, "--seed must be a whole number from 0 to " &
                                             //"2**63 - 1, and not '"//value//"'", status_usage)
      case ("--hint")
         call parse_hint(value, res%hints, error)
      case ("--result")
         res%result_path = value
      case default
         if (has_word(switches(), name)) then
            call fail(error, name//" takes no value", status_usage)
         else
            call refuse(name, error)
         end if
      end select
   end subroutine parse_option

   subroutine parse_switch(word, res, error)
      character(len=*), intent(in) :: word
      type(options_t), intent(inout) :: res
      type(error_t), allocatable, intent(out) :: error

      select case (word)
      case ("--read")
         res%read = .true.
      case ("--verify")
         res%read = .true.
         res%verify = .true.
      case ("--no-write")
         res%write = .false.
      case ("--keep")
         res%keep = .true.
      case default
         if (has_word(valued_options(), word)) then
            call fail(error, word//" needs a value: "//word//"=...", status_usage)
         else
            call refuse(word, error)
         end if
      end select
   end subroutine parse_switch

   subroutine parse_repeats(value, repeats, error)
      character(len=*), intent(in) :: value
      integer, intent(out) :: repeats
      type(error_t), allocatable, intent(out) :: error
      integer(int64) :: number
      logical :: ok

      repeats = 1
      call read_integer(value, number, ok)
      if (ok) ok = number > 0 .and. number <= huge(repeats)
      if (ok) then
         repeats = int(number)
      else
         call fail(error, "--repeats must be a whole number from 1 to "//to_text(huge(repeats)) &
                   //", and not '"//value//"'", status_usage)
      end if
   end subroutine parse_repeats

   subroutine parse_hint(value, hints, error)
      character(len=*), intent(in) :: value
      type(hint_t), allocatable, intent(inout) :: hints(:)
      type(error_t), allocatable, intent(out) :: error
      integer :: equals

      equals = index(value, "=")
      if (equals > 1 .and. equals < len(value)) then
         hints = [hints, hint_t(value(:equals - 1), value(equals + 1:))]
      else
         call fail(error, "--hint must be --hint=KEY=VALUE, and not '--hint="//value//"'", &
                   status_usage)
      end if
   end subroutine parse_hint

   !> Fills in what was left out, puts layers and directories in their order,
   !> and refuses what does not go together.
   subroutine settle(res, layers, directories, error)
      type(options_t), intent(inout) :: res
      type(string_t), intent(in) :: layers(:), directories(:)
      type(error_t), allocatable, intent(out) :: error
      type(string_t), allocatable :: known(:)
      character(len=:), allocatable :: name
      integer :: at

      allocate (known, source=layer_names())
      allocate (res%layers(0), res%directories(0))
      do at = 1, size(known)
         if (size(layers) > 0 .and. .not. has_word(layers, known(at)%value)) cycle
         call append(res%layers, known(at)%value)
      end do
      do at = 1, size(named_directories)
         name = trim(named_directories(at))
         if (size(directories) > 0 .and. .not. has_word(directories, name)) cycle
         call append(res%directories, name)
      end do
      do at = 1, size(directories)
         if (has_word(res%directories, directories(at)%value)) cycle
         call append(res%directories, directories(at)%value)
      end do

      if (.not. res%write .and. .not. res%read) then
         call fail(error, "--no-write leaves nothing to do without --read or --verify", &
                   status_usage)
      else if (.not. res%write .and. res%verify .and. .not. res%seed_given) then
         call fail(error, "--verify with --no-write needs --seed=N, the seed of the run that " &
                   //"wrote the files", status_usage)
      end if
   end subroutine settle

   !> An error for a word that means nothing, with the nearest one that does.
   subroutine refuse(word, error)
      character(len=*), intent(in) :: word
      type(error_t), allocatable, intent(out) :: error
      type(string_t), allocatable :: valid(:)
      character(len=:), allocatable :: nearest
      integer :: at

      allocate (valid, source=[layer_names(), valued_options(), switches()])
      call append(valid, "fsync")
      do at = 1, size(named_directories)
         call append(valid, trim(named_directories(at)))
      end do
      nearest = nearest_word(word, valid)
      if (len(nearest) > 0) nearest = "; did you mean "//nearest//"?"
      call fail(error, "unknown argument '"//word//"'"//nearest, status_usage)
   end subroutine refuse

   pure function valued_options() result(res)
      type(string_t), allocatable :: res(:)

      allocate (res, source=[string_t("--directory"), string_t("--repeats"), string_t("--seed"), &
                             string_t("--hint"), string_t("--result")])
   end function valued_options

   pure function switches() result(res)
      type(string_t), allocatable :: res(:)

      allocate (res, source=[string_t("--read"), string_t("--verify"), string_t("--no-write"), &
                             string_t("--keep"), string_t("--help"), string_t("--version")])
   end function switches

   !> Whether a word, or the name of an option, ends in a blank: Fortran takes it
   !> for equal to the one without.
   pure function ends_in_blank(word) result(res)
      character(len=*), intent(in) :: word
      logical :: res
      integer :: last

      last = len(word)
      if (index(word, "--") == 1 .and. index(word, "=") > 0) last = index(word, "=") - 1
      res = last > 0
      if (res) res = word(last:last) == " "
   end function ends_in_blank

   pure function has_word(words, word) result(res)
      type(string_t), intent(in) :: words(:)
      character(len=*), intent(in) :: word
      logical :: res
      integer :: at

      res = .false.
      do at = 1, size(words)
         if (words(at)%value == word .and. len(words(at)%value) == len(word)) res = .true.
      end do
   end function has_word

end module options
