!> Errors as values: a procedure that can fail returns an error, its caller passes it up,
!> and only the main program ends the run.
module benchio_errors
   implicit none(type, external)
   private

   public :: error_t, fail, keep_first

   !> Exit status after a failed call or verification.
   integer, parameter, public :: status_failed = 1
   !> Exit status for an invalid command line.
   integer, parameter, public :: status_usage = 2
   !> Exit status of a run that --max-seconds ended early.
   integer, parameter, public :: status_stopped = 3

   !> An error; unallocated means success.
   type :: error_t
      !> One or more lines for the user.
      character(len=:), allocatable :: text
      !> The exit status that the run ends with.
      integer :: status = status_failed
      !> Whether all processes have this same error.
      logical :: is_shared = .false.
      !> Whether a file is missing, has the wrong size, or has a hole.
      logical :: is_missing = .false., has_other_size = .false., has_hole = .false.
   end type error_t

contains

   !> Sets `error` to one with this text; the default status is `status_failed`.
   pure subroutine fail(error, text, status)
      type(error_t), allocatable, intent(out) :: error
      character(len=*), intent(in) :: text
      integer, intent(in), optional :: status

      allocate (error)
      error%text = text
      if (present(status)) error%status = status
      ! Other errors occur on all processes alike: one command line, and one clock for the limit.
      error%is_shared = error%status /= status_failed
   end subroutine fail

   !> Moves `later` to `first` unless there already is an error: later errors are
   !> often only consequences of the first.
   pure subroutine keep_first(first, later)
      type(error_t), allocatable, intent(inout) :: first, later

      if (.not. allocated(later)) return
      if (allocated(first)) then
         deallocate (later)
      else
         call move_alloc(later, first)
      end if
   end subroutine keep_first

end module benchio_errors
