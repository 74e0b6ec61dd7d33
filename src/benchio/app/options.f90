!> The command line: what was asked, as values. It refuses what it does not
!> know, by name and wherever it stands. Knows the layers' names only.
module options
   use, intrinsic :: iso_fortran_env, only: int64, real64
   use decomposition, only: decompositions
   use errors, only: error_t, fail, status_usage
   use option_table, only: is_for, name_of, options_known, place_of, takes_value
   use option_values, only: read_bytes, read_choice, read_count, read_hint, read_seconds
   use registry, only: absent_names, can_gather, default_names, has_table, layer_names
   use task, only: task_t
   use text, only: append, joined, nearest_word, read_integer, string_t, to_text
   implicit none(type, external)
   private

   public :: options_t, parse, command_words

   !> EPCC's three directories, in the order in which they are used.
   character(len=11), parameter :: named_directories(3) = &
                                   [character(len=11) :: "unstriped", "striped", "fullstriped"]

   !> What can keep a read from finding its data in memory.
   character(len=6), parameter :: cache_modes(4) = &
                                  [character(len=6) :: "drop", "shift", "direct", "none"]

   type :: options_t
      !> What the layers have to know.
      type(task_t) :: task
      !> What to run, and where, in the order of running.
      type(string_t), allocatable :: layers(:), directories(:)
      logical :: fsync = .false., write = .true., read = .false., require_hints = .false.
      logical :: keep = .false., help = .false., version = .false.
      !> How often each phase is measured at least, and for how long in all.
      integer :: repeats = 1
      real(real64) :: min_seconds = 0.0_real64
      !> After how long no phase begins any more; 0 for never.
      real(real64) :: max_seconds = 0.0_real64
      !> The bytes that must stay free; 0 for none.
      integer(int64) :: min_free_bytes = 0_int64
      character(len=:), allocatable :: cache
      !> The options that were given, by their places in the table.
      integer, allocatable :: given(:)
      !> Whether the task's seed was given, and is not to be drawn.
      logical :: seed_given = .false.
      !> The paths of the result file and of the ranks' times, where asked.
      character(len=:), allocatable :: result_path, ranks_path
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

      allocate (res%task%hints(0), res%given(0), layers(0), directories(0))
      res%task%decomposition = trim(decompositions(1))
      res%cache = trim(cache_modes(1))
      res%help = has_word(words, "--help") .or. has_word(words, "-h")
      res%version = has_word(words, "--version")
      if (res%help .or. res%version) return
      if (size(words) < 4) then
         call fail(error, "N1 N2 N3 and local or global must be given; see benchio --help", &
                   status_usage)
         return
      end if
      do at = 1, 3
         call read_size(at, words(at)%value, res%task%sizes(at), error)
         if (allocated(error)) return
      end do
      res%task%is_global = words(4)%value == "global"
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

   !> An option: known, and with a value or without as it has to be.
   subroutine parse_option(word, res, directories, error)
      character(len=*), intent(in) :: word
      type(options_t), intent(inout) :: res
      type(string_t), allocatable, intent(inout) :: directories(:)
      type(error_t), allocatable, intent(out) :: error
      character(len=:), allocatable :: name
      integer :: equals, place

      equals = index(word//"=", "=")
      name = word(:equals - 1)
      place = place_of(name)
      if (place == 0) then
         call refuse(name, error)
      else if (.not. takes_value(options_known(place))) then
         if (equals <= len(word)) then
            call fail(error, name//" takes no value", status_usage)
         else
            call set_switch(name, res)
         end if
      else if (equals >= len(word)) then
         call fail(error, name//" needs a value: "//name//"=...", status_usage)
      else
         res%given = [res%given, place]
         call set_value(name, word(equals + 1:), res, directories, error)
      end if
   end subroutine parse_option

   subroutine set_switch(name, res)
      character(len=*), intent(in) :: name
      type(options_t), intent(inout) :: res

      select case (name)
      case ("--read")
         res%read = .true.
      case ("--verify")
         res%read = .true.
         res%task%verify = .true.
      case ("--no-write")
         res%write = .false.
      case ("--keep")
         res%keep = .true.
      case default ! --require-hints
         res%require_hints = .true.
      end select
   end subroutine set_switch

   subroutine set_value(name, value, res, directories, error)
      character(len=*), intent(in) :: name, value
      type(options_t), intent(inout) :: res
      type(string_t), allocatable, intent(inout) :: directories(:)
      type(error_t), allocatable, intent(out) :: error

      select case (name)
      case ("--directory")
         call append(directories, value)
      case ("--repeats")
         call read_count(name, value, res%repeats, error)
      case ("--min-seconds")
         call read_seconds(name, value, res%min_seconds, error)
      case ("--max-seconds")
         call read_seconds(name, value, res%max_seconds, error)
         if (.not. allocated(error) .and. res%max_seconds <= 0.0_real64) then
            call fail(error, "--max-seconds must be more than 0", status_usage)
         end if
      case ("--min-free")
         call read_bytes(name, value, res%min_free_bytes, error)
      case ("--cache")
         call read_choice(name, value, cache_modes, res%cache, error)
         res%task%direct = res%cache == "direct"
      case ("--decomposition")
         call read_choice(name, value, decompositions, res%task%decomposition, error)
      case ("--writers")
         call read_count(name, value, res%task%writers, error)
      case ("--hint")
         call read_hint(value, res%task%hints, error)
      case ("--result")
         res%result_path = value
      case ("--ranks")
         res%ranks_path = value
      case ("--seed")
         call read_integer(value, res%task%seed, res%seed_given)
         if (.not. res%seed_given) call fail(error, "--seed must be a whole number from 0 to " &
                                             //"2**63 - 1, and not '"//value//"'", status_usage)
      case ("--steps")
         call read_count(name, value, res%task%steps, error)
      case ("--every")
         call read_count(name, value, res%task%every, error)
      case ("--compute")
         call read_seconds(name, value, res%task%compute_seconds, error)
      case ("--record")
         call read_bytes(name, value, res%task%record_bytes, error)
      case ("--files")
         call read_count(name, value, res%task%files, error)
      case ("--layout")
         res%task%layout_path = value
      case ("--stripe-size")
         call read_bytes(name, value, res%task%stripe_bytes, error)
      case default ! --stripe-count
         call read_count(name, value, res%task%stripe_count, error)
      end select
   end subroutine set_value

   !> Fills in what was left out, puts layers and directories in their order,
   !> and refuses what does not go together.
   subroutine settle(res, layers, directories, error)
      type(options_t), intent(inout) :: res
      type(string_t), intent(in) :: layers(:), directories(:)
      type(error_t), allocatable, intent(out) :: error
      type(string_t), allocatable :: known(:)
      character(len=:), allocatable :: name
      integer :: at

      allocate (res%layers(0), res%directories(0))
      allocate (known, source=layer_names())
      do at = 1, size(known)
         if (size(layers) > 0) then
            if (.not. has_word(layers, known(at)%value)) cycle
         else
            if (.not. has_word(default_names(), known(at)%value)) cycle
            if (res%task%writers > 0 .and. .not. can_gather(known(at)%value)) cycle
         end if
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

      do at = 1, size(res%layers)
         if (res%task%writers == 0 .or. can_gather(res%layers(at)%value)) cycle
         call fail(error, "--writers has no meaning for "//res%layers(at)%value, status_usage)
         return
      end do
      call check_meaning(res, error)
      if (allocated(error)) return
      do at = 1, size(res%layers)
         if (.not. (res%keep .and. res%min_seconds > 0.0_real64)) exit
         if (.not. has_table(res%layers(at)%value)) cycle
         ! Which data a file holds goes by the round, and nobody knows the last one.
         call fail(error, "--keep with --min-seconds has no meaning for "//res%layers(at)%value, &
                   status_usage)
         return
      end do
      if (allocated(res%task%layout_path)) call settle_table(res, directories, error)
      if (allocated(error)) return
      if (same_words(res%result_path, res%ranks_path) .or. &
          same_words(res%result_path, res%task%layout_path) .or. &
          same_words(res%ranks_path, res%task%layout_path)) then
         call fail(error, "--result, --ranks and --layout need files of their own", status_usage)
         return
      end if
      if (.not. res%write .and. .not. res%read) then
         call fail(error, "--no-write leaves nothing to do without --read or --verify", &
                   status_usage)
      else if (.not. res%write .and. res%task%verify .and. .not. res%seed_given) then
         call fail(error, "--verify with --no-write needs --seed=N, the seed of the run that " &
                   //"wrote the files", status_usage)
      end if
   end subroutine settle

   pure function same_words(one, other) result(res)
      character(len=:), allocatable, intent(in) :: one, other
      logical :: res

      res = .false.
      if (allocated(one) .and. allocated(other)) res = one == other
   end function same_words

   !> An error for an option that none of the layers looks at.
   subroutine check_meaning(res, error)
      type(options_t), intent(in) :: res
      type(error_t), allocatable, intent(out) :: error
      integer :: at, layer

      options: do at = 1, size(res%given)
         do layer = 1, size(res%layers)
            if (is_for(options_known(res%given(at)), res%layers(layer)%value)) cycle options
         end do
         call fail(error, name_of(options_known(res%given(at)))//" has no meaning for " &
                   //joined(res%layers), status_usage)
         return
      end do options
   end subroutine check_meaning

   !> The files of a table are where it says: there is one run, in no directory.
   subroutine settle_table(res, directories, error)
      type(options_t), intent(inout) :: res
      type(string_t), intent(in) :: directories(:)
      type(error_t), allocatable, intent(out) :: error
      integer :: at

      do at = 1, size(res%layers)
         if (has_table(res%layers(at)%value)) cycle
         call fail(error, "--layout has no meaning for "//res%layers(at)%value, status_usage)
         return
      end do
      if (size(directories) > 0) then
         call fail(error, "the files of --layout are where it says, and not in " &
                   //directories(1)%value, status_usage)
      else if (res%task%files > 1) then
         call fail(error, "--layout says how many files there are, and not --files", status_usage)
      end if
      res%directories = [string_t(".")]
   end subroutine settle_table

   !> An error for a word that means nothing, with the nearest one that does.
   subroutine refuse(word, error)
      character(len=*), intent(in) :: word
      type(error_t), allocatable, intent(out) :: error
      type(string_t), allocatable :: valid(:)
      character(len=:), allocatable :: nearest
      integer :: at

      allocate (valid, source=layer_names())
      do at = 1, size(options_known)
         call append(valid, name_of(options_known(at)))
      end do
      call append(valid, "fsync")
      do at = 1, size(named_directories)
         call append(valid, trim(named_directories(at)))
      end do
      nearest = nearest_word(word, valid)
      if (len(nearest) > 0) nearest = "; did you mean "//nearest//"?"
      call fail(error, "unknown argument '"//word//"'"//nearest, status_usage)
   end subroutine refuse

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
