!> Turns the status of HDF5 calls into errors with the library's text. HDF5's own printing of
!> errors is switched off.
module benchio_hdf5_checks
   use, intrinsic :: iso_c_binding, only: c_f_pointer, c_funloc, c_int, c_loc, c_ptr
   use benchio_c_text, only: from_c
   use benchio_errors, only: error_t, fail
   use benchio_hdf5_api, only: c_H5Ewalk2, hdf5_error_t, last_errors, walk_upward
   use hdf5, only: h5eset_auto_f, h5open_f
   implicit none(type, external)
   private

   public :: start_hdf5, check_hdf5

   ! HDF5 stays open to the end of the run: netCDF may use it too, and it closes
   ! itself in MPI_Finalize.
   logical :: has_started = .false.

   ! The error stack as text, from the innermost call on.
   type :: stack_text_t
      character(len=:), allocatable :: text
      integer :: entries = 0
   end type stack_text_t

   ! Two, because the innermost entry may be only the text of an MPI error.
   integer, parameter :: most_entries = 2

contains

   !> Initialises the library on the first call.
   subroutine start_hdf5(error)
      type(error_t), allocatable, intent(out) :: error
      integer :: ierr

      if (has_started) return
      call h5open_f(ierr)
      call check_hdf5(ierr, "H5open", error)
      if (allocated(error)) return
      has_started = .true.
      call h5eset_auto_f(0, ierr)
      call check_hdf5(ierr, "H5Eset_auto", error)
   end subroutine start_hdf5

   !> Turns the status of an HDF5 call into an error, unless there already is one. Must
   !> directly follow the call, since the next one clears the library's error stack.
   subroutine check_hdf5(status, what, error)
      integer, intent(in) :: status
      character(len=*), intent(in) :: what
      type(error_t), allocatable, intent(inout) :: error

      if (status >= 0 .or. allocated(error)) return
      call fail(error, what//" failed: "//hdf5_text())
   end subroutine check_hdf5

   !> The library's text for the error of its last call.
   function hdf5_text() result(res)
      character(len=:), allocatable :: res
      type(stack_text_t), target :: stack

      res = "HDF5 gives no reason"
      if (c_H5Ewalk2(last_errors, walk_upward, c_funloc(add_entry), c_loc(stack)) < 0) return
      if (stack%entries > 0) res = stack%text
   end function hdf5_text

   !> Called by the library for each entry of its error stack.
   function add_entry(number, entry, data) bind(c) result(res)
      integer(c_int), intent(in), value :: number
      type(hdf5_error_t), intent(in) :: entry
      type(c_ptr), intent(in), value :: data
      integer(c_int) :: res
      type(stack_text_t), pointer :: stack

      res = 0_c_int
      if (number >= most_entries) return
      call c_f_pointer(data, stack)
      if (stack%entries == 0) then
         stack%text = from_c(entry%description)
      else
         stack%text = from_c(entry%description)//": "//stack%text
      end if
      stack%entries = stack%entries + 1
   end function add_entry

end module benchio_hdf5_checks
