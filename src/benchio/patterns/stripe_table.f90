!> The stripes of files and their targets: from a table of existing files, or assumed. A line
!> of a table is `path stripe_size target target ...`: the stripes of the file are on its
!> targets round robin. Empty lines and lines that begin with # are ignored. A target is the
!> number of a storage target, such as Lustre's OST.
module benchio_stripe_table
   use, intrinsic :: iso_fortran_env, only: int64
   use benchio_errors, only: error_t, fail, status_usage
   use benchio_file_names, only: path_in
   use benchio_fingerprint, only: value_at
   use benchio_sorting, only: order_of
   use benchio_text, only: read_integer, to_text
   implicit none(type, external)
   private

   public :: striped_file_t, parse_table, assume_table, divide_data

   character(len=*), parameter :: blanks = " "//achar(9)//achar(13)

   type :: striped_file_t
      character(len=:), allocatable :: path
      !> The line of the table.
      integer :: line = 0
      !> The stripe size in bytes, and the targets in the order of the stripes.
      integer(int64) :: stripe_bytes = 0_int64
      integer, allocatable :: targets(:)
      !> Bytes of data, their offset in all data, and the number of stripes in the files
      !> before this one.
      integer(int64) :: bytes = 0_int64, start = 0_int64, stripes_before = 0_int64
   contains
      procedure :: stripes
   end type striped_file_t

