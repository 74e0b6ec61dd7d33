!> MPI-IO hints: to the library, and back from an open file. A hint that the
!> library returns is evidence only when it does not return just any hint.
module mpi_hints
   use backend, only: hint_t
   use errors, only: error_t, keep_first
   use mpi_checks, only: check
   use mpi_f08, only: MPI_File, MPI_File_get_info, MPI_Info, MPI_Info_create, MPI_Info_free, &
                      MPI_Info_get, MPI_Info_get_nkeys, MPI_Info_get_nthkey, &
                      MPI_Info_get_valuelen, MPI_Info_set, MPI_MAX_INFO_KEY
   implicit none(type, external)
   private

   public :: make_info, read_hints

   ! A hint that no library knows. Open MPI 4 says of whatever it was told that it
   ! is in effect, this hint too; what it echoes is not evidence of anything.
   character(len=*), parameter :: unknown_hint = "benchio_unknown_hint"

contains

   !> An MPI info object with these hints, for a file to be opened with.
   subroutine make_info(hints, info, error)
      type(hint_t), intent(in) :: hints(:)
      type(MPI_Info), intent(out) :: info
      type(error_t), allocatable, intent(out) :: error
      integer :: at, ierr

      call MPI_Info_create(info, ierr)
      call check(ierr, "MPI_Info_create", error)
      if (allocated(error)) return
      if (size(hints) == 0) return
      call MPI_Info_set(info, unknown_hint, "1", ierr)
      call check(ierr, "MPI_Info_set of "//unknown_hint, error)
      if (allocated(error)) return
      do at = 1, size(hints)
         call MPI_Info_set(info, hints(at)%key, hints(at)%value, ierr)
         call check(ierr, "MPI_Info_set of "//hints(at)%key, error)
         if (allocated(error)) return
      end do
   end subroutine make_info

   !> The hints that are in effect for an open file. When the library echoes what
   !> it was told, those in `asked` are left out: nothing is known of them.
   subroutine read_hints(file, asked, hints, echoes, error)
      type(MPI_File), intent(in) :: file
      type(hint_t), intent(in) :: asked(:)
      type(hint_t), allocatable, intent(out) :: hints(:)
      logical, intent(out) :: echoes
      type(error_t), allocatable, intent(out) :: error
      type(hint_t), allocatable :: told(:)
      logical, allocatable :: proven(:)
      integer :: at

      call read_all(file, told, error)
      echoes = has_key(told, unknown_hint)
      allocate (proven(size(told)))
      do at = 1, size(told)
         proven(at) = told(at)%key /= unknown_hint &
                      .and. .not. (echoes .and. has_key(asked, told(at)%key))
      end do
      allocate (hints, source=pack(told, proven))
   end subroutine read_hints

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

   !> All hints that the library has for an open file.
   subroutine read_all(file, hints, error)
      type(MPI_File), intent(in) :: file
      type(hint_t), allocatable, intent(out) :: hints(:)
      type(error_t), allocatable, intent(out) :: error
      type(error_t), allocatable :: trouble
      type(MPI_Info) :: info
      integer :: at, count, ierr

      allocate (hints(0))
      call MPI_File_get_info(file, info, ierr)
      call check(ierr, "MPI_File_get_info", error)
      if (allocated(error)) return
      call MPI_Info_get_nkeys(info, count, ierr)
      call check(ierr, "MPI_Info_get_nkeys", error)
      if (.not. allocated(error)) then
         deallocate (hints)
         allocate (hints(count))
         do at = 1, count
            call read_hint(info, at - 1, hints(at), error)
            if (allocated(error)) exit
         end do
      end if
      call MPI_Info_free(info, ierr)
      call check(ierr, "MPI_Info_free", trouble)
      call keep_first(error, trouble)
   end subroutine read_all

   subroutine read_hint(info, number, hint, error)
      type(MPI_Info), intent(in) :: info
      integer, intent(in) :: number
      type(hint_t), intent(out) :: hint
      type(error_t), allocatable, intent(out) :: error
      character(len=MPI_MAX_INFO_KEY) :: key
      logical :: found
      integer :: length, ierr

      call MPI_Info_get_nthkey(info, number, key, ierr)
      call check(ierr, "MPI_Info_get_nthkey", error)
      if (allocated(error)) return
      hint%key = trim(key)
      call MPI_Info_get_valuelen(info, hint%key, length, found, ierr)
      call check(ierr, "MPI_Info_get_valuelen of "//hint%key, error)
      if (allocated(error)) return
      allocate (character(len=length) :: hint%value)
      call MPI_Info_get(info, hint%key, length, hint%value, found, ierr)
      call check(ierr, "MPI_Info_get of "//hint%key, error)
   end subroutine read_hint

end module mpi_hints
