!> The placeholder in the registry for a layer that was not compiled in.
module benchio_absent
   implicit none(type, external)
   private

   public :: absent_t

   !> Has the components that the rows of the registry set.
   type :: absent_t
      logical :: collective = .true., blocking = .true.
      character(len=7) :: file_of = ""
   end type absent_t

end module benchio_absent
