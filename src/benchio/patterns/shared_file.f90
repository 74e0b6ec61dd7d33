!> What the layers have in common that bring the whole array to one shared file by
!> way of a library with a format of its own: what is said of the file before it
!> is there, and whether a step that all take together went well everywhere.
module shared_file
   use, intrinsic :: iso_fortran_env, only: int64
   use backend, only: path_in
   use block_backend, only: block_backend_t
   use errors, only: error_t, fail, keep_first
   use mpi_checks, only: check
   use mpi_f08, only: MPI_Allreduce, MPI_Comm, MPI_IN_PLACE, MPI_LAND, MPI_LOGICAL
   use team, only: team_t
   use text, only: to_text
   implicit none(type, external)
   private

   public :: describe, agree_to_go_on, check_shape

   !> What the array is called in the file.
   character(len=*), parameter, public :: array_name = "data"
   !> What its axes are called, where they have names.
   character(len=*), parameter, public :: axis_names(3) = ["n1", "n2", "n3"]

contains

   !> Fills in what a layer's `set_up` has to say of its file.
   subroutine describe(layer, team, directory)
      class(block_backend_t), intent(inout) :: layer
      type(team_t), intent(in) :: team
      character(len=*), intent(in) :: directory

      layer%path = path_in(directory, layer%name)
      layer%first_path = layer%path
      layer%path_bytes = layer%total_bytes
      layer%has_format = .true.
      layer%is_whole = .true.
      layer%owns_path = team%rank == 0
      layer%tends_cache = team%node_rank == 0
      ! The system's own text says more than that of any library.
      layer%tries_first = team%rank == 0
      layer%uses_hints = .true.
   end subroutine describe

   !> Whether no process of `comm` has an error; collective. Where one could not
   !> open a file, the collective calls of the others would never end.
   subroutine agree_to_go_on(comm, goes_on, error)
      type(MPI_Comm), intent(in) :: comm
      logical, intent(out) :: goes_on
      type(error_t), allocatable, intent(inout) :: error
      type(error_t), allocatable :: trouble
      integer :: ierr

      goes_on = .not. allocated(error)
      call MPI_Allreduce(MPI_IN_PLACE, goes_on, 1, MPI_LOGICAL, MPI_LAND, comm, ierr)
      call check(ierr, "MPI_Allreduce", trouble)
      call keep_first(error, trouble)
      if (allocated(error)) goes_on = .false.
   end subroutine agree_to_go_on

   !> An error unless an array found in a file is as large as that of the run: one
   !> that is not was kept by another run.
   subroutine check_shape(path, found, wanted, error)
      character(len=*), intent(in) :: path
      integer(int64), intent(in) :: found(:), wanted(:)
      type(error_t), allocatable, intent(out) :: error

      if (size(found) == size(wanted)) then
         if (all(found == wanted)) return
      end if
      call fail(error, path//" has an array of "//product_of(found)//" elements and not of " &
                //product_of(wanted))
   end subroutine check_shape

   pure function product_of(lengths) result(res)
      integer(int64), intent(in) :: lengths(:)
      character(len=:), allocatable :: res
      integer :: axis

      res = ""
      do axis = 1, size(lengths)
         if (axis > 1) res = res//" x "
         res = res//to_text(lengths(axis))
      end do
   end function product_of

end module shared_file
