!> Parses the command line. It rejects unknown arguments anywhere, with the most similar
!> known one.
module benchio_command_line
   use, intrinsic :: iso_fortran_env, only: int64, real64
   use benchio_decomposition, only: decompositions
   use benchio_errors, only: error_t, fail, status_usage
   use benchio_option_rules, only: apply_rules, named_directories
   use benchio_option_table, only: name_of, options_known, place_of, takes_value
   use benchio_option_values, only: read_bytes, read_choice, read_count, read_hint, read_seconds
   use benchio_options, only: cache_modes, options_t
   use benchio_registry, only: absent_names, layer_names
   use benchio_task, only: hint_t
   use benchio_text, only: append, has_word, joined, nearest_word, read_integer, string_t, to_text
   implicit none(type, external)
   private

   public :: parse, command_words

contains

   !> The arguments of the program.
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

   !> Parses the arguments. All errors are usage errors.
   subroutine parse(words, res, error)
      type(string_t), intent(in) :: words(:)
      type(options_t), intent(out) :: res
      type(error_t), allocatable, intent(out) :: error
      type(string_t), allocatable :: layers(:), directories(:)
      integer :: at

      allocate (res%task%hints(0), res%task%environment(0), res%given(0), layers(0), directories(0))
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
         call fail(error, "the fourth argument must be local or global, not '" &
                   //words(4)%value//"'", status_usage)
         return
      end if
      do at = 5, size(words)
         call parse_word(words(at)%value, res, layers, directories, error)
         if (allocated(error)) return
      end do
      call apply_rules(res, layers, directories, error)
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
                //"not '"//word//"'", status_usage)
   end subroutine read_size

   !> Parses an argument after the four mandatory ones.
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

   !> Parses an option: it must be known, and have a value if and only if it takes one.
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
         return
      end if
      res%given = [res%given, place]
      if (.not. takes_value(options_known(place))) then
         if (equals <= len(word)) then
            call fail(error, name//" takes no value", status_usage)
         else
            call set_switch(name, res, error)
         end if
      else if (equals >= len(word)) then
         call fail(error, name//" needs a value: "//name//"=...", status_usage)
      else
         call set_value(name, word(equals + 1:), res, directories, error)
      end if
   end subroutine parse_option

   subroutine set_switch(name, res, error)
      character(len=*), intent(in) :: name
      type(options_t), intent(inout) :: res
      type(error_t), allocatable, intent(out) :: error

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
      case ("--direct")
         res%task%direct = .true.
      case ("--latency")
         res%task%latency = .true.
      case ("--exchange")
         res%task%exchanges = .true.
      case ("--require-hints")
         res%require_hints = .true.
      case default
         call fail(error, name//" is in the table of options, but has no meaning", status_usage)
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
      case ("--decomposition")
         call read_choice(name, value, decompositions, res%task%decomposition, error)
      case ("--halo")
         call read_count(name, value, res%task%halo, error, least=0)
      case ("--writers")
         call read_count(name, value, res%task%writers, error)
      case ("--hint")
         call read_hint(value, res%task%hints, error)
      case ("--environment")
         res%task%environment = [res%task%environment, hint_t(key=value, value="")]
      case ("--result")
         res%result_path = value
      case ("--ranks")
         res%ranks_path = value
      case ("--seed")
         call read_integer(value, res%task%seed, res%seed_given)
         if (.not. res%seed_given) call fail(error, "--seed must be a whole number from 0 to " &
                                             //"2**63 - 1, not '"//value//"'", status_usage)
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
      case ("--stripe-count")
         call read_count(name, value, res%task%stripe_count, error)
      case default
         call fail(error, name//" is in the table of options, but has no meaning", status_usage)
      end select
   end subroutine set_value

   !> The error for an unknown argument, with the most similar known one.
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

   !> Whether an argument, or the name of an option, ends in a blank, which Fortran's
   !> comparisons ignore.
   pure function ends_in_blank(word) result(res)
      character(len=*), intent(in) :: word
      logical :: res
      integer :: last

      last = len(word)
      if (index(word, "--") == 1 .and. index(word, "=") > 0) last = index(word, "=") - 1
      res = last > 0
      if (res) res = word(last:last) == " "
   end function ends_in_blank

end module benchio_command_line
