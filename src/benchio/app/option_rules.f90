!> Checks the parsed options against one another, and fills in defaults. All errors are usage
!> errors.
module benchio_option_rules
   use, intrinsic :: iso_fortran_env, only: real64
   use benchio_errors, only: error_t, fail, status_usage
   use benchio_option_table, only: is_for, name_of, option_t, options_known, place_of
   use benchio_options, only: options_t
   use benchio_registry, only: can_gather, default_names, has_blocks, interface_of, layer_names
   use benchio_text, only: append, has_word, joined, string_t
   implicit none(type, external)
   private

   public :: apply_rules

   !> EPCC's three directories, in the order in which they are used.
   character(len=11), parameter, public :: named_directories(3) = &
                                           [character(len=11) :: "unstriped", "striped", &
                                                                  "fullstriped"]

   !> The interfaces that take no MPI-IO hints.
   character(len=6), parameter :: without_hints(2) = ["posix ", "adios2"]

   !> The options that replace a table of --layout.
   character(len=14), parameter :: options_of_stripes(3) = &
                                   [character(len=14) :: "--files", "--stripe-size", &
                                                          "--stripe-count"]

   character(len=*), parameter :: not_written = " acts on writes: leave out this or --no-write"

contains

   !> Fills in the layers and directories, in the order of the run, from those that the user
   !> named; and rejects options that contradict one another.
   subroutine apply_rules(res, layers, directories, error)
      type(options_t), intent(inout) :: res
      type(string_t), intent(in) :: layers(:), directories(:)
      type(error_t), allocatable, intent(out) :: error

      call choose_layers(res, layers)
      call choose_directories(res, directories)
      call check_layers(res, error)
      if (.not. allocated(error)) call apply_direct(res, error)
      if (.not. allocated(error)) call check_table(res, directories, error)
      if (.not. allocated(error)) call check_actions(res, error)
   end subroutine apply_rules

   subroutine choose_layers(res, named)
      type(options_t), intent(inout) :: res
      type(string_t), intent(in) :: named(:)
      type(string_t), allocatable :: known(:)
      integer :: at

      allocate (res%layers(0))
      allocate (known, source=layer_names())
      do at = 1, size(known)
         if (size(named) > 0) then
            if (.not. has_word(named, known(at)%value)) cycle
         else
            if (.not. has_word(default_names(), known(at)%value)) cycle
            if (res%task%writers > 0 .and. .not. can_gather(known(at)%value)) cycle
         end if
         call append(res%layers, known(at)%value)
      end do
   end subroutine choose_layers

   subroutine choose_directories(res, named)
      type(options_t), intent(inout) :: res
      type(string_t), intent(in) :: named(:)
      character(len=:), allocatable :: name
      integer :: at

      allocate (res%directories(0))
      do at = 1, size(named_directories)
         name = trim(named_directories(at))
         if (size(named) == 0 .or. has_word(named, name)) call append(res%directories, name)
      end do
      do at = 1, size(named)
         name = named(at)%value
         if (.not. has_word(res%directories, name)) call append(res%directories, name)
      end do
   end subroutine choose_directories

   !> An error for an option that could have no effect in this run.
   subroutine check_layers(res, error)
      type(options_t), intent(in) :: res
      type(error_t), allocatable, intent(out) :: error
      character(len=:), allocatable :: reason
      integer :: at, layer

      do layer = 1, size(res%layers)
         associate (name => res%layers(layer)%value)
            if (res%task%writers > 0 .and. .not. can_gather(name)) then
               call fail(error, "--writers does not apply to "//name, status_usage)
               return
            end if
            ! The data of the last repeat depend on its number, which no later run knows.
            if (res%keep .and. res%min_seconds > 0.0_real64 .and. has_table(name)) then
               call fail(error, "--keep with --min-seconds does not apply to "//name, &
                         status_usage)
               return
            end if
         end associate
      end do
      reason = ""
      do at = 1, size(res%given)
         associate (option => options_known(res%given(at)))
            reason = why_idle(option, res)
            if (len(reason) == 0) cycle
            call fail(error, name_of(option)//reason, status_usage)
            return
         end associate
      end do
   end subroutine check_layers

   !> Why an option could have no effect, and what to do; empty if it may have one.
   pure function why_idle(option, asked) result(res)
      type(option_t), intent(in) :: option
      type(options_t), intent(in) :: asked
      character(len=:), allocatable :: res
      integer :: at

      res = ""
      if (.not. any([(concerns(option, asked%layers(at)%value), at=1, size(asked%layers))])) then
         res = " does not apply to "//joined(asked%layers)
         if (option%acts_on == "blocks") res = res//": it acts on the blocks of a 3-D array"
         if (option%acts_on == "MPI-IO") res = res//": it acts on MPI-IO"
         res = res//"; leave it out"
      else if (option%acts_on == "writes" .and. .not. asked%write) then
         res = not_written
      else if (option%acts_on == "reads" .and. .not. asked%read) then
         res = " acts on reads: add --read or --verify, or leave it out"
      else if (option%acts_on == "result" .and. .not. allocated(asked%result_path)) then
         res = " acts on the result file: add --result=FILE, or leave it out"
      end if
   end function why_idle

   !> Whether an option concerns a layer.
   pure function concerns(option, layer) result(res)
      type(option_t), intent(in) :: option
      character(len=*), intent(in) :: layer
      logical :: res

      res = is_for(option, layer)
      if (option%acts_on == "blocks") res = has_blocks(layer)
      if (option%acts_on == "MPI-IO") res = all(interface_of(layer) /= without_hints)
   end function concerns

   !> --direct moves data only between aligned memory and files. It needs POSIX layers and blocks
   !> without a halo, and its reads bypass the page cache.
   subroutine apply_direct(res, error)
      type(options_t), intent(inout) :: res
      type(error_t), allocatable, intent(out) :: error
      integer :: at

      res%task%reads_direct = res%task%direct .or. res%cache == "direct"
      if (.not. res%task%direct) return
      do at = 1, size(res%layers)
         if (interface_of(res%layers(at)%value) == "posix") cycle
         call fail(error, "--direct does not apply to "//res%layers(at)%value//", which calls a " &
                   //"library, not the system", status_usage)
         return
      end do
      if (is_given("--halo") .and. res%task%halo > 0) then
         call fail(error, "--direct needs --halo=0: O_DIRECT moves aligned, contiguous memory", &
                   status_usage)
      else if (is_given("--cache") .and. res%cache /= "direct") then
         call fail(error, "--direct reads past the page cache: --cache="//res%cache//" cannot be " &
                   //"given", status_usage)
      end if
      res%task%halo = 0
      res%cache = "direct"

   contains

      pure function is_given(name) result(given)
         character(len=*), intent(in) :: name
         logical :: given

         given = any(res%given == place_of(name))
      end function is_given

   end subroutine apply_direct

   !> Whether a layer's files can come from a table of stripes.
   pure function has_table(layer) result(res)
      character(len=*), intent(in) :: layer
      logical :: res

      res = is_for(options_known(place_of("--layout")), layer)
   end function has_table

   !> A table of --layout names all files and stripes: it excludes directories and other options
   !> for them.
   subroutine check_table(res, directories, error)
      type(options_t), intent(inout) :: res
      type(string_t), intent(in) :: directories(:)
      type(error_t), allocatable, intent(out) :: error
      integer :: at

      if (.not. allocated(res%task%layout_path)) return
      do at = 1, size(res%layers)
         if (has_table(res%layers(at)%value)) cycle
         call fail(error, "--layout does not apply to "//res%layers(at)%value, status_usage)
         return
      end do
      if (size(directories) > 0) then
         call fail(error, "--layout names the files; a directory such as " &
                   //directories(1)%value//" cannot be given", status_usage)
         return
      end if
      do at = 1, size(res%given)
         associate (option => options_known(res%given(at)))
            if (all(name_of(option) /= options_of_stripes)) cycle
            call fail(error, "--layout defines the files and their stripes; "//name_of(option) &
                      //" cannot be given", status_usage)
         end associate
      end do
      res%directories = [string_t(".")]
   end subroutine check_table

   !> An error if two options name the same file, nothing is left to do, or --verify lacks a seed.
   subroutine check_actions(res, error)
      type(options_t), intent(in) :: res
      type(error_t), allocatable, intent(out) :: error

      if (is_same(res%result_path, res%ranks_path) .or. &
          is_same(res%result_path, res%task%layout_path) .or. &
          is_same(res%ranks_path, res%task%layout_path)) then
         call fail(error, "--result, --ranks and --layout must name different files", &
                   status_usage)
      else if (.not. res%write .and. .not. res%read) then
         call fail(error, "--no-write leaves nothing to do without --read or --verify", &
                   status_usage)
      else if (.not. res%write .and. res%fsync) then
         call fail(error, "fsync"//not_written, status_usage)
      else if (.not. res%write .and. res%task%verify .and. .not. res%seed_given) then
         call fail(error, "--verify with --no-write needs --seed=N, the seed of the run that " &
                   //"wrote the files", status_usage)
      end if
   end subroutine check_actions

   pure function is_same(one, other) result(res)
      character(len=:), allocatable, intent(in) :: one, other
      logical :: res

      res = .false.
      if (allocated(one) .and. allocated(other)) res = one == other
   end function is_same

end module benchio_option_rules
