!> Answers the tests' questions about arithmetic, on arrays far larger than
!> could be written:
!>   value INDEX SEED                       the value of an element
!>   place N1 N2 N3 P1 P2 P3 RANK           of a global array: the index of the
!>                                          first and last element of a block
!>   decimal NUMBER                         a number as it is printed
program probe
   use, intrinsic :: iso_fortran_env, only: int64, real64
   use errors, only: error_t
   use fingerprint, only: mixed_seed, value_at
   use layout, only: layout_t, make_layout
   use text, only: decimal
   implicit none(type, external)

   select case (word(1))
   case ("value")
      write (*, "(i0)") value_at(number(2), mixed_seed(number(3)))
   case ("place")
      call place()
   case ("decimal")
      write (*, "(a)") decimal(real_number(2))
   case default
      error stop "unknown question"
   end select

contains

   subroutine place()
      type(layout_t) :: layout
      type(error_t), allocatable :: error
      integer :: at

      call make_layout([(number(at), at=2, 4)], .true., [(int(number(at)), at=5, 7)], &
                       int(number(8)), layout, error)
      if (allocated(error)) then
         write (*, "(a)") error%text
         return
      end if
      associate (n => layout%block)
         write (*, "(i0, 1x, i0)") layout%global_index(1_int64, 1_int64, 1_int64), &
            layout%global_index(n(1), n(2), n(3))
      end associate
   end subroutine place

   function word(at) result(res)
      integer, intent(in) :: at
      character(len=:), allocatable :: res
      character(len=64) :: buffer

      call get_command_argument(at, buffer)
      res = trim(buffer)
   end function word

   function number(at) result(res)
      integer, intent(in) :: at
      integer(int64) :: res
      character(len=:), allocatable :: digits

      digits = word(at)
      read (unit=digits, fmt=*) res
   end function number

   function real_number(at) result(res)
      integer, intent(in) :: at
      real(real64) :: res
      character(len=:), allocatable :: digits

      digits = word(at)
      read (unit=digits, fmt=*) res
   end function real_number

end program probe
