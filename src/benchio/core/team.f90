!> The processes of a run: their ranks and nodes, and the exchange of errors and small
!> values among them.
module benchio_team
   use, intrinsic :: iso_fortran_env, only: int64
   use benchio_errors, only: error_t, keep_first
   use benchio_fingerprint, only: mixed_seed
   use benchio_mpi_checks, only: check
   use benchio_node_shift, only: shifted_rank
   use benchio_text, only: to_text
   use mpi_f08, only: MPI_Allgather, MPI_Allreduce, MPI_Bcast, MPI_CHARACTER, MPI_Comm, &
                      MPI_Comm_free, MPI_COMM_NULL, MPI_Comm_rank, MPI_Comm_set_errhandler, &
                      MPI_Comm_size, MPI_Comm_split, MPI_Comm_split_type, MPI_COMM_TYPE_SHARED, &
                      MPI_COMM_WORLD, MPI_ERRORS_RETURN, MPI_Get_processor_name, MPI_INFO_NULL, &
                      MPI_INTEGER, MPI_INTEGER8, MPI_LAND, MPI_LOGICAL, MPI_MAX, &
                      MPI_MAX_PROCESSOR_NAME, MPI_MIN, MPI_SUM, MPI_UNDEFINED
   implicit none(type, external)
   private

   public :: team_t

   type :: team_t
      !> All processes, the rank of this one, and their number.
      type(MPI_Comm) :: world = MPI_COMM_NULL
      integer :: rank = 0, size = 1
      !> The processes of this node, the rank of this one among them (0 leads the node),
      !> and their number.
      type(MPI_Comm) :: node_comm = MPI_COMM_NULL
      integer :: node_rank = 0, node_size = 1
      !> The number of this node, from 0, in the order of the leaders' ranks.
      integer :: node = 0
      integer :: nodes = 1
      !> The largest number of processes on a node.
      integer :: processes_per_node = 1
      !> Whether every process takes the rank of one on another node; see start_shifted.
      logical :: is_shifted = .false.
      character(len=:), allocatable :: host
   contains
      procedure :: start
      procedure :: start_shifted
      procedure :: finish
      procedure :: speaker
      procedure :: agree
      procedure :: sum_of
      procedure :: all_of
      procedure :: share_text
   end type team_t

