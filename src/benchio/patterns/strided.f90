!> What the layers of the pattern strided have in common: one shared file of records
!> of any length, dealt to the processes in turn, as IOR's segments with a block of
!> one transfer. Of segment s, process r has the record s*processes + r.
!>
!> A record is a row of the array, N1 elements, or of as many bytes as asked. Each
!> process has N2*N3 records; where the sizes are global there are N2*N3 in all.
module strided
   use, intrinsic :: iso_fortran_env, only: int64
   use backend, only: path_in
   use errors, only: error_t, fail, status_usage
   use layout, only: element_bytes
   use piece_backend, only: piece_backend_t, piece_t
   use task, only: task_t
   use team, only: team_t
   use text, only: to_text
   use volume, only: multiply
   implicit none(type, external)
   private

   public :: strided_t

   type, abstract, extends(piece_backend_t) :: strided_t
      !> Which process this is, and how many there are.
      integer(int64), private :: member = 0_int64, members = 1_int64
   contains
      procedure, nopass :: check_task
      procedure :: lay_out
      procedure :: piece
   end type strided_t

contains

   !> The part of set_up that all of them share.
   subroutine lay_out(self, team, directory, error)
      class(strided_t), intent(inout) :: self
      type(team_t), intent(in) :: team
      character(len=*), intent(in) :: directory
      type(error_t), allocatable, intent(out) :: error

      self%path = path_in(directory, self%name)
      self%first_path = self%path
      self%owns_path = team%rank == 0
      self%tends_cache = team%node_rank == 0
      self%writers = team%size
      self%member = team%rank
      self%members = team%size

      call deal(self%task, team%size, self%longest, self%pieces, self%total_bytes, error)
      self%path_bytes = self%total_bytes
      call self%settings%add_integer("record", self%longest)
   end subroutine lay_out

   pure subroutine check_task(task, processes, error)
      type(task_t), intent(in) :: task
      integer, intent(in) :: processes
      type(error_t), allocatable, intent(out) :: error
      integer(int64) :: record, records, total

      call deal(task, processes, record, records, total, error)
   end subroutine check_task

   !> The bytes of a record, the records of each process, and the bytes of all.
   pure subroutine deal(task, processes, record, records, total, error)
      type(task_t), intent(in) :: task
      integer, intent(in) :: processes
      integer(int64), intent(out) :: record, records, total
      type(error_t), allocatable, intent(out) :: error

      record = task%record_bytes
      records = 0_int64
      total = 0_int64
      if (record == 0_int64) then
         call multiply([task%sizes(1), element_bytes], record, error)
         if (allocated(error)) return
      end if
      call multiply(task%sizes(2:), records, error)
      if (allocated(error)) return
      if (task%is_global) then
         if (mod(records, int(processes, int64)) /= 0_int64) then
            call fail(error, "N2*N3="//to_text(records)//" records cannot be divided among the " &
                      //to_text(processes)//" processes", status_usage)
            return
         end if
         records = records/processes
      end if
      call multiply([record, records, int(processes, int64)], total, error)
   end subroutine deal

   pure function piece(self, number) result(res)
      class(strided_t), intent(in) :: self
      integer(int64), intent(in) :: number
      type(piece_t) :: res

      res%offset = ((number - 1)*self%members + self%member)*self%longest
      res%bytes = self%longest
      res%start = res%offset
   end function piece

end module strided
