!> The run: each layer in each directory, as often as asked, phase by phase.
!> After a failure all processes stop together and leave no file of the phase.
module run
   use, intrinsic :: iso_fortran_env, only: int64
   use backend, only: backend_t
   use block_data, only: block_t, difference_t
   use errors, only: error_t, fail, keep_first
   use layout, only: element_bytes
   use mpi_checks, only: check
   use mpi_f08, only: MPI_Barrier
   use options, only: options_t
   use page_cache, only: drop_file, flush_file
   use phase, only: phase_t, run_phase
   use posix_file, only: check_complete, check_creatable, remove_file
   use progress, only: say_layer, say_note, say_rate, say_start
   use registry, only: make_layer
   use result_file, only: result_file_t, result_line
   use team, only: team_t
   use text, only: to_text
   implicit none(type, external)
   private

   public :: run_t

   !> What the parts of a run have in common.
   type :: run_t
      type(team_t) :: team
      type(options_t) :: asked
      type(block_t), pointer :: block => null()
      integer(int64) :: seed = 0_int64
      character(len=:), allocatable :: mpi_library
      type(result_file_t) :: results
   contains
      procedure :: everything
   end type run_t

contains

   !> Runs all that was asked; collective. An error is that of all processes.
   subroutine everything(self, error)
      class(run_t), intent(inout) :: self
      type(error_t), allocatable, intent(out) :: error
      integer :: at, where

      do at = 1, size(self%asked%layers)
         if (self%team%rank == 0) call say_layer(self%asked%layers(at)%value)
         do where = 1, size(self%asked%directories)
            call one_layer(self, self%asked%layers(at)%value, &
                           self%asked%directories(where)%value, error)
            if (allocated(error)) return
         end do
      end do
   end subroutine everything

   !> One layer in one directory.
   subroutine one_layer(self, name, directory, error)
      class(run_t), intent(inout) :: self
      character(len=*), intent(in) :: name, directory
      type(error_t), allocatable, intent(out) :: error
      type(error_t), allocatable :: trouble
      class(backend_t), allocatable :: layer
      integer :: repeat

      call make_layer(name, self%asked%hints, layer)
      call layer%prepare(self%team, self%block, directory, error)
      call self%team%agree(error)
      do repeat = 1, self%asked%repeats
         if (allocated(error)) exit
         call one_repeat(self, layer, repeat, error)
      end do
      if (allocated(layer%note)) call say_note(layer%note)
      call layer%release(trouble)
      call self%team%agree(trouble)
      call keep_first(error, trouble)
   end subroutine one_layer

   !> A write and a read, as far as asked. Whatever happens, files that are not
   !> to be kept are removed.
   subroutine one_repeat(self, layer, repeat, error)
      class(run_t), intent(inout) :: self
      class(backend_t), intent(inout) :: layer
      integer, intent(in) :: repeat
      type(error_t), allocatable, intent(out) :: error
      type(error_t), allocatable :: trouble

      call measure(self, layer, repeat, error)
      if (.not. self%asked%write) return
      if (.not. allocated(error) .and. self%asked%keep .and. repeat == self%asked%repeats) return
      call remove_own(layer, trouble)
      call self%team%agree(trouble)
      if (allocated(trouble) .and. allocated(error)) then
         error%text = error%text//new_line("a")//trouble%text
      else
         call keep_first(error, trouble)
      end if
   end subroutine one_repeat

   !> The phases of a repeat. When the data are to be verified, nothing is said
   !> of the write either before they were found right.
   subroutine measure(self, layer, repeat, error)
      class(run_t), intent(inout) :: self
      class(backend_t), intent(inout) :: layer
      integer, intent(in) :: repeat
      type(error_t), allocatable, intent(out) :: error
      type(phase_t) :: wrote, got

      if (self%asked%write) then
         if (self%team%rank == 0) call say_start(.true., layer%first_path)
         call write_phase(self, layer, wrote, error)
         if (allocated(error)) return
         wrote%repeat = repeat
         if (.not. self%asked%verify) then
            call report(self, layer, wrote, error)
            if (allocated(error)) return
         end if
      end if
      if (.not. self%asked%read) return

      if (self%team%rank == 0 .and. .not. (self%asked%write .and. self%asked%verify)) then
         call say_start(.false., layer%first_path)
      end if
      call read_phase(self, layer, got, error)
      if (allocated(error)) return
      got%repeat = repeat
      if (self%asked%verify .and. self%asked%write) then
         wrote%verified = .true.
         wrote%verified_bytes = got%verified_bytes
         call report(self, layer, wrote, error)
         if (allocated(error)) return
         if (self%team%rank == 0) call say_start(.false., layer%first_path)
      end if
      call report(self, layer, got, error)
   end subroutine measure

   subroutine write_phase(self, layer, res, error)
      class(run_t), intent(inout) :: self
      class(backend_t), intent(inout) :: layer
      type(phase_t), intent(out) :: res
      type(error_t), allocatable, intent(out) :: error

      call self%block%fill()
      call remove_own(layer, error)
      if (layer%tries_first .and. .not. allocated(error)) call check_creatable(layer%path, error)
      call self%team%agree(error)
      if (allocated(error)) return
      call run_phase(self%team, layer, .true., self%asked%fsync, res, error)
      call self%team%agree(error)
      if (allocated(error)) return
      call check_file(layer, error)
      if (allocated(error)) error%text = error%text//"; is the file system or a quota full?"
      call self%team%agree(error)
   end subroutine write_phase

   subroutine read_phase(self, layer, res, error)
      class(run_t), intent(inout) :: self
      class(backend_t), intent(inout) :: layer
      type(phase_t), intent(out) :: res
      type(error_t), allocatable, intent(out) :: error
      logical :: dropped

      call layer%forget()
      call check_file(layer, error)
      call self%team%agree(error)
      if (allocated(error)) return
      call drop_cache(self, layer, dropped, error)
      if (allocated(error)) return
      call run_phase(self%team, layer, .false., .false., res, error)
      call self%team%agree(error)
      if (allocated(error)) return
      res%cache_dropped = dropped
      if (.not. self%asked%verify) return
      res%verified = .true.
      call verify_block(self, layer, res%verified_bytes, error)
   end subroutine read_phase

   !> Drops the files' pages on every node that is going to read them.
   !> Collective, and so is its error.
   subroutine drop_cache(self, layer, dropped, error)
      class(run_t), intent(in) :: self
      class(backend_t), intent(in) :: layer
      logical, intent(out) :: dropped
      type(error_t), allocatable, intent(out) :: error
      type(error_t), allocatable :: trouble
      logical :: mine

      ! In two rounds: what one node has not flushed, another may wait for.
      if (layer%tends_cache) call flush_file(layer%path, error)
      call self%team%agree(error)
      if (allocated(error)) return
      mine = .true.
      if (layer%tends_cache) call drop_file(layer%path, mine, error)
      call self%team%all_of(mine, dropped, trouble)
      call keep_first(error, trouble)
      call self%team%agree(error)
   end subroutine drop_cache

   !> Every byte that was to be written must be in the file, and no more.
   subroutine check_file(layer, error)
      class(backend_t), intent(in) :: layer
      type(error_t), allocatable, intent(out) :: error

      if (layer%owns_path) call check_complete(layer%path, layer%path_bytes, error)
   end subroutine check_file

   subroutine remove_own(layer, error)
      class(backend_t), intent(in) :: layer
      type(error_t), allocatable, intent(out) :: error

      if (layer%owns_path) call remove_file(layer%path, error)
   end subroutine remove_own

   !> Compares what was read; collective, and so is its error. Returns the bytes
   !> that all processes found right.
   subroutine verify_block(self, layer, right, error)
      class(run_t), intent(in) :: self
      class(backend_t), intent(in) :: layer
      integer(int64), intent(out) :: right
      type(error_t), allocatable, intent(out) :: error
      type(error_t), allocatable :: trouble
      type(difference_t) :: seen
      integer(int64) :: differing

      seen = self%block%compare()
      call self%team%sum_of(seen%differing, differing, trouble)
      if (seen%differing > 0) then
         call fail(error, "verification of "//layer%path//" failed: at byte " &
                   //to_text(layer%offset_of(seen%place))//", element " &
                   //to_text(self%block%layout%global_index(seen%place(1), seen%place(2), &
                                                            seen%place(3))) &
                   //" of the whole array, expected "//to_text(seen%expected)//" and found " &
                   //to_text(seen%found)//"; "//to_text(differing) &
                   //" elements differ over all ranks")
      else if (seen%halo_changed) then
         call fail(error, "verification of "//layer%path//" failed: the read changed the halo " &
                   //"of the block")
      end if
      call keep_first(error, trouble)
      call self%team%sum_of((seen%compared - seen%differing)*element_bytes, right, trouble)
      call keep_first(error, trouble)
      if (.not. allocated(error) .and. differing == 0 &
          .and. right /= self%block%layout%whole_elements()*element_bytes) then
         call fail(error, "verification of "//layer%path//" failed: only "//to_text(right) &
                   //" bytes were compared")
      end if
      call self%team%agree(error)
   end subroutine verify_block

   !> Prints and records a phase; collective, since rank 0 may fail to.
   subroutine report(self, layer, phase, error)
      class(run_t), intent(inout) :: self
      class(backend_t), intent(in) :: layer
      type(phase_t), intent(in) :: phase
      type(error_t), allocatable, intent(out) :: error
      type(error_t), allocatable :: trouble
      integer :: ierr

      if (self%team%rank == 0) then
         call self%results%append(result_line(self%team, layer, phase, self%seed, &
                                              self%mpi_library), error)
         if (.not. allocated(error)) call say_rate(phase)
      end if
      call MPI_Barrier(self%team%world, ierr)
      call check(ierr, "MPI_Barrier", trouble)
      call keep_first(error, trouble)
      call self%team%agree(error)
   end subroutine report

end module run
