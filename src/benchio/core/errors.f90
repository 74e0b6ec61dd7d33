!> Errors as values: a procedure that can fail returns one, its caller hands
!> it on, and the main program alone stops. Knows nothing of MPI or of files.
module errors
   implicit none(type, external)
   private

   public :: error_t, fail, keep_first

   !> Exit status of a run in which a call or a verification failed.
   integer, parameter, public :: status_failed = 1
   !> Exit status of a command line that makes no sense.
   integer, parameter, public :: status_usage = 2

   !> Exit status of a run that ended before it had measured all that was asked.
   integer, parameter, public :: status_stopped = 3

   !> What went wrong. An unallocated error means that nothing did.
   type :: error_t
      !> One or more lines for the person who started the run.
      character(len=:), allocatable :: text
      !> The exit status that the run is to end with.
      integer :: status = status_failed
      !> Whether all processes have this same error.
      logical :: is_shared = .false.
   end type error_t

contains

   !> Sets `error` to one with this text; the status is `status_failed` when
   !> none is given.
   pure subroutine fail(error, text, status)
      type(error_t), allocatable, intent(out) :: error
      character(len=*), intent(in) :: text
      integer, intent(in), optional :: status

      allocate (error)
      error%text = text
      if (present(status)) error%status = status
      ! All read the same command line, and have one clock.
      error%is_shared = error%status /= status_failed
   end subroutine fail

   !> Moves `later` to `first` unless there was an error before it: what
   !> follows an error is often only its consequence.
   pure subroutine keep_first(first, later)
      type(error_t), allocatable, intent(inout) :: first, later

      if (.not. allocated(later)) return
      if (allocated(first)) then
         deallocate (later)
      else
         call move_alloc(later, first)
      end if
   end subroutine keep_first

end module errors
