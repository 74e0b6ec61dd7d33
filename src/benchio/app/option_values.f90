!> Parses the values of options: numbers, sizes, seconds and choices. Errors name the option,
!> the values that it takes, and the one given.
module benchio_option_values
   use, intrinsic :: iso_fortran_env, only: int64, real64
   use benchio_errors, only: error_t, fail, status_usage
   use benchio_task, only: hint_t
   use benchio_text, only: read_integer, to_text
   implicit none(type, external)
   private

   public :: read_count, read_bytes, read_seconds, read_choice, read_hint

   ! Three years: longer than any run, and far from overflow.
   real(real64), parameter :: most_seconds = 1.0e8_real64

contains

   !> A whole number from `least` on, or from 1.
   subroutine read_count(name, value, res, error, least)
      character(len=*), intent(in) :: name, value
      integer, intent(out) :: res
      type(error_t), allocatable, intent(out) :: error
      integer, intent(in), optional :: least
      integer(int64) :: number
      logical :: ok

      res = 1
      if (present(least)) res = least
      call read_integer(value, number, ok)
      if (ok) ok = number >= res .and. number <= huge(res)
      if (ok) then
         res = int(number)
      else
         call fail(error, name//" must be a whole number from "//to_text(res)//" to " &
                   //to_text(huge(res))//", not '"//value//"'", status_usage)
      end if
   end subroutine read_count

   !> A positive number of bytes, in units of 1024**n if a letter follows it.
   subroutine read_bytes(name, value, res, error)
      character(len=*), intent(in) :: name, value
      integer(int64), intent(out) :: res
      type(error_t), allocatable, intent(out) :: error
      character(len=*), parameter :: letters = "KMGT"
      integer(int64) :: number
      integer :: digits, power
      logical :: ok

      res = 1_int64
      digits = len(value)
      power = 0
      if (digits > 1) power = index(letters, value(digits:digits))
      if (power > 0) digits = digits - 1
      call read_integer(value(:digits), number, ok)
      if (ok) ok = number > 0 .and. number <= shiftr(huge(number), 10*power)
      if (ok) then
         res = shiftl(number, 10*power)
      else
         call fail(error, name//" must be a number of bytes such as 47008, 64K, 1M or 2G, " &
                   //"not '"//value//"'", status_usage)
      end if
   end subroutine read_bytes

   !> Seconds from 0 on, in plain decimal notation.
   subroutine read_seconds(name, value, res, error)
      character(len=*), intent(in) :: name, value
      real(real64), intent(out) :: res
      type(error_t), allocatable, intent(out) :: error
      integer :: status

      res = 0.0_real64
      status = 1
      if (verify(value, "0123456789.") == 0 .and. scan(value, "0123456789") > 0) then
         read (unit=value, fmt=*, iostat=status) res
      end if
      if (status == 0 .and. res > most_seconds) status = 1
      if (status /= 0) call fail(error, name//" must be a number of seconds such as 2 or 0.5, " &
                                 //"not '"//value//"'", status_usage)
   end subroutine read_seconds

   !> One of the words in `choices`.
   subroutine read_choice(name, value, choices, res, error)
      character(len=*), intent(in) :: name, value, choices(:)
      character(len=:), allocatable, intent(inout) :: res
      type(error_t), allocatable, intent(out) :: error
      character(len=:), allocatable :: list
      integer :: at

      list = ""
      do at = 1, size(choices)
         if (choices(at) == value .and. len_trim(choices(at)) == len(value)) then
            res = value
            return
         end if
         if (at > 1) list = list//trim(merge(" or", ",  ", at == size(choices)))//" "
         list = list//trim(choices(at))
      end do
      call fail(error, name//" must be "//list//", not '"//value//"'", status_usage)
   end subroutine read_choice

   subroutine read_hint(value, hints, error)
      character(len=*), intent(in) :: value
      type(hint_t), allocatable, intent(inout) :: hints(:)
      type(error_t), allocatable, intent(out) :: error
      integer :: equals

      equals = index(value, "=")
      ! Hints that a library reports are parsed line by line, so tabs and newlines are excluded.
      if (equals > 1 .and. equals < len(value) .and. scan(value, achar(9)//achar(10)) == 0) then
         hints = [hints, hint_t(key=value(:equals - 1), value=value(equals + 1:))]
      else
         call fail(error, "--hint must be --hint=KEY=VALUE, not '--hint="//value//"'", &
                   status_usage)
      end if
   end subroutine read_hint

end module benchio_option_values
