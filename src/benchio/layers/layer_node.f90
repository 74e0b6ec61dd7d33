!> The layer node: on each node one process gathers the blocks of all and writes them to one
!> file in the order of their ranks, each in Fortran order, with the memory and messages of
!> the funnel. A step is as many planes of one block as fit the buffer.
module benchio_layer_node
   use, intrinsic :: iso_fortran_env, only: int64
   use benchio_errors, only: error_t
   use benchio_file_names, only: path_in
   use benchio_funnel, only: buffer_bytes, funnel_t, piece_t, span_t
   use benchio_layout, only: element_bytes
   use benchio_team, only: team_t
   implicit none(type, external)
   private

   public :: node_t

   type, extends(funnel_t) :: node_t
      private
      integer(int64) :: planes_of_step = 1_int64
      integer :: steps_of_block = 1
   contains
      procedure :: set_up
      procedure :: piece
      procedure :: span
   end type node_t

contains

   subroutine set_up(self, team, directory, error)
      class(node_t), intent(inout) :: self
      type(team_t), intent(in) :: team
      character(len=*), intent(in) :: directory
      type(error_t), allocatable, intent(out) :: error
      integer(int64) :: plane

      self%path = path_in(directory, self%name, team%node)
      self%first_path = path_in(directory, self%name, 0)
      self%path_bytes = self%block%layout%block_elements()*element_bytes*team%node_size
      self%data_start = self%block%layout%block_elements()*element_bytes*team%node_rank
      self%files = team%nodes
      self%writers = team%nodes
      self%owns_path = team%node_rank == 0
      self%clears_cache = team%node_rank == 0
      self%comm = team%node_comm
      self%member = team%node_rank
      self%members = team%node_size

      associate (n => self%block%layout%block)
         self%row = int(n(1))
         self%rows_of_plane = int(n(2))
         plane = n(1)*n(2)
         self%planes_of_step = min(n(3), max(1_int64, buffer_bytes/(plane*element_bytes)))
         self%steps_of_block = int((n(3) + self%planes_of_step - 1)/self%planes_of_step)
      end associate
      self%steps = self%steps_of_block*self%members
      self%buffer_elements = plane*self%planes_of_step
      call self%allocate_buffer(error)
   end subroutine set_up

   pure function piece(self, step, source) result(res)
      class(node_t), intent(in) :: self
      integer, intent(in) :: step, source
      type(piece_t) :: res

      if (step/self%steps_of_block /= source) return
      res%first_plane = mod(step, self%steps_of_block)*self%planes_of_step + 1
      res%planes = int(min(self%planes_of_step, &
                           self%block%layout%block(3) - res%first_plane + 1))
   end function piece

   pure function span(self, step) result(res)
      class(node_t), intent(in) :: self
      integer, intent(in) :: step
      type(span_t) :: res
      type(piece_t) :: part

      associate (n => self%block%layout%block)
         part = self%piece(step, step/self%steps_of_block)
         res%first = n(1)*n(2)*(n(3)*(step/self%steps_of_block) + part%first_plane - 1)
         res%elements = n(1)*n(2)*part%planes
      end associate
   end function span

end module benchio_layer_node
