!> The layers pnetcdf and pnetcdf-nonblocking: one shared file in the format CDF-5 with the
!> whole array in Fortran order, which all processes write and read through PnetCDF, by
!> blocking collective calls or by a call that posts the transfer and one that completes it.
!>
!> Such a file is always big-endian; the library swaps the bytes. Memory: the library takes
!> the block inside its halo, and makes a contiguous copy of the data of a call, at most
!> 1 GiB.
module benchio_layer_pnetcdf
   use, intrinsic :: iso_fortran_env, only: int64
   use benchio_block_backend, only: block_backend_t
   use benchio_datatypes, only: free_datatype, make_section
   use benchio_errors, only: error_t, keep_first
   use benchio_layout, only: element_bytes
   use benchio_mpi_checks, only: check
   use benchio_pnetcdf_api, only: check_pnetcdf, nf_noerr, nfmpi_get_vara_all, nfmpi_iget_vara, &
                                  nfmpi_iput_vara, nfmpi_put_vara_all, nfmpi_wait_all
   use benchio_pnetcdf_file, only: pnetcdf_file_t
   use benchio_team, only: team_t
   use benchio_wait_limit, only: limit_wait
   use mpi_f08, only: MPI_Allreduce, MPI_Datatype, MPI_DATATYPE_NULL, MPI_INTEGER, MPI_MAX, &
                      MPI_OFFSET_KIND
   implicit none(type, external)
   private

   public :: pnetcdf_t

   ! By default PnetCDF is built to move less than 2 GiB per process and call.
   integer(int64), parameter :: piece_bytes = 2_int64**30

   type, extends(block_backend_t) :: pnetcdf_t
      !> Whether each call moves its data before it returns.
      logical :: blocking = .true.
      type(pnetcdf_file_t), private :: file
      logical, private :: is_ready = .false.
      !> The block is moved in pieces of whole planes; the last one may be smaller. All
      !> processes make as many calls as the largest block needs.
      integer, private :: planes = 1, last_planes = 1, pieces = 1, calls = 1
      !> The elements of the block with its halo along each axis.
      integer(int64), private :: room(3) = 0_int64
      !> A piece in memory, inside its halo.
      type(MPI_Datatype), private :: piece = MPI_DATATYPE_NULL, last_piece = MPI_DATATYPE_NULL
   contains
      procedure :: set_up
      procedure :: open_file
      procedure :: move_data
      procedure :: sync
      procedure :: close_file
      procedure :: take_down
   end type pnetcdf_t

