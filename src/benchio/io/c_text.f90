!> C strings as Fortran strings.
module benchio_c_text
   use, intrinsic :: iso_c_binding, only: c_associated, c_char, c_f_pointer, c_ptr
   use benchio_posix_api, only: c_strlen
   implicit none(type, external)
   private

   public :: from_c

contains

   !> The text of a C string; empty for a null pointer.
   function from_c(string) result(res)
      type(c_ptr), intent(in) :: string
      character(len=:), allocatable :: res
      character(kind=c_char), pointer :: letters(:)
      integer :: at

      res = ""
      if (.not. c_associated(string)) return
      call c_f_pointer(string, letters, [c_strlen(string)])
      res = repeat(" ", size(letters))
      do at = 1, size(letters)
         res(at:at) = letters(at)
      end do
   end function from_c

end module benchio_c_text
