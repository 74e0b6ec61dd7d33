!> A JSON object as text.
module benchio_json
   use, intrinsic :: iso_fortran_env, only: int64, real64
   use benchio_text, only: to_text
   implicit none(type, external)
   private

   public :: json_object_t, quoted

   !> An object to which members are added one by one.
   type :: json_object_t
      private
      character(len=:), allocatable :: members
   contains
      procedure :: add_text
      procedure :: add_integer
      procedure :: add_real
      procedure :: add_logical
      procedure :: add_null
      procedure :: add_object
      procedure :: complete
   end type json_object_t

contains

   subroutine add_text(self, name, value)
      class(json_object_t), intent(inout) :: self
      character(len=*), intent(in) :: name, value

      call add_raw(self, name, quoted(value))
   end subroutine add_text

   subroutine add_integer(self, name, value)
      class(json_object_t), intent(inout) :: self
      character(len=*), intent(in) :: name
      integer(int64), intent(in) :: value

      call add_raw(self, name, to_text(value))
   end subroutine add_integer

   !> With 17 significant digits, which identify the number exactly.
   subroutine add_real(self, name, value)
      class(json_object_t), intent(inout) :: self
      character(len=*), intent(in) :: name
      real(real64), intent(in) :: value
      character(len=32) :: buffer

      write (buffer, "(es24.16e3)") value
      call add_raw(self, name, trim(adjustl(buffer)))
   end subroutine add_real

   subroutine add_logical(self, name, value)
      class(json_object_t), intent(inout) :: self
      character(len=*), intent(in) :: name
      logical, intent(in) :: value

      call add_raw(self, name, trim(merge("true ", "false", value)))
   end subroutine add_logical

   subroutine add_null(self, name)
      class(json_object_t), intent(inout) :: self
      character(len=*), intent(in) :: name

      call add_raw(self, name, "null")
   end subroutine add_null

   subroutine add_object(self, name, value)
      class(json_object_t), intent(inout) :: self
      character(len=*), intent(in) :: name
      type(json_object_t), intent(in) :: value

      call add_raw(self, name, value%complete())
   end subroutine add_object

   !> The whole object on one line.
   pure function complete(self) result(res)
      class(json_object_t), intent(in) :: self
      character(len=:), allocatable :: res

      res = "{}"
      if (allocated(self%members)) res = "{"//self%members//"}"
   end function complete

   subroutine add_raw(self, name, value)
      class(json_object_t), intent(inout) :: self
      character(len=*), intent(in) :: name, value

      if (allocated(self%members)) then
         self%members = self%members//", "//quoted(name)//": "//value
      else
         self%members = quoted(name)//": "//value
      end if
   end subroutine add_raw

   !> A JSON string. UTF-8 stays UTF-8; any other byte becomes the replacement character.
   pure function quoted(value) result(res)
      character(len=*), intent(in) :: value
      character(len=:), allocatable :: res
      character(len=6) :: code
      integer :: at, bytes

      res = '"'
      at = 1
      do while (at <= len(value))
         bytes = max(1, length_of(value(at:)))
         select case (value(at:at))
         case ('"', "\")
            res = res//"\"//value(at:at)
         case (achar(0):achar(31), achar(127))
            write (code, "('\u', z4.4)") iachar(value(at:at))
            res = res//code
         case default
            if (length_of(value(at:)) > 0) then
               res = res//value(at:at + bytes - 1)
            else
               res = res//"\uFFFD"
            end if
         end select
         at = at + bytes
      end do
      res = res//'"'
   end function quoted

   !> The number of bytes of the UTF-8 character that a text begins with; 0 if it is not valid.
   pure function length_of(text) result(res)
      character(len=*), intent(in) :: text
      integer :: res
      integer :: codes(4), at, least, most

      codes = 0
      do at = 1, min(size(codes), len(text))
         codes(at) = ichar(text(at:at))
      end do
      ! The shortest form only, no surrogates, and nothing above U+10FFFF.
      least = 128
      most = 191
      select case (codes(1))
      case (0:127)
         res = 1
         return
      case (194:223)
         res = 2
      case (224:239)
         res = 3
         if (codes(1) == 224) least = 160
         if (codes(1) == 237) most = 159
      case (240:244)
         res = 4
         if (codes(1) == 240) least = 144
         if (codes(1) == 244) most = 143
      case default
         res = 0
         return
      end select
      if (codes(2) < least .or. codes(2) > most) res = 0
      if (any(codes(3:res) < 128 .or. codes(3:res) > 191)) res = 0
   end function length_of

end module benchio_json
