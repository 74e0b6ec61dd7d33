!> The names of the layers' files.
module benchio_file_names
   implicit none(type, external)
   private

   public :: path_in

contains

   !> The path of a layer's file; with a `number` if the layer has several.
   pure function path_in(directory, layer, number) result(res)
      character(len=*), intent(in) :: directory, layer
      integer, intent(in), optional :: number
      character(len=:), allocatable :: res
      character(len=12) :: digits

      digits = ""
      if (present(number)) write (digits, "(i0.6)") number
      res = directory
      if (res(len(res):) /= "/") res = res//"/"
      res = res//layer//trim(digits)//".dat"
   end function path_in

end module benchio_file_names
