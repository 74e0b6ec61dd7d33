!> The calls that move a phase's data to or from files: what O_DIRECT demands of them, and how
!> long they took.
module io_calls
   use, intrinsic :: iso_c_binding, only: c_intptr_t, c_ptr
   use, intrinsic :: iso_fortran_env, only: int64
   use call_times, only: call_times_t
   use errors, only: error_t, fail
   use posix_api, only: iovec_t
   use text, only: to_text
   implicit none(type, external)
   private

   public :: io_calls_t

   type :: io_calls_t
      type(call_times_t) :: times
      !> The bytes of which O_DIRECT needs a multiple; 0 for files that are open without it.
      integer(int64) :: alignment = 0_int64
   contains
      procedure :: check_aligned
   end type io_calls_t

contains

   !> An error if O_DIRECT cannot move these vectors. Asked before the call: some systems then
   !> use the page cache after all.
   subroutine check_aligned(self, path, vectors, offset, error)
      class(io_calls_t), intent(in) :: self
      character(len=*), intent(in) :: path
      type(iovec_t), intent(in) :: vectors(:)
      integer(int64), intent(in) :: offset
      type(error_t), allocatable, intent(out) :: error
      integer(int64) :: at

      if (self%alignment <= 1_int64) return
      do at = 1_int64, size(vectors, kind=int64)
         if (is_multiple(offset) .and. is_multiple(int(vectors(at)%length, int64)) &
             .and. is_multiple(address_of(vectors(at)%base))) cycle
         call fail(error, "O_DIRECT is not possible for "//path//": it moves multiples of " &
                   //to_text(self%alignment)//" bytes, and not " &
                   //to_text(int(vectors(at)%length, int64))//" bytes at byte "//to_text(offset) &
                   //"; choose other sizes, or leave --direct out")
         return
      end do

   contains

      pure function is_multiple(bytes) result(res)
         integer(int64), intent(in) :: bytes
         logical :: res

         res = mod(bytes, self%alignment) == 0_int64
      end function is_multiple

   end subroutine check_aligned

   function address_of(memory) result(res)
      type(c_ptr), intent(in) :: memory
      integer(int64) :: res

      res = int(transfer(memory, 0_c_intptr_t), int64)
   end function address_of

end module io_calls
