!> The layers btio-pnetcdf and btio-pnetcdf-nonblocking: NAS BT-IO through PnetCDF, in the
!> file format CDF-5. The time step is the unlimited axis of one variable, so that each step
!> is a record. One blocking collective call moves each cell, or all cells of a step are
!> posted and then moved by one call.
!>
!> Memory: PnetCDF copies a cell (non-blocking: all cells of a step) to its own memory to
!> swap the bytes, since the format is big-endian.
module benchio_layer_btio_pnetcdf
   use, intrinsic :: iso_fortran_env, only: int64
   use benchio_btio_backend, only: btio_backend_t
   use benchio_btio_partition, only: values_per_point
   use benchio_btio_sections, only: memory_sections
   use benchio_datatypes, only: free_datatype
   use benchio_errors, only: error_t
   use benchio_pnetcdf_api, only: check_pnetcdf, nfmpi_get_vara_all, nfmpi_iget_vara, &
                                  nfmpi_iput_vara, nfmpi_put_vara_all, nfmpi_wait_all
   use benchio_pnetcdf_file, only: pnetcdf_file_t
   use benchio_team, only: team_t
   use benchio_wait_limit, only: limit_wait
   use mpi_f08, only: MPI_Datatype, MPI_OFFSET_KIND
   implicit none(type, external)
   private

   public :: btio_pnetcdf_t

   ! PnetCDF's null request.
   integer, parameter :: no_request = -1
   ! Each call moves one element of the datatype of a cell.
   integer(MPI_OFFSET_KIND), parameter :: one = 1_MPI_OFFSET_KIND

   type, extends(btio_backend_t) :: btio_pnetcdf_t
      !> Whether each call moves its cell before it returns.
      logical :: blocking = .true.
      type(pnetcdf_file_t), private :: file
      logical, private :: is_ready = .false.
      !> The cells of a step in memory, inside their halos.
      type(MPI_Datatype), allocatable, private :: sections(:)
   contains
      procedure :: set_up
      procedure :: open_file
      procedure :: move_step
      procedure :: sync
      procedure :: close_file
      procedure :: take_down
   end type btio_pnetcdf_t

