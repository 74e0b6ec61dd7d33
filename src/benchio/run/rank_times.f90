!> The CSV file of `--ranks`: one line for each rank and phase. docs/contracts.md defines its
!> columns.
module benchio_rank_times
   use benchio_backend, only: backend_t
   use benchio_errors, only: error_t
   use benchio_mpi_checks, only: check
   use benchio_phase, only: phase_t
   use benchio_team, only: team_t
   use benchio_text, only: decimal, to_text
   use benchio_text_file, only: line_file_t
   use mpi_f08, only: MPI_CHARACTER, MPI_Gather, MPI_MAX_PROCESSOR_NAME
   implicit none(type, external)
   private

   public :: rank_times_t

   type :: rank_times_t
      private
      type(line_file_t) :: file
      character(len=MPI_MAX_PROCESSOR_NAME), allocatable :: hosts(:)
   contains
      procedure :: start
      procedure :: clear
      procedure :: append
      procedure :: finish
   end type rank_times_t

contains

   !> Creates the file and collects the host names; collective. The error is this process's
   !> own.
   subroutine start(self, team, path, error)
      class(rank_times_t), intent(inout) :: self
      type(team_t), intent(in) :: team
      character(len=*), intent(in) :: path
      type(error_t), allocatable, intent(out) :: error
      character(len=MPI_MAX_PROCESSOR_NAME) :: mine
      integer :: ierr

      mine = team%host
      allocate (self%hosts(merge(team%size, 1, team%rank == 0)))
      call MPI_Gather(mine, len(mine), MPI_CHARACTER, self%hosts, len(mine), MPI_CHARACTER, 0, &
                      team%world, ierr)
      call check(ierr, "MPI_Gather", error)
      if (allocated(error) .or. team%rank /= 0) return
      call self%file%start(path, error)
   end subroutine start

   !> Empties the file and writes the column names, unless that was done before.
   subroutine clear(self, error)
      class(rank_times_t), intent(inout) :: self
      type(error_t), allocatable, intent(out) :: error

      if (self%file%is_cleared .or. .not. allocated(self%hosts)) return
      call self%file%clear(error)
      if (allocated(error)) return
      call self%file%append("layer,operation,repeat,path,rank,host,seconds_open," &
                            //"seconds_transfer,seconds_sync,seconds_close,seconds", error)
   end subroutine clear

   !> Appends the lines of a phase, on rank 0. Does nothing if no file was started.
   subroutine append(self, layer, phase, error)
      class(rank_times_t), intent(inout) :: self
      class(backend_t), intent(in) :: layer
      type(phase_t), intent(in) :: phase
      type(error_t), allocatable, intent(out) :: error
      character(len=:), allocatable :: before, line
      integer :: at, stage

      if (.not. allocated(self%hosts)) return
      before = layer%name//","//trim(merge("write", "read ", phase%writing))//"," &
               //to_text(phase%repeat)//","//quoted(layer%first_path)//","
      do at = 1, size(self%hosts)
         line = before//to_text(at - 1)//","//quoted(trim(self%hosts(at)))
         do stage = 1, size(phase%rank_seconds, 1)
            line = line//","//decimal(phase%rank_seconds(stage, at))
         end do
         call self%file%append(line, error)
         if (allocated(error)) return
      end do
   end subroutine append

   subroutine finish(self, error)
      class(rank_times_t), intent(inout) :: self
      type(error_t), allocatable, intent(out) :: error

      call self%file%finish(error)
   end subroutine finish

   !> A CSV field, quoted if necessary.
   pure function quoted(field) result(res)
      character(len=*), intent(in) :: field
      character(len=:), allocatable :: res
      integer :: at

      res = field
      if (scan(field, ',"'//achar(10)//achar(13)) == 0) return
      res = '"'
      do at = 1, len(field)
         res = res//field(at:at)
         if (field(at:at) == '"') res = res//'"'
      end do
      res = res//'"'
   end function quoted

end module benchio_rank_times
