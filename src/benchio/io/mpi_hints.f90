!> MPI-IO hints: passed to the library, and read back from an open file. A hint that the
!> library returns is proof only if it does not return unknown hints as well.
module benchio_mpi_hints
   use, intrinsic :: iso_c_binding, only: c_int, c_null_char
   use benchio_errors, only: error_t, keep_first
   use benchio_mpi_checks, only: check
   use benchio_posix_api, only: c_fnmatch
   use benchio_task, only: hint_t
   use benchio_team, only: team_t
   use mpi_f08, only: MPI_Allreduce, MPI_Info, MPI_Info_create, MPI_Info_free, MPI_Info_get, &
                      MPI_Info_get_nkeys, MPI_Info_get_nthkey, MPI_Info_get_valuelen, &
                      MPI_Info_set, MPI_INFO_NULL, MPI_INTEGER, MPI_MAX_INFO_KEY, MPI_MIN
   implicit none(type, external)
   private

   public :: make_info, free_info, read_hints, missed_hints

   ! A hint that no library knows. Open MPI 4 returns every hint that it was given, this
   ! one too; what it returns proves nothing.
   character(len=*), parameter :: unknown_hint = "benchio_unknown_hint"

contains

   !> Makes an MPI info object of the hints that apply to the file `path`, the last one of
   !> each key, and removes the others from `hints`. Leaves those of ROMIO's own file to ROMIO:
   !> from Open MPI 5.0.4, ROMIO loses what stands in the object, and then looks at no file.
   subroutine make_info(hints, path, info, error)
      type(hint_t), allocatable, intent(inout) :: hints(:)
      character(len=*), intent(in) :: path
      type(MPI_Info), intent(out) :: info
      type(error_t), allocatable, intent(out) :: error
      logical, allocatable :: applies(:)
      type(hint_t), allocatable :: left(:)
      integer :: at, before, ierr

      allocate (applies(size(hints)))
      do at = 1, size(hints)
         applies(at) = applies_to(hints(at), path)
         if (.not. applies(at)) cycle
         do before = 1, at - 1
            if (hints(before)%key == hints(at)%key) applies(before) = .false.
         end do
      end do
      allocate (left, source=pack(hints, applies))
      call move_alloc(left, hints)

      call MPI_Info_create(info, ierr)
      call check(ierr, "MPI_Info_create", error)
      if (allocated(error)) return
      if (all(hints%is_in_file)) return
      call MPI_Info_set(info, unknown_hint, "1", ierr)
      call check(ierr, "MPI_Info_set of "//unknown_hint, error)
      if (allocated(error)) return
      do at = 1, size(hints)
         if (hints(at)%is_in_file) cycle
         call MPI_Info_set(info, hints(at)%key, hints(at)%value, ierr)
         call check(ierr, "MPI_Info_set of "//hints(at)%key, error)
         if (allocated(error)) return
      end do
   end subroutine make_info

   !> Frees an info object, unless it is null. Keeps an earlier error.
   subroutine free_info(info, error)
      type(MPI_Info), intent(inout) :: info
      type(error_t), allocatable, intent(inout) :: error
      integer :: ierr

      if (info%MPI_VAL == MPI_INFO_NULL%MPI_VAL) return
      call MPI_Info_free(info, ierr)
      call check(ierr, "MPI_Info_free", error)
   end subroutine free_info

   function applies_to(hint, path) result(res)
      type(hint_t), intent(in) :: hint
      character(len=*), intent(in) :: path
      logical :: res

      res = .true.
      if (.not. allocated(hint%files)) return
      res = c_fnmatch(hint%files//c_null_char, path//c_null_char, 0_c_int) == 0
   end function applies_to

   !> The hints in effect, from the `info` of the open file on the lowest rank that has
   !> one; frees `info`. Collective; the error is this process's own. If the library
   !> returns unknown hints too, sets `unknown` and leaves out the hints in `asked`, about
   !> which nothing is proven.
   subroutine read_hints(team, info, asked, hints, unknown, error)
      type(team_t), intent(in) :: team
      type(MPI_Info), intent(inout) :: info
      type(hint_t), intent(in) :: asked(:)
      type(hint_t), allocatable, intent(out) :: hints(:)
      logical, intent(inout) :: unknown
      type(error_t), allocatable, intent(out) :: error
      type(error_t), allocatable :: trouble
      character(len=:), allocatable :: text
      integer :: mine, first, ierr

      allocate (hints(0))
      text = ""
      mine = team%size
      if (info%MPI_VAL /= MPI_INFO_NULL%MPI_VAL) then
         mine = team%rank
         call get_all(info, text, error)
         call free_info(info, error)
      end if
      call MPI_Allreduce(mine, first, 1, MPI_INTEGER, MPI_MIN, team%world, ierr)
      call check(ierr, "MPI_Allreduce", error)
      if (first == team%size) return
      call team%share_text(text, first, trouble)
      call keep_first(error, trouble)
      call parse_hints(text, asked, hints, unknown)
   end subroutine read_hints

   !> Reads the hints from a text with a line `key<tab>value` for each.
   pure subroutine parse_hints(text, asked, hints, unknown)
      character(len=*), intent(in) :: text
      type(hint_t), intent(in) :: asked(:)
      type(hint_t), allocatable, intent(inout) :: hints(:)
      logical, intent(inout) :: unknown
      character(len=:), allocatable :: key
      integer :: start, tab, last

      unknown = unknown .or. index(new_line("a")//text, new_line("a")//unknown_hint//achar(9)) > 0
      start = 1
      do while (start <= len(text))
         tab = start + index(text(start:), achar(9)) - 1
         if (tab < start) exit
         last = tab + index(text(tab:), new_line("a")) - 1
         key = text(start:tab - 1)
         if (key /= unknown_hint .and. .not. (unknown .and. has_key(asked, key))) then
            hints = [hints, hint_t(key=key, value=text(tab + 1:last - 1))]
         end if
         start = last + 1
      end do
   end subroutine parse_hints

   !> A message about the requested hints that are not in effect; empty if all are.
   !> `unknown` as from `read_hints`.
   pure function missed_hints(asked, hints, unknown) result(res)
      type(hint_t), intent(in) :: asked(:), hints(:)
      logical, intent(in) :: unknown
      character(len=:), allocatable :: res, value
      integer :: at

      res = ""
      do at = 1, size(asked)
         value = value_of(hints, asked(at)%key)
         if (value == asked(at)%value .and. len(value) > 0 .and. .not. unknown) cycle
         if (len(res) > 0) res = res//", "
         res = res//asked(at)%key//"="//asked(at)%value
         if (unknown) cycle
         if (len(value) == 0) then
            res = res//" (not named by the open file)"
         else
            res = res//" (in effect: "//value//")"
         end if
      end do
      if (len(res) == 0) return
      if (unknown) then
         res = "hints that may not be in effect, since this library gives no proof: "//res
      else
         res = "hints that are not in effect: "//res
      end if
   end function missed_hints

   pure function value_of(hints, key) result(res)
      type(hint_t), intent(in) :: hints(:)
      character(len=*), intent(in) :: key
      character(len=:), allocatable :: res
      integer :: at

      res = ""
      do at = 1, size(hints)
         if (hints(at)%key == key) res = hints(at)%value
      end do
   end function value_of

   pure function has_key(hints, key) result(res)
      type(hint_t), intent(in) :: hints(:)
      character(len=*), intent(in) :: key
      logical :: res
      integer :: at

      res = .false.
      do at = 1, size(hints)
         if (hints(at)%key == key) res = .true.
      end do
   end function has_key

   !> All hints of an info object, as the text that `parse_hints` reads.
   subroutine get_all(info, text, error)
      type(MPI_Info), intent(in) :: info
      character(len=:), allocatable, intent(out) :: text
      type(error_t), allocatable, intent(out) :: error
      character(len=MPI_MAX_INFO_KEY) :: key
      character(len=:), allocatable :: value
      logical :: found
      integer :: at, count, length, ierr

      text = ""
      call MPI_Info_get_nkeys(info, count, ierr)
      call check(ierr, "MPI_Info_get_nkeys", error)
      if (allocated(error)) return
      do at = 0, count - 1
         call MPI_Info_get_nthkey(info, at, key, ierr)
         call check(ierr, "MPI_Info_get_nthkey", error)
         if (allocated(error)) return
         call MPI_Info_get_valuelen(info, trim(key), length, found, ierr)
         call check(ierr, "MPI_Info_get_valuelen of "//trim(key), error)
         if (allocated(error)) return
         ! Before 5.0.9, Open MPI 5 replaces the last character of a value that fills its variable.
         value = repeat(" ", length + 1)
         call MPI_Info_get(info, trim(key), length, value, found, ierr)
         call check(ierr, "MPI_Info_get of "//trim(key), error)
         if (allocated(error)) return
         text = text//trim(key)//achar(9)//value(:length)//new_line("a")
      end do
   end subroutine get_all

end module benchio_mpi_hints
