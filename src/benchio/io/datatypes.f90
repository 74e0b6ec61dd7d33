!> MPI datatypes of array sections.
module benchio_datatypes
   use, intrinsic :: iso_fortran_env, only: int64
   use benchio_errors, only: error_t
   use benchio_mpi_checks, only: check
   use mpi_f08, only: MPI_ADDRESS_KIND, MPI_BYTE, MPI_Datatype, MPI_DATATYPE_NULL, MPI_INTEGER8, &
                      MPI_ORDER_FORTRAN, MPI_Type_commit, MPI_Type_create_hindexed_block, &
                      MPI_Type_create_struct, MPI_Type_create_subarray, MPI_Type_free
   implicit none(type, external)
   private

   public :: make_section, make_scattered, join_sections, free_datatype

contains

   !> A section of an array of 8-byte elements in Fortran order: `part` elements of
   !> `whole` along each axis, from `start` (0-based) on. Each length must fit a default
   !> integer.
   subroutine make_section(whole, part, start, res, error)
      integer(int64), intent(in) :: whole(:), part(:), start(:)
      type(MPI_Datatype), intent(out) :: res
      type(error_t), allocatable, intent(out) :: error
      integer :: ierr

      call MPI_Type_create_subarray(size(whole), int(whole), int(part), int(start), &
                                    MPI_ORDER_FORTRAN, MPI_INTEGER8, res, ierr)
      call check(ierr, "MPI_Type_create_subarray", error)
      if (allocated(error)) return
      call MPI_Type_commit(res, ierr)
      call check(ierr, "MPI_Type_commit", error)
   end subroutine make_section

   !> Blocks of `bytes` bytes each, at these byte offsets. Their number and length must fit default
   !> integers.
   subroutine make_scattered(offsets, bytes, res, error)
      integer(MPI_ADDRESS_KIND), intent(in) :: offsets(:)
      integer(int64), intent(in) :: bytes
      type(MPI_Datatype), intent(out) :: res
      type(error_t), allocatable, intent(out) :: error
      integer :: ierr

      call MPI_Type_create_hindexed_block(size(offsets), int(bytes), offsets, MPI_BYTE, res, ierr)
      call check(ierr, "MPI_Type_create_hindexed_block", error)
      if (allocated(error)) return
      call MPI_Type_commit(res, ierr)
      call check(ierr, "MPI_Type_commit", error)
   end subroutine make_scattered

   !> Joins sections of one array into one datatype, which moves them in this order and
   !> has the extent of the array. Frees the sections.
   subroutine join_sections(sections, res, error)
      type(MPI_Datatype), intent(inout) :: sections(:)
      type(MPI_Datatype), intent(out) :: res
      type(error_t), allocatable, intent(out) :: error
      integer(MPI_ADDRESS_KIND) :: starts(size(sections))
      integer :: counts(size(sections))
      integer :: at, ierr

      res = MPI_DATATYPE_NULL
      starts = 0_MPI_ADDRESS_KIND
      counts = 1
      call MPI_Type_create_struct(size(sections), counts, starts, sections, res, ierr)
      call check(ierr, "MPI_Type_create_struct", error)
      if (.not. allocated(error)) then
         call MPI_Type_commit(res, ierr)
         call check(ierr, "MPI_Type_commit", error)
      end if
      do at = 1, size(sections)
         call free_datatype(sections(at), error)
      end do
   end subroutine join_sections

   !> Frees a datatype, unless it is null. Keeps an earlier error.
   subroutine free_datatype(datatype, error)
      type(MPI_Datatype), intent(inout) :: datatype
      type(error_t), allocatable, intent(inout) :: error
      integer :: ierr

      if (datatype%MPI_VAL == MPI_DATATYPE_NULL%MPI_VAL) return
      call MPI_Type_free(datatype, ierr)
      call check(ierr, "MPI_Type_free", error)
   end subroutine free_datatype

end module benchio_datatypes
