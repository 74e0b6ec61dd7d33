!> The processes of a run: who they are, on which node each one is, and how they
!> come to agree on an error. Knows nothing of files or data.
module team
   use, intrinsic :: iso_fortran_env, only: int64
   use errors, only: error_t, keep_first
   use mpi_checks, only: check
   use mpi_f08, only: MPI_Allreduce, MPI_Bcast, MPI_CHARACTER, MPI_Comm, MPI_COMM_NULL, &
                      MPI_Comm_rank, MPI_Comm_set_errhandler, MPI_Comm_size, MPI_Comm_split, &
                      MPI_Comm_split_type, MPI_COMM_TYPE_SHARED, MPI_COMM_WORLD, &
                      MPI_ERRORS_RETURN, MPI_Get_processor_name, MPI_INFO_NULL, MPI_INTEGER, &
                      MPI_INTEGER8, MPI_LAND, MPI_LOGICAL, MPI_MAX, MPI_MAX_PROCESSOR_NAME, &
                      MPI_MIN, MPI_SUM, MPI_UNDEFINED
   use text, only: to_text
   implicit none(type, external)
   private

   public :: team_t

   type :: team_t
      !> All processes, which process this is, and how many there are.
      type(MPI_Comm) :: world = MPI_COMM_NULL
      integer :: rank = 0, size = 1
      !> The processes of this node, which of them this is; 0 leads the node.
      type(MPI_Comm) :: node_comm = MPI_COMM_NULL
      integer :: node_rank = 0, node_size = 1
      !> Which node this is, by the ranks of the leaders, from 0.
      integer :: node = 0
      integer :: nodes = 1
      !> Processes on the fullest node.
      integer :: processes_per_node = 1
      character(len=:), allocatable :: host
   contains
      procedure :: start
      procedure :: agree
      procedure :: sum_of
      procedure :: all_of
      procedure :: share_text
   end type team_t

