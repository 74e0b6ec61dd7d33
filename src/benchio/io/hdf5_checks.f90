!> The status of HDF5's calls as errors, with the library's own text. HDF5 prints
!> its errors itself unless it is told not to.
module hdf5_checks
   use, intrinsic :: iso_c_binding, only: c_f_pointer, c_funloc, c_int, c_loc, c_ptr
   use c_text, only: from_c
   use errors, only: error_t, fail
   use hdf5, only: h5eset_auto_f, h5open_f
   use hdf5_api, only: c_H5Ewalk2, hdf5_error_t, last_errors, walk_upward
   implicit none(type, external)
   private

   public :: start_hdf5, check_hdf5

   ! HDF5 stays open to the end of the run: netCDF may use it too, and it closes
   ! itself in MPI_Finalize.
   logical :: has_started = .false.

   ! The calls that failed within a call, from the innermost on.
   type :: story_t
      character(len=:), allocatable :: text
      integer :: entries = 0
   end type story_t

   ! The innermost call alone may only be the text of an MPI error.
   integer, parameter :: entries_told = 2

contains

   !> Readies the library, where that was not done before.
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

   !> Makes an error of the status of an HDF5 call; directly behind the call, since
   !> the next one clears what the library knows of it.
   subroutine check_hdf5(status, what, error)
      integer, intent(in) :: status
      character(len=*), intent(in) :: what
      type(error_t), allocatable, intent(out) :: error

      if (status < 0) call fail(error, what//" failed: "//hdf5_text())
   end subroutine check_hdf5

   !> What the library says of its last call.
   function hdf5_text() result(res)
      character(len=:), allocatable :: res
      type(story_t), target :: story

      res = "HDF5 gives no reason"
      if (c_H5Ewalk2(last_errors, walk_upward, c_funloc(add_to_story), c_loc(story)) < 0) return
      if (story%entries > 0) res = story%text
   end function hdf5_text

   !> Called by the library for each entry of its stack of errors.
   function add_to_story(number, entry, data) bind(c) result(res)
      integer(c_int), intent(in), value :: number
      type(hdf5_error_t), intent(in) :: entry
      type(c_ptr), intent(in), value :: data
      integer(c_int) :: res
      type(story_t), pointer :: story

      res = 0_c_int
      if (number >= entries_told) return
      call c_f_pointer(data, story)
      if (story%entries == 0) then
         story%text = from_c(entry%description)
      else
         story%text = from_c(entry%description)//": "//story%text
      end if
      story%entries = story%entries + 1
   end function add_to_story

end module hdf5_checks