contains

   !> Queries the processes of a communicator; collective.
   subroutine start(self, comm, error)
      class(team_t), intent(inout) :: self
      type(MPI_Comm), intent(in) :: comm
      type(error_t), allocatable, intent(out) :: error
      character(len=MPI_MAX_PROCESSOR_NAME) :: name
      integer :: length, ierr

      self%world = comm
      call look_at(self%world, self%rank, self%size, error)
      if (allocated(error)) return
      call MPI_Get_processor_name(name, length, ierr)
      call check(ierr, "MPI_Get_processor_name", error)
      if (allocated(error)) return
      self%host = trim(name(:length))
      call find_nodes(self, error)
   end subroutine start

   !> Gets the rank of this process in a communicator and the number of its processes, and makes
   !> its calls return their errors.
   subroutine look_at(comm, rank, size, error)
      type(MPI_Comm), intent(in) :: comm
      integer, intent(out) :: rank, size
      type(error_t), allocatable, intent(out) :: error
      integer :: ierr

      call MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN, ierr)
      call check(ierr, "MPI_Comm_set_errhandler", error)
      call MPI_Comm_rank(comm, rank, ierr)
      call check(ierr, "MPI_Comm_rank", error)
      call MPI_Comm_size(comm, size, ierr)
      call check(ierr, "MPI_Comm_size", error)
   end subroutine look_at

   subroutine find_nodes(self, error)
      class(team_t), intent(inout) :: self
      type(error_t), allocatable, intent(out) :: error
      type(MPI_Comm) :: leaders
      integer :: about_node(2), color, ierr

      call MPI_Comm_split_type(self%world, MPI_COMM_TYPE_SHARED, self%rank, MPI_INFO_NULL, &
                               self%node_comm, ierr)
      call check(ierr, "MPI_Comm_split_type", error)
      if (allocated(error)) return
      call look_at_node(self, error)
      if (allocated(error)) return
      if (self%processes_per_node == 1) then
         call split_by_host(self, error)
         if (allocated(error)) return
         call look_at_node(self, error)
         if (allocated(error)) return
      end if

      ! Only the leaders know the number of nodes; they broadcast it.
      color = merge(0, MPI_UNDEFINED, self%node_rank == 0)
      call MPI_Comm_split(self%world, color, self%rank, leaders, ierr)
      call check(ierr, "MPI_Comm_split", error)
      if (allocated(error)) return
      about_node = 0
      if (self%node_rank == 0) then
         call look_at(leaders, about_node(1), about_node(2), error)
         if (allocated(error)) return
         call free_comm(leaders, error)
         if (allocated(error)) return
      end if
      call MPI_Bcast(about_node, 2, MPI_INTEGER, 0, self%node_comm, ierr)
      call check(ierr, "MPI_Bcast", error)
      if (allocated(error)) return
      self%node = about_node(1)
      self%nodes = about_node(2)
   end subroutine find_nodes

   subroutine look_at_node(self, error)
      class(team_t), intent(inout) :: self
      type(error_t), allocatable, intent(out) :: error
      integer :: ierr

      call look_at(self%node_comm, self%node_rank, self%node_size, error)
      if (allocated(error)) return
      call MPI_Allreduce(self%node_size, self%processes_per_node, 1, MPI_INTEGER, MPI_MAX, &
                         self%world, ierr)
      call check(ierr, "MPI_Allreduce", error)
   end subroutine look_at_node

   !> Takes the processes of one host for those of a node; collective. MPICH 5 over UCX shares no
   !> memory, and so calls each process a node (https://github.com/pmodels/mpich/issues/7705).
   subroutine split_by_host(self, error)
      class(team_t), intent(inout) :: self
      type(error_t), allocatable, intent(out) :: error
      character(len=16) :: number
      character(len=:), allocatable :: name
      integer(int64), allocatable :: keys(:)
      integer(int64) :: key
      integer :: each, ierr

      ! Nodes of Slurm can be on one host, such as in tests.
      call get_environment_variable("SLURM_NODEID", number)
      name = self%host//" "//trim(number)
      key = 0_int64
      do each = 1, len(name)
         key = mixed_seed(ieor(key, int(ichar(name(each:each)), int64)))
      end do
      allocate (keys(self%size))
      call MPI_Allgather(key, 1, MPI_INTEGER8, keys, 1, MPI_INTEGER8, self%world, ierr)
      call check(ierr, "MPI_Allgather", error)
      if (allocated(error)) return
      call free_comm(self%node_comm, error)
      if (allocated(error)) return
      call MPI_Comm_split(self%world, findloc(keys, key, 1), self%rank, self%node_comm, ierr)
      call check(ierr, "MPI_Comm_split", error)
   end subroutine split_by_host

   !> The processes of another team with permuted ranks: each takes the rank of a process
   !> on another node, so that it reads what another node wrote. Collective.
   !> `is_shifted` is false if some process kept its node, as happens where one node has
   !> more than half of the processes.
   subroutine start_shifted(self, other, error)
      class(team_t), intent(inout) :: self
      type(team_t), intent(in) :: other
      type(error_t), allocatable, intent(out) :: error
      type(MPI_Comm) :: comm
      integer, allocatable :: nodes(:)
      integer :: rank, ierr

      allocate (nodes(0:other%size - 1))
      call MPI_Allgather(other%node, 1, MPI_INTEGER, nodes, 1, MPI_INTEGER, other%world, ierr)
      call check(ierr, "MPI_Allgather", error)
      if (allocated(error)) return
      rank = shifted_rank(nodes, other%rank)
      call MPI_Comm_split(other%world, 0, rank, comm, ierr)
      call check(ierr, "MPI_Comm_split", error)
      if (allocated(error)) return
      call self%start(comm, error)
      if (allocated(error)) return
      ! The number of the node must differ too: the layers node and aligned use it.
      call self%all_of(nodes(rank) /= other%node .and. self%node /= other%node, &
                       self%is_shifted, error)
   end subroutine start_shifted

   !> Frees the communicators; collective.
   subroutine finish(self, error)
      class(team_t), intent(inout) :: self
      type(error_t), allocatable, intent(out) :: error
      type(error_t), allocatable :: trouble

      call free_comm(self%node_comm, error)
      call free_comm(self%world, trouble)
      call keep_first(error, trouble)
   end subroutine finish

   subroutine free_comm(comm, error)
      type(MPI_Comm), intent(inout) :: comm
      type(error_t), allocatable, intent(out) :: error
      integer :: ierr

      if (comm%MPI_VAL == MPI_COMM_NULL%MPI_VAL .or. comm%MPI_VAL == MPI_COMM_WORLD%MPI_VAL) return
      call MPI_Comm_free(comm, ierr)
      call check(ierr, "MPI_Comm_free", error)
   end subroutine free_comm

   !> How messages name this process.
   pure function speaker(self) result(res)
      class(team_t), intent(in) :: self
      character(len=:), allocatable :: res

      res = "rank "//to_text(self%rank)//" on host "//self%host
   end function speaker

   !> Gives every process the error of the lowest rank that has one, with that rank and
   !> its host; collective. Afterwards all processes have the same error or none;
   !> further calls change nothing.
   subroutine agree(self, error)
      class(team_t), intent(in) :: self
      type(error_t), allocatable, intent(inout) :: error
      type(error_t), allocatable :: trouble
      character(len=:), allocatable :: message
      integer :: mine, first, failed, status, ierr

      if (allocated(error)) then
         if (error%is_shared) return
      end if
      mine = merge(self%rank, self%size, allocated(error))
      call MPI_Allreduce(mine, first, 1, MPI_INTEGER, MPI_MIN, self%world, ierr)
      call check(ierr, "MPI_Allreduce", error)
      if (ierr /= 0 .or. first == self%size) return

      mine = merge(1, 0, allocated(error))
      call MPI_Allreduce(mine, failed, 1, MPI_INTEGER, MPI_SUM, self%world, ierr)
      call check(ierr, "MPI_Allreduce", error)
      if (ierr /= 0) return

      message = ""
      status = 0
      if (self%rank == first) then
         message = self%speaker()//": "//error%text
         status = error%status
      end if
      call self%share_text(message, first, trouble)
      call keep_first(error, trouble)
      call MPI_Bcast(status, 1, MPI_INTEGER, first, self%world, ierr)
      call check(ierr, "MPI_Bcast", error)
      if (ierr /= 0) return
      if (failed > 1) message = message//new_line("a")//"and on "//to_text(failed - 1) &
                                //trim(merge(" other rank ", " other ranks", failed == 2))
      if (.not. allocated(error)) allocate (error)
      error%text = message
      error%status = status
      error%is_shared = .true.
   end subroutine agree

   !> Broadcasts a text from rank `from`; collective over `comm`, or over all processes.
   subroutine share_text(self, message, from, error, comm)
      class(team_t), intent(in) :: self
      character(len=:), allocatable, intent(inout) :: message
      integer, intent(in) :: from
      type(error_t), allocatable, intent(out) :: error
      type(MPI_Comm), intent(in), optional :: comm
      character(len=:), allocatable :: buffer
      type(MPI_Comm) :: among
      integer :: length, rank, ierr

      among = self%world
      if (present(comm)) among = comm
      call MPI_Comm_rank(among, rank, ierr)
      call check(ierr, "MPI_Comm_rank", error)
      if (allocated(error)) return
      length = len(message)
      call MPI_Bcast(length, 1, MPI_INTEGER, from, among, ierr)
      call check(ierr, "MPI_Bcast", error)
      if (allocated(error)) return
      allocate (character(len=length) :: buffer)
      if (rank == from) buffer(:) = message
      call MPI_Bcast(buffer, length, MPI_CHARACTER, from, among, ierr)
      call check(ierr, "MPI_Bcast", error)
      if (allocated(error)) return
      message = buffer
   end subroutine share_text

   !> The sum of a number over all processes; collective.
   subroutine sum_of(self, mine, total, error)
      class(team_t), intent(in) :: self
      integer(int64), intent(in) :: mine
      integer(int64), intent(out) :: total
      type(error_t), allocatable, intent(out) :: error
      integer :: ierr

      call MPI_Allreduce(mine, total, 1, MPI_INTEGER8, MPI_SUM, self%world, ierr)
      call check(ierr, "MPI_Allreduce", error)
   end subroutine sum_of

   !> Whether a condition holds on all processes; collective.
   subroutine all_of(self, mine, everyone, error)
      class(team_t), intent(in) :: self
      logical, intent(in) :: mine
      logical, intent(out) :: everyone
      type(error_t), allocatable, intent(out) :: error
      integer :: ierr

      call MPI_Allreduce(mine, everyone, 1, MPI_LOGICAL, MPI_LAND, self%world, ierr)
      call check(ierr, "MPI_Allreduce", error)
   end subroutine all_of

end module benchio_team