contains

   !> Finds out about the processes; collective. Wants MPI initialised.
   subroutine start(self, error)
      class(team_t), intent(inout) :: self
      type(error_t), allocatable, intent(out) :: error
      character(len=MPI_MAX_PROCESSOR_NAME) :: name
      integer :: length, ierr

      self%world = MPI_COMM_WORLD
      call MPI_Comm_set_errhandler(self%world, MPI_ERRORS_RETURN, ierr)
      call check(ierr, "MPI_Comm_set_errhandler", error)
      if (allocated(error)) return
      call MPI_Comm_rank(self%world, self%rank, ierr)
      call check(ierr, "MPI_Comm_rank", error)
      if (allocated(error)) return
      call MPI_Comm_size(self%world, self%size, ierr)
      call check(ierr, "MPI_Comm_size", error)
      if (allocated(error)) return
      call MPI_Get_processor_name(name, length, ierr)
      call check(ierr, "MPI_Get_processor_name", error)
      if (allocated(error)) return
      self%host = trim(name(:length))
      call find_nodes(self, error)
   end subroutine start

   subroutine find_nodes(self, error)
      class(team_t), intent(inout) :: self
      type(error_t), allocatable, intent(out) :: error
      type(MPI_Comm) :: leaders
      integer :: about_node(2), color, ierr

      call MPI_Comm_split_type(self%world, MPI_COMM_TYPE_SHARED, self%rank, MPI_INFO_NULL, &
                               self%node_comm, ierr)
      call check(ierr, "MPI_Comm_split_type", error)
      if (allocated(error)) return
      call MPI_Comm_set_errhandler(self%node_comm, MPI_ERRORS_RETURN, ierr)
      call check(ierr, "MPI_Comm_set_errhandler", error)
      if (allocated(error)) return
      call MPI_Comm_rank(self%node_comm, self%node_rank, ierr)
      call check(ierr, "MPI_Comm_rank", error)
      if (allocated(error)) return
      call MPI_Comm_size(self%node_comm, self%node_size, ierr)
      call check(ierr, "MPI_Comm_size", error)
      if (allocated(error)) return

      ! Only the leaders know how many nodes there are; they tell the others.
      color = merge(0, MPI_UNDEFINED, self%node_rank == 0)
      call MPI_Comm_split(self%world, color, self%rank, leaders, ierr)
      call check(ierr, "MPI_Comm_split", error)
      if (allocated(error)) return
      about_node = 0
      if (self%node_rank == 0) then
         call MPI_Comm_rank(leaders, about_node(1), ierr)
         call check(ierr, "MPI_Comm_rank", error)
         if (allocated(error)) return
         call MPI_Comm_size(leaders, about_node(2), ierr)
         call check(ierr, "MPI_Comm_size", error)
         if (allocated(error)) return
      end if
      call MPI_Bcast(about_node, 2, MPI_INTEGER, 0, self%node_comm, ierr)
      call check(ierr, "MPI_Bcast", error)
      if (allocated(error)) return
      self%node = about_node(1)
      self%nodes = about_node(2)
      call MPI_Allreduce(self%node_size, self%processes_per_node, 1, MPI_INTEGER, MPI_MAX, &
                         self%world, ierr)
      call check(ierr, "MPI_Allreduce", error)
   end subroutine find_nodes

   !> Gives every process the error of the lowest rank that has one, with the
   !> rank and host it came from; collective. Afterwards all have it or none.
   subroutine agree(self, error)
      class(team_t), intent(in) :: self
      type(error_t), allocatable, intent(inout) :: error
      type(error_t), allocatable :: trouble
      character(len=:), allocatable :: message
      integer :: mine, first, failed, status, ierr

      mine = merge(self%rank, self%size, allocated(error))
      call MPI_Allreduce(mine, first, 1, MPI_INTEGER, MPI_MIN, self%world, ierr)
      call check(ierr, "MPI_Allreduce", trouble)
      call keep_first(error, trouble)
      if (ierr /= 0 .or. first == self%size) return

      mine = merge(1, 0, allocated(error))
      call MPI_Allreduce(mine, failed, 1, MPI_INTEGER, MPI_SUM, self%world, ierr)
      call check(ierr, "MPI_Allreduce", trouble)
      call keep_first(error, trouble)
      if (ierr /= 0) return

      message = ""
      status = 0
      if (self%rank == first) then
         message = "rank "//to_text(self%rank)//" on host "//self%host//": "//error%text
         status = error%status
      end if
      call self%share_text(message, first, trouble)
      call keep_first(error, trouble)
      call MPI_Bcast(status, 1, MPI_INTEGER, first, self%world, ierr)
      call check(ierr, "MPI_Bcast", trouble)
      call keep_first(error, trouble)
      if (ierr /= 0) return
      if (failed > 1) message = message//new_line("a")//"and on "//to_text(failed - 1) &
                                //" other ranks"
      if (.not. allocated(error)) allocate (error)
      error%text = message
      error%status = status
   end subroutine agree

   !> Gives every process the text of rank `from`; collective.
   subroutine share_text(self, message, from, error)
      class(team_t), intent(in) :: self
      character(len=:), allocatable, intent(inout) :: message
      integer, intent(in) :: from
      type(error_t), allocatable, intent(out) :: error
      character(len=:), allocatable :: buffer
      integer :: length, ierr

      length = len(message)
      call MPI_Bcast(length, 1, MPI_INTEGER, from, self%world, ierr)
      call check(ierr, "MPI_Bcast", error)
      if (allocated(error)) return
      allocate (character(len=length) :: buffer)
      if (self%rank == from) buffer(:) = message
      call MPI_Bcast(buffer, length, MPI_CHARACTER, from, self%world, ierr)
      call check(ierr, "MPI_Bcast", error)
      if (allocated(error)) return
      message = buffer
   end subroutine share_text

   !> Adds up a number over all processes; collective.
   subroutine sum_of(self, mine, total, error)
      class(team_t), intent(in) :: self
      integer(int64), intent(in) :: mine
      integer(int64), intent(out) :: total
      type(error_t), allocatable, intent(out) :: error
      integer :: ierr

      call MPI_Allreduce(mine, total, 1, MPI_INTEGER8, MPI_SUM, self%world, ierr)
      call check(ierr, "MPI_Allreduce", error)
   end subroutine sum_of

   !> Whether something is so on all processes; collective.
   subroutine all_of(self, mine, everyone, error)
      class(team_t), intent(in) :: self
      logical, intent(in) :: mine
      logical, intent(out) :: everyone
      type(error_t), allocatable, intent(out) :: error
      integer :: ierr

      call MPI_Allreduce(mine, everyone, 1, MPI_LOGICAL, MPI_LAND, self%world, ierr)
      call check(ierr, "MPI_Allreduce", error)
   end subroutine all_of

end module team
