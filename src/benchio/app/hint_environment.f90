!> MPI-IO hints from the environment: the file that ROMIO_HINTS names, and MPICH_MPIIO_HINTS of
!> Cray's MPI. benchio passes the latter to any library.
module benchio_hint_environment
   use benchio_environment, only: variable
   use benchio_errors, only: error_t, fail
   use benchio_task, only: hint_t
   use benchio_text_file, only: read_text
   implicit none(type, external)
   private

   public :: add_hints_of_environment

   character(len=*), parameter :: blanks = " "//achar(9)//achar(13)

contains

   !> Adds the environment's hints to the command line's. As in the libraries, the
   !> command line has precedence over ROMIO_HINTS, and MPICH_MPIIO_HINTS over the command
   !> line.
   subroutine add_hints_of_environment(hints, error)
      type(hint_t), allocatable, intent(inout) :: hints(:)
      type(error_t), allocatable, intent(out) :: error
      type(hint_t), allocatable :: under(:), over(:)

      allocate (under(0), over(0))
      call read_romio_file(variable("ROMIO_HINTS"), under, error)
      if (allocated(error)) return
      call parse_mpich(variable("MPICH_MPIIO_HINTS"), over, error)
      if (allocated(error)) return
      ! Of hints with the same key, MPI keeps the last one.
      hints = [without(under, hints), hints]
      hints = [without(hints, over), over]
   end subroutine add_hints_of_environment

   !> The `hints` whose key does not occur among the `others` that apply to all paths.
   pure function without(hints, others) result(res)
      type(hint_t), intent(in) :: hints(:), others(:)
      type(hint_t), allocatable :: res(:)
      logical :: keep(size(hints))
      integer :: at, other

      keep = .true.
      do at = 1, size(hints)
         do other = 1, size(others)
            if (allocated(others(other)%files)) then
               if (others(other)%files /= "*") cycle
            end if
            if (hints(at)%key == others(other)%key) keep(at) = .false.
         end do
      end do
      allocate (res, source=pack(hints, keep))
   end function without

   !> Reads lines with a key and a value, separated by blanks; a line that begins with `#` is a
   !> comment.
   subroutine read_romio_file(path, hints, error)
      character(len=*), intent(in) :: path
      type(hint_t), allocatable, intent(inout) :: hints(:)
      type(error_t), allocatable, intent(out) :: error
      character(len=:), allocatable :: text, line, rest
      integer :: first, last, cut

      if (len(path) == 0) return
      call read_text(path, text, error)
      if (allocated(error)) then
         error%text = "ROMIO_HINTS: "//path//" cannot be read: "//error%text
         return
      end if
      first = 1
      do while (first <= len(text))
         last = first + index(text(first:)//new_line("a"), new_line("a")) - 2
         line = without_blanks(text(first:last))
         first = last + 2
         if (line == "") cycle
         if (line(1:1) == "#") cycle
         cut = scan(line, blanks)
         if (cut == 0) then
            call fail(error, "ROMIO_HINTS: "//path//" has a line without a value: "//line)
            return
         end if
         rest = without_blanks(line(cut:))
         if (scan(rest, blanks) > 0) then
            call fail(error, "ROMIO_HINTS: "//path//" has a line with more than a key and a " &
                      //"value: "//line)
            return
         end if
         hints = [hints, hint_t(key=line(:cut - 1), value=rest, is_in_file=.true.)]
      end do
   end subroutine read_romio_file

   !> A text without leading and trailing blanks, tabs and carriage returns.
   pure function without_blanks(text) result(res)
      character(len=*), intent(in) :: text
      character(len=:), allocatable :: res

      res = text(verify(text//"x", blanks):)
      res = res(:verify(res, blanks, back=.true.))
   end function without_blanks

   !> Parses `PATTERN:KEY=VALUE:KEY=VALUE,PATTERN:...`
   subroutine parse_mpich(text, hints, error)
      character(len=*), intent(in) :: text
      type(hint_t), allocatable, intent(inout) :: hints(:)
      type(error_t), allocatable, intent(out) :: error
      integer :: start, comma

      start = 1
      do while (start <= len(text) .and. .not. allocated(error))
         comma = index(text(start:)//",", ",")
         call parse_group(text(start:start + comma - 2), hints, error)
         start = start + comma
      end do
   end subroutine parse_mpich

   subroutine parse_group(group, hints, error)
      character(len=*), intent(in) :: group
      type(hint_t), allocatable, intent(inout) :: hints(:)
      type(error_t), allocatable, intent(out) :: error
      type(hint_t) :: hint
      integer :: start, colon, equals

      start = index(group, ":") + 1
      if (start <= 2 .or. start > len(group)) then
         call reject(group, error)
         return
      end if
      hint%files = group(:start - 2)
      do while (start <= len(group))
         colon = index(group(start:)//":", ":")
         associate (pair => group(start:start + colon - 2))
            equals = index(pair, "=")
            if (equals < 2 .or. equals == len(pair)) then
               call reject(pair, error)
               return
            end if
            hint%key = pair(:equals - 1)
            hint%value = pair(equals + 1:)
         end associate
         hints = [hints, hint]
         start = start + colon
      end do
   end subroutine parse_group

   subroutine reject(part, error)
      character(len=*), intent(in) :: part
      type(error_t), allocatable, intent(out) :: error

      call fail(error, "MPICH_MPIIO_HINTS must be PATTERN:KEY=VALUE[:KEY=VALUE...][,PATTERN:...]" &
                //", but has '"//part//"'")
   end subroutine reject

end module benchio_hint_environment
