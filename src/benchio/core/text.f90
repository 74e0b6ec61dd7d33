!> Conversion of numbers to text and back, and lists of words.
module benchio_text
   use, intrinsic :: iso_fortran_env, only: int32, int64, real64
   implicit none(type, external)
   private

   public :: string_t, to_text, decimal, read_integer, append, has_word, nearest_word, joined

   !> A string of any length, so that there can be arrays of them.
   type :: string_t
      character(len=:), allocatable :: value
   end type string_t

   !> An integer as text without blanks.
   interface to_text
      module procedure int32_to_text
      module procedure int64_to_text
   end interface to_text

contains

   pure function int64_to_text(number) result(res)
      integer(int64), intent(in) :: number
      character(len=:), allocatable :: res
      character(len=20) :: buffer

      write (buffer, "(i0)") number
      res = trim(buffer)
   end function int64_to_text

   pure function int32_to_text(number) result(res)
      integer(int32), intent(in) :: number
      character(len=:), allocatable :: res

      res = int64_to_text(int(number, int64))
   end function int32_to_text

   !> A non-negative number in plain decimal notation, with at least six significant
   !> digits and a digit on either side of the point. Parsers of EPCC's benchio fail on,
   !> or misread, an exponent.
   pure function decimal(number) result(res)
      real(real64), intent(in) :: number
      character(len=:), allocatable :: res
      integer, parameter :: significant = 6, longest = 700
      character(len=longest) :: buffer
      character(len=16) :: form
      integer :: places

      places = significant
      if (number > 0.0_real64) then
         places = max(3, significant - 1 - floor(log10(number)))
      end if
      write (form, "('(f0.', i0, ')')") places
      write (buffer, form) number
      res = trim(buffer)
      if (res(1:1) == ".") res = "0"//res
   end function decimal

   !> Reads a non-negative decimal integer. `ok` is false for anything else, such as a
   !> sign, a blank or a number beyond 2**63 - 1. Fortran's own `read` accepts "1,2",
   !> "3*4" and blanks.
   pure subroutine read_integer(word, number, ok)
      character(len=*), intent(in) :: word
      integer(int64), intent(out) :: number
      logical, intent(out) :: ok
      integer(int64) :: digit
      integer :: at

      number = 0_int64
      ok = len(word) > 0 .and. verify(word, "0123456789") == 0
      if (.not. ok) return
      do at = 1, len(word)
         digit = int(iachar(word(at:at)) - iachar("0"), int64)
         ok = number <= (huge(number) - digit)/10_int64
         if (.not. ok) return
         number = 10_int64*number + digit
      end do
   end subroutine read_integer

   !> Adds a word to a list.
   pure subroutine append(words, word)
      type(string_t), allocatable, intent(inout) :: words(:)
      character(len=*), intent(in) :: word

      words = [words, string_t(word)]
   end subroutine append

   !> The word most similar to `word`; empty if no word is similar.
   pure function nearest_word(word, words) result(res)
      character(len=*), intent(in) :: word
      type(string_t), intent(in) :: words(:)
      character(len=:), allocatable :: res
      integer, parameter :: far = 3
      integer :: at, distance, best

      res = ""
      best = far
      do at = 1, size(words)
         distance = edit_distance(word, words(at)%value)
         if (distance >= best .or. distance >= len(words(at)%value)) cycle
         best = distance
         res = words(at)%value
      end do
   end function nearest_word

   !> The Levenshtein distance: letters to insert, delete or replace.
   pure function edit_distance(left, right) result(res)
      character(len=*), intent(in) :: left, right
      integer :: res
      integer :: row(0:len(right)), above_left, above, i, j

      row = [(j, j=0, len(right))]
      do i = 1, len(left)
         above_left = row(0)
         row(0) = i
         do j = 1, len(right)
            above = row(j)
            row(j) = min(above + 1, row(j - 1) + 1, &
                         above_left + merge(0, 1, left(i:i) == right(j:j)))
            above_left = above
         end do
      end do
      res = row(len(right))
   end function edit_distance

   !> Whether a list contains a word; trailing blanks count.
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

   !> The words, separated by blanks.
   pure function joined(words) result(res)
      type(string_t), intent(in) :: words(:)
      character(len=:), allocatable :: res
      integer :: at

      res = ""
      do at = 1, size(words)
         if (at > 1) res = res//" "
         res = res//words(at)%value
      end do
   end function joined

end module benchio_text