contains

   !> The number of stripes of the file; the last one may be shorter.
   pure function stripes(self) result(res)
      class(striped_file_t), intent(in) :: self
      integer(int64) :: res

      res = (self%bytes - 1)/self%stripe_bytes + 1
      if (self%bytes == 0_int64) res = 0_int64
   end function stripes

   !> Parses a table. `name` is the table's path, for errors.
   pure subroutine parse_table(name, text, files, error)
      character(len=*), intent(in) :: name, text
      type(striped_file_t), allocatable, intent(out) :: files(:)
      type(error_t), allocatable, intent(out) :: error
      integer :: count, pass, line, first, last, place

      do pass = 1, 2
         count = 0
         line = 0
         first = 1
         do while (first <= len(text))
            last = first + index(text(first:)//new_line("a"), new_line("a")) - 2
            line = line + 1
            place = verify(text(first:last), blanks)
            if (place > 0) then
               if (text(first + place - 1:first + place - 1) == "#") place = 0
            end if
            if (place > 0) then
               count = count + 1
               if (pass == 2) then
                  call parse_line(text(first:last), files(count), error)
                  files(count)%line = line
                  if (allocated(error)) then
                     error%text = name//", line "//to_text(line)//": "//error%text
                     return
                  end if
               end if
            end if
            first = last + 2
         end do
         if (pass == 1) allocate (files(count))
      end do
      if (count == 0) then
         call fail(error, name//" lists no file", status_usage)
      else
         call check_once(name, files, error)
      end if
   end subroutine parse_table

   pure subroutine parse_line(line, file, error)
      character(len=*), intent(in) :: line
      type(striped_file_t), intent(out) :: file
      type(error_t), allocatable, intent(out) :: error
      integer(int64) :: number
      integer :: count, at, first, last
      logical :: ok

      call next_word(line, 1, first, last)
      file%path = line(first:last)
      call next_word(line, last + 1, first, last)
      call read_integer(line(first:last), file%stripe_bytes, ok)
      if (ok) ok = file%stripe_bytes > 0
      if (.not. ok) then
         call fail(error, "the stripe size must be a number of bytes from 1 on, not '" &
                   //line(first:last)//"'", status_usage)
         return
      end if
      count = word_count(line(last + 1:))
      if (count == 0) then
         call fail(error, "the number of a target must follow the stripe size", status_usage)
         return
      end if
      allocate (file%targets(count))
      do at = 1, count
         call next_word(line, last + 1, first, last)
         call read_integer(line(first:last), number, ok)
         if (ok) ok = number <= huge(count)
         if (.not. ok) then
            call fail(error, "a target must be a whole number from 0 to "//to_text(huge(count)) &
                      //", not '"//line(first:last)//"'", status_usage)
            return
         end if
         file%targets(at) = int(number)
      end do
   end subroutine parse_line

   !> The bounds of the next word from `from` on; the bounds of an empty text if there is no word.
   pure subroutine next_word(line, from, first, last)
      character(len=*), intent(in) :: line
      integer, intent(in) :: from
      integer, intent(out) :: first, last
      integer :: length

      first = verify(line(from:), blanks) + from - 1
      if (first < from) then
         first = len(line) + 1
         last = len(line)
         return
      end if
      length = scan(line(first:), blanks) - 1
      if (length < 0) length = len(line) - first + 1
      last = first + length - 1
   end subroutine next_word

   pure function word_count(line) result(res)
      character(len=*), intent(in) :: line
      integer :: res
      integer :: first, last

      res = 0
      last = 0
      do
         call next_word(line, last + 1, first, last)
         if (last < first) return
         res = res + 1
      end do
   end function word_count

   !> An error if two lines have the same path. The paths are sorted by a hash, so that only
   !> those with the same hash are compared.
   pure subroutine check_once(name, files, error)
      character(len=*), intent(in) :: name
      type(striped_file_t), intent(in) :: files(:)
      type(error_t), allocatable, intent(out) :: error
      integer(int64) :: hashes(size(files)), order(size(files))
      integer :: at, other

      do at = 1, size(files)
         hashes(at) = hash_of(files(at)%path)
      end do
      order = order_of(hashes)
      do at = 2, size(files)
         other = at - 1
         do while (other > 0)
            if (hashes(order(other)) /= hashes(order(at))) exit
            if (files(order(other))%path == files(order(at))%path) then
               call fail(error, name//", line "//to_text(files(order(at))%line)//": " &
                         //files(order(at))%path//" is already on line " &
                         //to_text(files(order(other))%line), status_usage)
               return
            end if
            other = other - 1
         end do
      end do
   end subroutine check_once

   pure function hash_of(path) result(res)
      character(len=*), intent(in) :: path
      integer(int64) :: res
      integer :: at

      res = 0_int64
      do at = 1, len(path)
         res = value_at(res, int(iachar(path(at:at)), int64))
      end do
   end function hash_of

   !> The files of a layer without a table. The first target of each file is the successor
   !> of the previous file's.
   pure subroutine assume_table(directory, layer, count, stripe_bytes, targets, files)
      character(len=*), intent(in) :: directory, layer
      integer, intent(in) :: count, targets
      integer(int64), intent(in) :: stripe_bytes
      type(striped_file_t), allocatable, intent(out) :: files(:)
      integer :: at, target

      allocate (files(count))
      do at = 1, count
         if (count == 1) then
            files(at)%path = path_in(directory, layer)
         else
            files(at)%path = path_in(directory, layer, at - 1)
         end if
         files(at)%stripe_bytes = stripe_bytes
         files(at)%targets = [(mod(mod(at - 1, targets) + target, targets), target=0, targets - 1)]
      end do
   end subroutine assume_table

   !> Divides elements of 8 bytes among the files, as evenly as possible; the first files
   !> get one more.
   pure subroutine divide_data(elements, files, error)
      integer(int64), intent(in) :: elements
      type(striped_file_t), intent(inout) :: files(:)
      type(error_t), allocatable, intent(out) :: error
      integer(int64) :: start, before, count
      integer :: at

      count = size(files, kind=int64)
      if (elements < count) then
         call fail(error, to_text(elements)//" elements cannot be divided among " &
                   //to_text(count)//" files", status_usage)
         return
      end if
      start = 0_int64
      before = 0_int64
      do at = 1, size(files)
         associate (file => files(at))
            file%bytes = 8_int64*(elements/count + merge(1, 0, at <= mod(elements, count)))
            file%start = start
            file%stripes_before = before
            start = start + file%bytes
            before = before + file%stripes()
         end associate
      end do
   end subroutine divide_data

end module benchio_stripe_table
