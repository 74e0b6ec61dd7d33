!> The proof that a rate is valid: the data of a read were not in the page cache and are
!> correct, and a write with O_DIRECT left nothing there.
module benchio_proof
   use, intrinsic :: iso_fortran_env, only: int64
   use benchio_backend, only: backend_t
   use benchio_difference, only: difference_t
   use benchio_errors, only: error_t, fail, keep_first
   use benchio_page_cache, only: count_pages, drop_file, flush_file
   use benchio_team, only: team_t
   use benchio_text, only: string_t, to_text
   implicit none(type, external)
   private

   public :: drop_cache, check_bypassed, compare_data

contains

   !> Drops the files' pages on every node that will read them; collective, with the same
   !> error on all processes.
   subroutine drop_cache(team, layer, dropped, error)
      type(team_t), intent(in) :: team
      class(backend_t), intent(in) :: layer
      logical, intent(out) :: dropped
      type(error_t), allocatable, intent(out) :: error
      type(error_t), allocatable :: trouble
      type(string_t), allocatable :: paths(:)
      logical :: mine, one
      integer :: at

      dropped = .false.
      ! All nodes flush first: on a shared file system one may have to wait for another's
      ! dirty pages.
      call layer%list_cached(paths, error)
      do at = 1, size(paths)
         if (.not. allocated(error)) call flush_file(paths(at)%value, error)
      end do
      call team%agree(error)
      if (allocated(error)) return
      mine = .true.
      do at = 1, size(paths)
         call drop_file(paths(at)%value, one, trouble)
         call keep_first(error, trouble)
         mine = mine .and. one
      end do
      call team%all_of(mine, dropped, trouble)
      call keep_first(error, trouble)
      call team%agree(error)
   end subroutine drop_cache

   !> An error if the page cache holds data of files that were written with O_DIRECT: some systems
   !> use it where O_DIRECT is not possible. Collective, with the same error on all processes.
   subroutine check_bypassed(team, layer, error)
      type(team_t), intent(in) :: team
      class(backend_t), intent(in) :: layer
      type(error_t), allocatable, intent(out) :: error
      type(string_t), allocatable :: paths(:)
      integer(int64) :: pages
      integer :: at

      call layer%list_cached(paths, error)
      do at = 1, size(paths)
         if (allocated(error)) exit
         call count_pages(paths(at)%value, pages, error)
         if (pages > 0_int64) then
            call fail(error, "the write of "//paths(at)%value//" was to bypass the page cache " &
                      //"(--direct), but left "//to_text(pages)//" pages there")
         end if
      end do
      call team%agree(error)
   end subroutine check_bypassed

   !> Compares the data read; collective, with the same error on all processes. Returns the
   !> number of correct bytes over all processes.
   subroutine compare_data(team, layer, correct_bytes, error)
      type(team_t), intent(in) :: team
      class(backend_t), intent(inout) :: layer
      integer(int64), intent(out) :: correct_bytes
      type(error_t), allocatable, intent(out) :: error
      type(error_t), allocatable :: trouble
      type(difference_t) :: seen
      character(len=:), allocatable :: place
      integer(int64) :: differing

      call layer%compare(seen)
      call team%sum_of(seen%differing, differing, trouble)
      if (seen%differing > 0) then
         place = "at "
         if (seen%byte >= 0_int64) place = "at byte "//to_text(seen%byte)//", "
         call fail(error, "verification of "//seen%path//" failed: "//place//"element " &
                   //to_text(seen%element) &
                   //" of the whole array, expected "//to_text(seen%expected)//" and found " &
                   //to_text(seen%found)//"; elements that differ, over all ranks: " &
                   //to_text(differing))
      else if (seen%halo_changed) then
         call fail(error, "verification of "//layer%path//" failed: the read changed the halo " &
                   //"of the block")
      end if
      call keep_first(error, trouble)
      call team%sum_of(seen%compared_bytes, correct_bytes, trouble)
      call keep_first(error, trouble)
      if (.not. allocated(error) .and. differing == 0 .and. correct_bytes /= layer%total_bytes) then
         call fail(error, "verification of "//layer%path//" failed: "//to_text(correct_bytes) &
                   //" of "//to_text(layer%total_bytes)//" bytes were compared")
      end if
      call team%agree(error)
   end subroutine compare_data

end module benchio_proof