contains

   subroutine set_up(self, team, directory, error)
      class(pnetcdf_t), intent(inout) :: self
      type(team_t), intent(in) :: team
      character(len=*), intent(in) :: directory
      type(error_t), allocatable, intent(out) :: error
      integer :: ierr

      call self%plan_library_file(team, directory)
      self%room = self%block%room()
      associate (n => self%block%layout%block)
         self%planes = int(min(n(3), max(1_int64, piece_bytes/(n(1)*n(2)*element_bytes))))
         self%pieces = int((n(3) + self%planes - 1)/self%planes)
         self%last_planes = int(n(3)) - (self%pieces - 1)*self%planes
         call MPI_Allreduce(self%pieces, self%calls, 1, MPI_INTEGER, MPI_MAX, team%world, ierr)
         call check(ierr, "MPI_Allreduce", error)
         if (allocated(error)) return
         call make_piece(self, self%planes, self%piece, error)
         if (allocated(error)) return
         call make_piece(self, self%last_planes, self%last_piece, error)
         if (allocated(error)) return
      end associate
      call self%file%set_up(team%world, self%path, self%hints_asked, error)
   end subroutine set_up

   !> The datatype of a number of planes of a block, from the first plane of a call on.
   subroutine make_piece(self, planes, res, error)
      class(pnetcdf_t), intent(in) :: self
      integer, intent(in) :: planes
      type(MPI_Datatype), intent(out) :: res
      type(error_t), allocatable, intent(out) :: error

      associate (block => self%block%layout%block, halo => self%block%halo)
         call make_section([self%room(1), self%room(2), int(planes, int64)], &
                           [block(1), block(2), int(planes, int64)], [halo, halo, 0_int64], &
                           res, error)
      end associate
   end subroutine make_piece

   subroutine open_file(self, writing, error)
      class(pnetcdf_t), intent(inout) :: self
      logical, intent(in) :: writing
      type(error_t), allocatable, intent(out) :: error

      call self%file%open_file(writing, self%block%layout%whole, self%is_ready, error)
      self%data_start = self%file%data_start
      self%header_bytes = self%data_start
   end subroutine open_file

   subroutine move_data(self, writing, error)
      class(pnetcdf_t), intent(inout) :: self
      logical, intent(in) :: writing
      type(error_t), allocatable, intent(out) :: error

      call move(self, writing, self%block%cells, error)
   end subroutine move_data

   !> Moves the block piece by piece; collective. After an error in one piece the process
   !> still takes part in the following calls.
   subroutine move(self, writing, cells, error)
      class(pnetcdf_t), intent(inout) :: self
      logical, intent(in) :: writing
      ! Of explicit shape, so that an element can be passed as the start of a piece.
      integer(int64), intent(inout), asynchronous :: cells(self%room(1), self%room(2), self%room(3))
      type(error_t), allocatable, intent(out) :: error
      type(error_t), allocatable :: trouble
      integer(MPI_OFFSET_KIND) :: starts(3), counts(3), items
      type(MPI_Datatype) :: datatype
      integer :: call_number, plane, request, status

      if (.not. self%is_ready) return
      do call_number = 1, self%calls
         call place_piece(self, call_number, plane, starts, counts, datatype)
         items = merge(1_MPI_OFFSET_KIND, 0_MPI_OFFSET_KIND, counts(3) > 0)
         associate (file => self%file%file, variable => self%file%variable)
            if (self%blocking .and. writing) then
               status = nfmpi_put_vara_all(file, variable, starts, counts, cells(1, 1, plane), &
                                           items, datatype%MPI_VAL)
               call check_pnetcdf(status, "ncmpi_put_vara_all of "//self%path, trouble)
            else if (self%blocking) then
               status = nfmpi_get_vara_all(file, variable, starts, counts, cells(1, 1, plane), &
                                           items, datatype%MPI_VAL)
               call check_pnetcdf(status, "ncmpi_get_vara_all of "//self%path, trouble)
            else if (writing) then
               status = nfmpi_iput_vara(file, variable, starts, counts, cells(1, 1, plane), &
                                        items, datatype%MPI_VAL, request)
               call check_pnetcdf(status, "ncmpi_iput_vara of "//self%path, trouble)
            else
               status = nfmpi_iget_vara(file, variable, starts, counts, cells(1, 1, plane), &
                                        items, datatype%MPI_VAL, request)
               call check_pnetcdf(status, "ncmpi_iget_vara of "//self%path, trouble)
            end if
         end associate
         if (.not. self%blocking) call wait_for(self, request, trouble)
         call keep_first(error, trouble)
         call limit_wait(error)
      end do
   end subroutine move

   !> Completes a posted transfer; collective. After an error the process has no request, and
   !> only takes part in the transfers of the others.
   subroutine wait_for(self, request, error)
      class(pnetcdf_t), intent(in) :: self
      integer, intent(in) :: request
      type(error_t), allocatable, intent(inout) :: error
      integer :: requests(1), statuses(1), status

      requests = request
      statuses = nf_noerr
      status = nfmpi_wait_all(self%file%file, merge(0, 1, allocated(error)), requests, statuses)
      call check_pnetcdf(status, "ncmpi_wait_all of "//self%path, error)
      call check_pnetcdf(statuses(1), "ncmpi_wait_all of "//self%path, error)
   end subroutine wait_for

   !> The place of a piece in the array and in memory, both from 1; empty if the block has fewer
   !> pieces.
   subroutine place_piece(self, number, plane, starts, counts, datatype)
      class(pnetcdf_t), intent(in) :: self
      integer, intent(in) :: number
      integer, intent(out) :: plane
      integer(MPI_OFFSET_KIND), intent(out) :: starts(3), counts(3)
      type(MPI_Datatype), intent(out) :: datatype

      associate (layout => self%block%layout)
         starts = int(layout%start, MPI_OFFSET_KIND) + 1
         counts = 0_MPI_OFFSET_KIND
         plane = 1 + int(self%block%halo)
         datatype = self%piece
         if (number > self%pieces) return
         counts = int(layout%block, MPI_OFFSET_KIND)
         counts(3) = self%planes
         if (number == self%pieces) then
            counts(3) = self%last_planes
            datatype = self%last_piece
         end if
         plane = plane + (number - 1)*self%planes
         starts(3) = starts(3) + (number - 1)*self%planes
      end associate
   end subroutine place_piece

   subroutine sync(self, error)
      class(pnetcdf_t), intent(inout) :: self
      type(error_t), allocatable, intent(out) :: error

      call self%file%sync(error)
   end subroutine sync

   subroutine close_file(self, error)
      class(pnetcdf_t), intent(inout) :: self
      type(error_t), allocatable, intent(out) :: error

      call self%file%close_file(error)
      self%outcome%info_used = self%file%info_used
   end subroutine close_file

   subroutine take_down(self, error)
      class(pnetcdf_t), intent(inout) :: self
      type(error_t), allocatable, intent(out) :: error

      call self%file%take_down(error)
      call free_datatype(self%piece, error)
      call free_datatype(self%last_piece, error)
   end subroutine take_down

end module benchio_layer_pnetcdf