contains

   subroutine set_up(self, team, error)
      class(btio_pnetcdf_t), intent(inout) :: self
      type(team_t), intent(in) :: team
      type(error_t), allocatable, intent(out) :: error

      self%has_format = .true.
      call memory_sections(self%cells%partition, self%sections, error)
      if (allocated(error)) return
      self%file%axes = [character(len=8) :: "value", "x", "y", "z", "step"]
      self%file%is_unlimited = .true.
      call self%file%set_up(team%world, self%path, self%hints_asked, error)
      if (allocated(error)) return
      ! The data directly follow the header, as in the benchmark by PnetCDF's authors, with which
      ! sites compare.
      call self%file%set_default_hint(self%hints_asked, "nc_var_align_size", "1", error)
   end subroutine set_up

   subroutine open_file(self, writing, error)
      class(btio_pnetcdf_t), intent(inout) :: self
      logical, intent(in) :: writing
      type(error_t), allocatable, intent(out) :: error

      associate (partition => self%cells%partition)
         call self%file%open_file(writing, [values_per_point, partition%grid, &
                                            int(partition%steps, int64)], self%is_ready, error)
      end associate
      self%data_start = self%file%data_start
      self%header_bytes = self%data_start
   end subroutine open_file

   subroutine move_step(self, writing, step, error)
      class(btio_pnetcdf_t), intent(inout) :: self
      logical, intent(in) :: writing
      integer, intent(in) :: step
      type(error_t), allocatable, intent(out) :: error

      if (.not. self%is_ready) return
      if (self%blocking) then
         call move_each(self, writing, step, self%cells%values, error)
      else
         call move_together(self, writing, step, self%cells%values, error)
      end if
      call limit_wait(error)
   end subroutine move_step

   !> Moves one cell after the other; all processes have the same number of cells.
   subroutine move_each(self, writing, step, values, error)
      class(btio_pnetcdf_t), intent(in) :: self
      logical, intent(in) :: writing
      integer, intent(in) :: step
      integer(int64), intent(inout), contiguous :: values(:, :, :, :, :)
      type(error_t), allocatable, intent(out) :: error
      integer(MPI_OFFSET_KIND) :: start(5), lengths(5)
      integer :: cell

      associate (file => self%file%file, variable => self%file%variable)
         do cell = 1, size(self%sections)
            call place_cell(self, step, cell, start, lengths)
            if (writing) then
               call check_pnetcdf(nfmpi_put_vara_all(file, variable, start, lengths, values, one, &
                                                     self%sections(cell)%MPI_VAL), &
                                  "ncmpi_put_vara_all of "//self%path, error)
            else
               call check_pnetcdf(nfmpi_get_vara_all(file, variable, start, lengths, values, one, &
                                                     self%sections(cell)%MPI_VAL), &
                                  "ncmpi_get_vara_all of "//self%path, error)
            end if
         end do
      end associate
   end subroutine move_each

   !> Posts all cells, and moves them by one call.
   subroutine move_together(self, writing, step, values, error)
      class(btio_pnetcdf_t), intent(in) :: self
      logical, intent(in) :: writing
      integer, intent(in) :: step
      integer(int64), intent(inout), asynchronous, contiguous :: values(:, :, :, :, :)
      type(error_t), allocatable, intent(out) :: error
      integer(MPI_OFFSET_KIND) :: start(5), lengths(5)
      integer :: requests(size(self%sections)), statuses(size(self%sections))
      integer :: cell

      requests = no_request
      statuses = 0
      associate (file => self%file%file, variable => self%file%variable)
         do cell = 1, size(self%sections)
            call place_cell(self, step, cell, start, lengths)
            if (writing) then
               call check_pnetcdf(nfmpi_iput_vara(file, variable, start, lengths, values, one, &
                                                  self%sections(cell)%MPI_VAL, requests(cell)), &
                                  "ncmpi_iput_vara of "//self%path, error)
            else
               call check_pnetcdf(nfmpi_iget_vara(file, variable, start, lengths, values, one, &
                                                  self%sections(cell)%MPI_VAL, requests(cell)), &
                                  "ncmpi_iget_vara of "//self%path, error)
            end if
         end do
         call check_pnetcdf(nfmpi_wait_all(file, size(requests), requests, statuses), &
                            "ncmpi_wait_all of "//self%path, error)
      end associate
      do cell = 1, size(statuses)
         call check_pnetcdf(statuses(cell), "ncmpi_wait_all of "//self%path, error)
      end do
   end subroutine move_together

   !> The start, from 1, and the lengths of a cell in the variable.
   pure subroutine place_cell(self, step, cell, start, lengths)
      class(btio_pnetcdf_t), intent(in) :: self
      integer, intent(in) :: step, cell
      integer(MPI_OFFSET_KIND), intent(out) :: start(5), lengths(5)

      associate (it => self%cells%partition%cells(cell))
         start = [1_int64, it%start + 1, int(step, int64)]
         lengths = [values_per_point, it%points, 1_int64]
      end associate
   end subroutine place_cell

   subroutine sync(self, error)
      class(btio_pnetcdf_t), intent(inout) :: self
      type(error_t), allocatable, intent(out) :: error

      call self%file%sync(error)
   end subroutine sync

   subroutine close_file(self, error)
      class(btio_pnetcdf_t), intent(inout) :: self
      type(error_t), allocatable, intent(out) :: error

      call self%file%close_file(error)
      self%outcome%info_used = self%file%info_used
   end subroutine close_file

   subroutine take_down(self, error)
      class(btio_pnetcdf_t), intent(inout) :: self
      type(error_t), allocatable, intent(out) :: error
      integer :: at

      call self%file%take_down(error)
      if (.not. allocated(self%sections)) return
      do at = 1, size(self%sections)
         call free_datatype(self%sections(at), error)
      end do
   end subroutine take_down

end module benchio_layer_btio_pnetcdf
