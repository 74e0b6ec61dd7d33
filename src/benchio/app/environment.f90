!> Environment variables of the processes of a run.
module benchio_environment
   use benchio_errors, only: error_t, keep_first
   use benchio_task, only: hint_t
   use benchio_team, only: team_t
   implicit none(type, external)
   private

   public :: variable, fill_values

contains

   !> The value of a variable; empty if it is not set.
   function variable(name) result(res)
      character(len=*), intent(in) :: name
      character(len=:), allocatable :: res
      integer :: length, status

      call get_environment_variable(name, length=length, status=status)
      if (status /= 0) length = 0
      allocate (character(len=length) :: res)
      if (length > 0) call get_environment_variable(name, res)
   end function variable

   !> Fills in the value of each variable, and drops duplicates and variables that are unset or
   !> differ between processes; collective.
   subroutine fill_values(team, variables, error)
      type(team_t), intent(in) :: team
      type(hint_t), allocatable, intent(inout) :: variables(:)
      type(error_t), allocatable, intent(out) :: error
      type(error_t), allocatable :: trouble
      type(hint_t), allocatable :: found(:)
      character(len=:), allocatable :: name, mine, first
      logical :: is_same
      integer :: at, other

      allocate (found(0))
      do at = 1, size(variables)
         name = variables(at)%key
         if (any([(found(other)%key == name, other=1, size(found))])) cycle
         mine = variable(name)
         first = mine
         call team%share_text(first, 0, error)
         call team%all_of(len(first) > 0 .and. len(mine) == len(first) .and. mine == first, &
                          is_same, trouble)
         call keep_first(error, trouble)
         if (allocated(error)) return
         if (is_same) found = [found, hint_t(key=name, value=mine)]
      end do
      call move_alloc(found, variables)
   end subroutine fill_values

end module benchio_environment
