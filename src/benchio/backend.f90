!> What every layer is: a way to bring the blocks of all processes to files and
!> back. The rest of benchio knows layers by this type alone.
!>
!> A measured phase is open_file, write_block or read_block, sync (when asked)
!> and close_file. All processes call each of them, also after an error in the
!> one before: a layer in which processes work together must not leave the
!> others waiting. There is no agreement on errors in between, for that would
!> make the processes wait for each other inside the clock.
module backend
   use, intrinsic :: iso_fortran_env, only: int64
   use block_data, only: block_t
   use errors, only: error_t
   use layout, only: element_bytes
   use team, only: team_t
   implicit none(type, external)
   private

   public :: backend_t, hint_t, path_in

   !> An MPI-IO hint.
   type :: hint_t
      character(len=:), allocatable :: key, value
   end type hint_t

   type, abstract :: backend_t
      ! These are set by whoever makes a layer.
      !> What the layer is called, and of what kind it is.
      character(len=:), allocatable :: name, pattern, interface_name
      !> What MPI-IO is to be told; no matter to the other layers.
      type(hint_t), allocatable :: hints_asked(:)

      ! These are set by prepare.
      !> What is written, and read into.
      type(block_t), pointer :: block => null()
      !> The file that this process's block goes to, and the first file of all.
      character(len=:), allocatable :: path, first_path
      !> Bytes that `path` has when it is complete, and the number of all files.
      integer(int64) :: path_bytes = 0_int64
      integer :: files = 1
      !> Whether `path` holds the whole array; else it holds this block from
      !> byte `block_start` on.
      logical :: is_whole = .false.
      integer(int64) :: block_start = 0_int64
      !> Whether this process is the one that removes and measures `path`.
      logical :: owns_path = .false.
      !> Whether to try first, outside the clock, if the file can be made.
      logical :: tries_first = .false.
      !> Whether this process is the one that sees to the pages of `path` in its
      !> node's cache: one on each node that reads it.
      logical :: tends_cache = .false.

      !> Rank 0: the hints in effect, read back from the file last opened.
      type(hint_t), allocatable :: hints(:)
      !> Rank 0: what people should know of the figures, where there is such.
      character(len=:), allocatable :: note
   contains
      procedure(prepare_i), deferred :: prepare
      procedure(open_i), deferred :: open_file
      procedure(stage_i), deferred :: write_block
      procedure(stage_i), deferred :: read_block
      procedure(stage_i), deferred :: sync
      procedure(stage_i), deferred :: close_file
      procedure(stage_i), deferred :: release
      procedure :: forget
      procedure :: offset_of
   end type backend_t

   abstract interface
      !> Does everything that need not be measured: names, buffers, datatypes.
      !> The files go to `directory`. The block must stay where it is in memory
      !> until release.
      subroutine prepare_i(self, team, block, directory, error)
         import :: backend_t, block_t, error_t, team_t
         implicit none(type, external)
         class(backend_t), intent(inout) :: self
         type(team_t), intent(in) :: team
         type(block_t), intent(inout), target :: block
         character(len=*), intent(in) :: directory
         type(error_t), allocatable, intent(out) :: error
      end subroutine prepare_i

      !> Makes the files new for writing, or opens them for reading.
      subroutine open_i(self, writing, error)
         import :: backend_t, error_t
         implicit none(type, external)
         class(backend_t), intent(inout) :: self
         logical, intent(in) :: writing
         type(error_t), allocatable, intent(out) :: error
      end subroutine open_i

      !> write_block, read_block: moves the interior of the block.
      !> sync: has the system bring what was written to the file system.
      !> close_file: undoes open_file.
      !> release: gives back what prepare took.
      subroutine stage_i(self, error)
         import :: backend_t, error_t
         implicit none(type, external)
         class(backend_t), intent(inout) :: self
         type(error_t), allocatable, intent(out) :: error
      end subroutine stage_i
   end interface

contains

   !> Overwrites all memory that a read could find the data in without reading.
   !> A layer with memory of its own overwrites that too.
   subroutine forget(self)
      class(backend_t), intent(inout) :: self

      call self%block%forget()
   end subroutine forget

   !> The byte of `path` at which an element of this process's block begins;
   !> `place` counts from 1.
   pure function offset_of(self, place) result(res)
      class(backend_t), intent(in) :: self
      integer(int64), intent(in) :: place(3)
      integer(int64) :: res

      associate (layout => self%block%layout)
         if (self%is_whole) then
            res = layout%global_index(place(1), place(2), place(3))*element_bytes
         else
            res = layout%local_index(place(1), place(2), place(3))*element_bytes + self%block_start
         end if
      end associate
   end function offset_of

   !> The path of a file of a layer; `number` for one of several.
   pure function path_in(directory, layer, number) result(res)
      character(len=*), intent(in) :: directory, layer
      integer, intent(in), optional :: number
      character(len=:), allocatable :: res
      character(len=12) :: digits

      digits = ""
      if (present(number)) write (digits, "(i0.6)") number
      res = directory
      if (res(len(res):) /= "/") res = res//"/"
      res = res//layer//trim(digits)//".dat"
   end function path_in

end module backend
