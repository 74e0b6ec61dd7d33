!> The base of the layers of the pattern strided: one shared file of records of any length,
!> assigned to the processes round robin, as in IOR with a block of one transfer: in segment s,
!> process r has the record s*processes + r.
!>
!> A record is a row of N1 elements, or of the bytes of --record. Each process has N2*N3
!> records; with global sizes there are N2*N3 in total.
module benchio_strided
   use, intrinsic :: iso_fortran_env, only: int64
   use benchio_errors, only: error_t, fail, status_usage
   use benchio_layout, only: element_bytes
   use benchio_piece_backend, only: piece_backend_t, piece_t
   use benchio_task, only: task_t
   use benchio_team, only: team_t
   use benchio_text, only: to_text
   use benchio_volume, only: multiply
   implicit none(type, external)
   private

   public :: strided_t

   type, abstract, extends(piece_backend_t) :: strided_t
      !> The rank of this process, and the number of processes.
      integer(int64) :: member = 0_int64, members = 1_int64
   contains
      procedure, nopass :: check_task
      procedure :: plan_records
      procedure :: piece
   end type strided_t

contains

   !> The common part of set_up.
   subroutine plan_records(self, team, directory, error)
      class(strided_t), intent(inout) :: self
      type(team_t), intent(in) :: team
      character(len=*), intent(in) :: directory
      type(error_t), allocatable, intent(out) :: error

      self%member = team%rank
      self%members = team%size
      call count_records(self%task, team%size, self%longest, self%pieces, self%total_bytes, error)
      call self%settings%add_integer("record", self%longest)
      call self%plan_shared_file(team, directory)
   end subroutine plan_records

   pure subroutine check_task(task, processes, error)
      type(task_t), intent(in) :: task
      integer, intent(in) :: processes
      type(error_t), allocatable, intent(out) :: error
      integer(int64) :: record, records, total

      call count_records(task, processes, record, records, total, error)
   end subroutine check_task

   !> The bytes of a record, the records of each process, and the total bytes.
   pure subroutine count_records(task, processes, record, records, total, error)
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
   end subroutine count_records

   pure function piece(self, number) result(res)
      class(strided_t), intent(in) :: self
      integer(int64), intent(in) :: number
      type(piece_t) :: res

      res%offset = ((number - 1)*self%members + self%member)*self%longest
      res%bytes = self%longest
      res%start = res%offset
   end function piece

end module benchio_strided
