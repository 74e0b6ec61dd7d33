!> The layer serial: rank 0 gathers the whole array and writes it to one file in Fortran
!> order, with the memory and messages of the funnel. A step is as many planes of the whole
!> array as fit the buffer.
module benchio_layer_serial
   use, intrinsic :: iso_fortran_env, only: int64
   use benchio_errors, only: error_t
   use benchio_file_names, only: path_in
   use benchio_funnel, only: buffer_bytes, funnel_t, piece_t, span_t
   use benchio_layout, only: coords_of, element_bytes
   use benchio_team, only: team_t
   implicit none(type, external)
   private

   public :: serial_t

   type, extends(funnel_t) :: serial_t
      private
      integer(int64) :: planes_of_step = 1_int64
   contains
      procedure :: set_up
      procedure :: piece
      procedure :: span
   end type serial_t

contains

   subroutine set_up(self, team, directory, error)
      class(serial_t), intent(inout) :: self
      type(team_t), intent(in) :: team
      character(len=*), intent(in) :: directory
      type(error_t), allocatable, intent(out) :: error
      integer(int64) :: plane

      self%path = path_in(directory, self%name)
      self%first_path = self%path
      self%path_bytes = self%block%layout%whole_elements()*element_bytes
      self%is_whole = .true.
      self%writers = 1
      self%owns_path = team%rank == 0
      self%clears_cache = team%rank == 0
      self%comm = team%world
      self%member = team%rank
      self%members = team%size

      associate (whole => self%block%layout%whole)
         self%row = int(whole(1))
         self%rows_of_plane = int(whole(2))
         plane = whole(1)*whole(2)
         self%planes_of_step = min(whole(3), max(1_int64, buffer_bytes/(plane*element_bytes)))
         self%steps = int((whole(3) + self%planes_of_step - 1)/self%planes_of_step)
      end associate
      self%buffer_elements = plane*self%planes_of_step
      call self%allocate_buffer(error)
   end subroutine set_up

   pure function piece(self, step, source) result(res)
      class(serial_t), intent(in) :: self
      integer, intent(in) :: step, source
      type(piece_t) :: res
      integer(int64) :: start(3), slab, first, last

      associate (layout => self%block%layout)
         start = coords_of(layout%procs, source)*layout%block
         slab = step*self%planes_of_step
         first = max(slab, start(3))
         last = min(slab + self%planes_of_step, start(3) + layout%block(3)) - 1
         if (last < first) return
         res%first_plane = first - start(3) + 1
         res%planes = int(last - first + 1)
         res%position = 1 + start(1) + layout%whole(1)*(start(2) + layout%whole(2)*(first - slab))
      end associate
   end function piece

   pure function span(self, step) result(res)
      class(serial_t), intent(in) :: self
      integer, intent(in) :: step
      type(span_t) :: res
      integer(int64) :: slab

      associate (whole => self%block%layout%whole)
         slab = step*self%planes_of_step
         res%first = whole(1)*whole(2)*slab
         res%elements = whole(1)*whole(2)*min(self%planes_of_step, whole(3) - slab)
      end associate
   end function span

end module benchio_layer_serial
