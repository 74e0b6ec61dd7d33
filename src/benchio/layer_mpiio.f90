!> The layer mpiio: one shared file that all processes write and read together
!> with MPI-IO's collective calls, in Fortran order of the whole array.
!>
!> Memory: none of its own; the MPI library's collective buffers come on top.
!> Each call moves one element of a datatype that describes the block, in memory
!> and in the file, so no count ever passes what an integer holds.
module layer_mpiio
   use, intrinsic :: iso_fortran_env, only: int64
   use backend, only: backend_t, path_in
   use block_data, only: block_t
   use errors, only: error_t, fail, keep_first
   use layout, only: element_bytes
   use mpi_checks, only: check
   use mpi_f08, only: MPI_Allreduce, MPI_Comm, MPI_COUNT_KIND, MPI_Datatype, MPI_DATATYPE_NULL, &
                      MPI_ERRORS_RETURN, MPI_File, MPI_File_close, MPI_FILE_NULL, MPI_File_open, &
                      MPI_File_read_all, MPI_File_set_errhandler, MPI_File_set_view, &
                      MPI_File_sync, MPI_File_write_all, MPI_Get_elements_x, MPI_Info, &
                      MPI_Info_free, MPI_INFO_NULL, MPI_INTEGER, MPI_INTEGER8, MPI_MAX, &
                      MPI_MODE_CREATE, MPI_MODE_RDONLY, MPI_MODE_WRONLY, MPI_OFFSET_KIND, &
                      MPI_ORDER_FORTRAN, MPI_Status, MPI_SUCCESS, MPI_Type_commit, &
                      MPI_Type_create_subarray, MPI_Type_free
   use mpi_hints, only: make_info, read_hints
   use posix_file, only: read_remedy, write_remedy
   use team, only: team_t
   use text, only: to_text
   implicit none(type, external)
   private

   public :: mpiio_t

   type, extends(backend_t) :: mpiio_t
      private
      type(MPI_Comm) :: comm
      integer :: rank = 0
      type(MPI_File) :: file = MPI_FILE_NULL
      type(MPI_Info) :: info = MPI_INFO_NULL
      !> The block in memory, inside its halo, and in the file.
      type(MPI_Datatype) :: in_memory = MPI_DATATYPE_NULL
      type(MPI_Datatype) :: in_file = MPI_DATATYPE_NULL
   contains
      procedure :: prepare
      procedure :: open_file
      procedure :: write_block
      procedure :: read_block
      procedure :: sync
      procedure :: close_file
      procedure :: release
   end type mpiio_t

