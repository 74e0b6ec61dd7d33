!> The layers mapped and mapped-independent: records of an irregularly distributed array, such as
!> the cells of an unstructured mesh. A map array lists the offsets of a process's records in the
!> shared file; it becomes the view of the file, and one MPI-IO call moves all records.
!>
!> A segment has one record of each process, as in strided, but their order differs from segment to
!> segment: successive records of a process are adjacent or up to two segments apart. The map is
!> the same in each run.
!>
!> Memory: as piece_backend's; the map, 8 bytes for each record, until the datatype is made; and
!> the MPI library's form of the datatype.
module benchio_layer_mapped
   use, intrinsic :: iso_fortran_env, only: int64, int8
   use benchio_datatypes, only: make_scattered
   use benchio_errors, only: error_t, fail, keep_first, status_usage
   use benchio_fingerprint, only: mixed_seed, value_at
   use benchio_layer_strided, only: strided_mpiio_t
   use benchio_piece_backend, only: piece_t
   use benchio_posix_file, only: release_locks
   use benchio_team, only: team_t
   use benchio_text, only: to_text
   use mpi_f08, only: MPI_ADDRESS_KIND, MPI_BYTE
   implicit none(type, external)
   private

   public :: mapped_t

   type, extends(strided_mpiio_t) :: mapped_t
   contains
      procedure :: set_up
      procedure :: piece
      procedure :: move_pieces
   end type mapped_t

contains

   subroutine set_up(self, team, directory, error)
      class(mapped_t), intent(inout) :: self
      type(team_t), intent(in) :: team
      character(len=*), intent(in) :: directory
      type(error_t), allocatable, intent(out) :: error
      integer(MPI_ADDRESS_KIND), allocatable :: map(:)
      type(piece_t) :: piece
      integer(int64) :: number
      integer :: status

      call self%strided_mpiio_t%set_up(team, directory, error)
      if (allocated(error)) return
      if (self%pieces > huge(1)) then
         call fail(error, to_text(self%pieces)//" records are too many: the map of a process " &
                   //"holds at most "//to_text(huge(1)), status_usage)
         return
      end if
      allocate (map(self%pieces), stat=status)
      if (status /= 0) then
         call fail(error, "no memory for a map of "//to_text(self%pieces)//" records")
         return
      end if
      do number = 1, self%pieces
         piece = self%piece(number)
         map(number) = int(piece%offset, MPI_ADDRESS_KIND)
      end do
      call make_scattered(map, self%longest, self%file%in_file, error)
      self%file%unit = MPI_BYTE
   end subroutine set_up

   !> Shifts the processes by the high bits of a value, which differ most between segments.
   pure function piece(self, number) result(res)
      class(mapped_t), intent(in) :: self
      integer(int64), intent(in) :: number
      type(piece_t) :: res
      integer(int64) :: segment, shift

      segment = number - 1
      shift = shiftr(value_at(segment, mixed_seed(0_int64)), 32)
      res%offset = (segment*self%members + mod(self%member + shift, self%members))*self%longest
      res%bytes = self%longest
      res%start = res%offset
   end function piece

   !> Moves all pieces by one call: in the view they are contiguous. After a failed write, releases
   !> the lock that the library may hold and the other processes wait for.
   subroutine move_pieces(self, writing, first, last, memory, error)
      class(mapped_t), intent(inout) :: self
      logical, intent(in) :: writing
      integer(int64), intent(in) :: first, last
      integer(int8), intent(inout), target, contiguous :: memory(:)
      type(error_t), allocatable, intent(out) :: error
      type(error_t), allocatable :: trouble
      type(piece_t) :: all_of_them

      self%outcome%times%is_on = .false. ! by contract 1 it has no latency
      all_of_them%offset = (first - 1)*self%longest
      all_of_them%bytes = (last - first + 1)*self%longest
      call self%move(writing, all_of_them, memory(:all_of_them%bytes), error)
      if (writing .and. allocated(error)) call release_locks(self%path, trouble)
      call keep_first(error, trouble)
   end subroutine move_pieces

end module benchio_layer_mapped