contains

   subroutine prepare(self, team, block, directory, error)
      class(mpiio_t), intent(inout) :: self
      type(team_t), intent(in) :: team
      type(block_t), intent(inout), target :: block
      character(len=*), intent(in) :: directory
      type(error_t), allocatable, intent(out) :: error
      integer :: ierr

      self%block => block
      self%comm = team%world
      self%rank = team%rank
      self%path = path_in(directory, self%name)
      self%first_path = self%path
      self%path_bytes = block%layout%whole_elements()*element_bytes
      self%is_whole = .true.
      self%owns_path = team%rank == 0
      self%tends_cache = team%node_rank == 0
      ! The system's own text says more than MPI's, and MPICH 4.0 may crash when
      ! MPI_File_open fails: its Fortran binding uses the handle all the same.
      self%tries_first = team%rank == 0
      allocate (self%hints(0))

      ! Errors in opening a file go to the handler of the null file.
      call MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_RETURN, ierr)
      call check(ierr, "MPI_File_set_errhandler", error)
      if (allocated(error)) return
      associate (layout => block%layout)
         call make_subarray(layout%block + 2, layout%block, [1, 1, 1], self%in_memory, error)
         if (allocated(error)) return
         call make_subarray(layout%whole, layout%block, int(layout%coords*layout%block), &
                            self%in_file, error)
         if (allocated(error)) return
      end associate
      call make_info(self%hints_asked, self%info, error)
   end subroutine prepare

   subroutine make_subarray(whole, part, start, res, error)
      integer(int64), intent(in) :: whole(3), part(3)
      integer, intent(in) :: start(3)
      type(MPI_Datatype), intent(out) :: res
      type(error_t), allocatable, intent(out) :: error
      integer :: ierr

      call MPI_Type_create_subarray(3, int(whole), int(part), start, MPI_ORDER_FORTRAN, &
                                    MPI_INTEGER8, res, ierr)
      call check(ierr, "MPI_Type_create_subarray", error)
      if (allocated(error)) return
      call MPI_Type_commit(res, ierr)
      call check(ierr, "MPI_Type_commit", error)
   end subroutine make_subarray

   !> Opens the file and shows each process its part. All must have opened it:
   !> where one could not, the collective calls of the others would never end.
   subroutine open_file(self, writing, error)
      class(mpiio_t), intent(inout) :: self
      logical, intent(in) :: writing
      type(error_t), allocatable, intent(out) :: error
      type(error_t), allocatable :: trouble
      integer :: mode, worst, mine, ierr
      logical :: echoes

      mode = merge(ior(MPI_MODE_CREATE, MPI_MODE_WRONLY), MPI_MODE_RDONLY, writing)
      call MPI_File_open(self%comm, self%path, mode, self%info, self%file, ierr)
      mine = merge(0, 1, ierr == MPI_SUCCESS)
      call check(ierr, "MPI_File_open of "//self%path, error)
      if (allocated(error)) then
         self%file = MPI_FILE_NULL
         error%text = error%text//merge_text(writing, write_remedy, read_remedy)
      end if
      call MPI_Allreduce(mine, worst, 1, MPI_INTEGER, MPI_MAX, self%comm, ierr)
      call check(ierr, "MPI_Allreduce", trouble)
      call keep_first(error, trouble)
      if (allocated(error)) return
      if (worst /= 0) then
         ! Closing is collective too, so a file that not all have stays open.
         self%file = MPI_FILE_NULL
         return
      end if

      call MPI_File_set_errhandler(self%file, MPI_ERRORS_RETURN, ierr)
      call check(ierr, "MPI_File_set_errhandler", error)
      call MPI_File_set_view(self%file, 0_MPI_OFFSET_KIND, MPI_INTEGER8, self%in_file, "native", &
                             self%info, ierr)
      call check(ierr, "MPI_File_set_view of "//self%path, trouble)
      call keep_first(error, trouble)
      if (self%rank == 0) then
         call read_hints(self%file, self%hints_asked, self%hints, echoes, trouble)
         call keep_first(error, trouble)
         if (echoes) self%note = "this MPI library confirms any hint: " &
                                 //"those asked for may not be in effect"
      end if
   end subroutine open_file

   pure function merge_text(first, yes, no) result(res)
      logical, intent(in) :: first
      character(len=*), intent(in) :: yes, no
      character(len=:), allocatable :: res

      if (first) then
         res = yes
      else
         res = no
      end if
   end function merge_text

   subroutine write_block(self, error)
      class(mpiio_t), intent(inout) :: self
      type(error_t), allocatable, intent(out) :: error
      type(MPI_Status) :: status
      integer :: ierr

      if (self%file%MPI_VAL == MPI_FILE_NULL%MPI_VAL) return
      call MPI_File_write_all(self%file, self%block%cells, 1, self%in_memory, status, ierr)
      call check(ierr, "MPI_File_write_all of "//self%path, error)
      if (allocated(error)) return
      call check_moved(self, "MPI_File_write_all of ", status, error)
   end subroutine write_block

   subroutine read_block(self, error)
      class(mpiio_t), intent(inout) :: self
      type(error_t), allocatable, intent(out) :: error
      type(MPI_Status) :: status
      integer :: ierr

      if (self%file%MPI_VAL == MPI_FILE_NULL%MPI_VAL) return
      call MPI_File_read_all(self%file, self%block%cells, 1, self%in_memory, status, ierr)
      call check(ierr, "MPI_File_read_all of "//self%path, error)
      if (allocated(error)) return
      call check_moved(self, "MPI_File_read_all of ", status, error)
   end subroutine read_block

   !> A call that moved less than its block has not failed in MPI's eyes.
   subroutine check_moved(self, call_name, status, error)
      class(mpiio_t), intent(in) :: self
      character(len=*), intent(in) :: call_name
      type(MPI_Status), intent(in) :: status
      type(error_t), allocatable, intent(out) :: error
      integer(MPI_COUNT_KIND) :: moved
      integer(int64) :: wanted
      integer :: ierr

      call MPI_Get_elements_x(status, self%in_memory, moved, ierr)
      call check(ierr, "MPI_Get_elements_x", error)
      if (allocated(error)) return
      wanted = self%block%layout%block_elements()
      if (moved /= wanted) call fail(error, call_name//self%path//" failed: it moved " &
                                     //to_text(int(moved, int64)*element_bytes)//" of " &
                                     //to_text(wanted*element_bytes)//" bytes")
   end subroutine check_moved

   subroutine sync(self, error)
      class(mpiio_t), intent(inout) :: self
      type(error_t), allocatable, intent(out) :: error
      integer :: ierr

      if (self%file%MPI_VAL == MPI_FILE_NULL%MPI_VAL) return
      call MPI_File_sync(self%file, ierr)
      call check(ierr, "MPI_File_sync of "//self%path, error)
   end subroutine sync

   subroutine close_file(self, error)
      class(mpiio_t), intent(inout) :: self
      type(error_t), allocatable, intent(out) :: error
      integer :: ierr

      if (self%file%MPI_VAL == MPI_FILE_NULL%MPI_VAL) return
      call MPI_File_close(self%file, ierr)
      call check(ierr, "MPI_File_close of "//self%path, error)
      self%file = MPI_FILE_NULL
   end subroutine close_file

   subroutine release(self, error)
      class(mpiio_t), intent(inout) :: self
      type(error_t), allocatable, intent(out) :: error
      type(error_t), allocatable :: trouble
      integer :: ierr

      call self%close_file(error)
      if (self%in_memory%MPI_VAL /= MPI_DATATYPE_NULL%MPI_VAL) then
         call MPI_Type_free(self%in_memory, ierr)
         call check(ierr, "MPI_Type_free", trouble)
         call keep_first(error, trouble)
      end if
      if (self%in_file%MPI_VAL /= MPI_DATATYPE_NULL%MPI_VAL) then
         call MPI_Type_free(self%in_file, ierr)
         call check(ierr, "MPI_Type_free", trouble)
         call keep_first(error, trouble)
      end if
      if (self%info%MPI_VAL /= MPI_INFO_NULL%MPI_VAL) then
         call MPI_Info_free(self%info, ierr)
         call check(ierr, "MPI_Info_free", trouble)
         call keep_first(error, trouble)
      end if
   end subroutine release

end module layer_mpiio
