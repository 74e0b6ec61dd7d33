!> The layers aligned, aligned-single, aligned-files and aligned-random: one large striped file or
!> many files; each call moves one stripe. They differ in the assignment of stripes to
!> processes; see stripe_assignment.
!>
!> Either a table names the files, which must exist and are kept, or the files are new and
!> their stripe size is assumed. Each repeat overwrites the files of the previous one. The first
!> repeat differs from the others, since the file system has to allocate space.
!>
!> Memory: in addition to piece_backend's, 40 bytes for each stripe of this process, and
!> the table.
module benchio_layer_aligned
   use, intrinsic :: iso_c_binding, only: c_null_char
   use, intrinsic :: iso_fortran_env, only: int64, int8
   use benchio_errors, only: error_t, fail, keep_first, status_usage
   use benchio_file_checks, only: check_closed_to_others, check_complete, check_empty
   use benchio_file_pool, only: file_pool_t
   use benchio_layout, only: element_bytes
   use benchio_piece_backend, only: buffer_bytes, piece_backend_t, piece_t
   use benchio_posix_api, only: guard_empties, guard_removes, shim_guard
   use benchio_posix_path, only: empty_file, find_same_files, remove_file
   use benchio_stripe_assignment, only: assign_stripes, place_t
   use benchio_stripe_table, only: assume_table, divide_data, parse_table, striped_file_t
   use benchio_task, only: task_t
   use benchio_team, only: team_t
   use benchio_text, only: append, string_t, to_text
   use benchio_text_file, only: read_text
   use benchio_volume, only: multiply
   implicit none(type, external)
   private

   public :: aligned_t

   ! More targets than any file system has, and a bound on the memory for stripes.
   integer, parameter :: most_targets = 65536
   integer(int64), parameter :: most_stripes = 100000000_int64

   type, extends(piece_backend_t) :: aligned_t
      !> How stripes are assigned to processes; see stripe_assignment.
      character(len=7) :: scheme = "targets"
      type(striped_file_t), allocatable, private :: table(:)
      !> Whether the user gave the table; its files are kept.
      logical, private :: is_given = .false.
      !> The pieces of this process, and their files.
      type(piece_t), allocatable, private :: list(:)
      type(file_pool_t), private :: pool
      !> The rank of this process and the number of processes; the same on its node.
      integer, private :: member = 0, members = 1, node_member = 0, node_members = 1
   contains
      procedure, nopass :: check_task
      procedure :: set_up
      procedure :: piece
      procedure :: path_of
      procedure :: open_file
      procedure :: move
      procedure :: sync
      procedure :: close_file
      procedure :: take_down
      procedure :: guard_files
      procedure :: prepare_files
      procedure :: check_files
      procedure :: remove_files
      procedure :: list_cached
   end type aligned_t

contains

   pure subroutine check_task(task, processes, error)
      type(task_t), intent(in) :: task
      integer, intent(in) :: processes
      type(error_t), allocatable, intent(out) :: error
      integer(int64) :: total

      call count_bytes(task, processes, total, error)
      if (allocated(error)) return
      if (task%files > total/element_bytes) then
         call fail(error, to_text(total/element_bytes)//" elements cannot be divided among " &
                   //to_text(task%files)//" files", status_usage)
      else if (task%stripe_count > most_targets) then
         call fail(error, "--stripe-count="//to_text(task%stripe_count)//" is more than " &
                   //to_text(most_targets), status_usage)
      else if (.not. allocated(task%layout_path) .and. total/task%stripe_bytes > most_stripes) then
         call fail(error, "--stripe-size="//to_text(task%stripe_bytes)//" makes more than " &
                   //to_text(most_stripes)//" stripes", status_usage)
      else if (task%files > most_stripes/task%stripe_count) then
         call fail(error, "--files="//to_text(task%files)//" of --stripe-count=" &
                   //to_text(task%stripe_count)//" make more than "//to_text(most_stripes) &
                   //" stripes", status_usage)
      end if
   end subroutine check_task

   !> The bytes of the whole array.
   pure subroutine count_bytes(task, processes, total, error)
      type(task_t), intent(in) :: task
      integer, intent(in) :: processes
      integer(int64), intent(out) :: total
      type(error_t), allocatable, intent(out) :: error

      call multiply([task%sizes, merge(1_int64, int(processes, int64), task%is_global), &
                     element_bytes], total, error)
   end subroutine count_bytes

   subroutine set_up(self, team, directory, error)
      class(aligned_t), intent(inout) :: self
      type(team_t), intent(in) :: team
      character(len=*), intent(in) :: directory
      type(error_t), allocatable, intent(out) :: error
      integer(int64), allocatable :: stripes(:)
      integer(int64) :: writers

      self%overwrites = .true.
      self%member = team%rank
      self%members = team%size
      self%node_member = team%node_rank
      self%node_members = team%node_size
      call get_table(self, team, directory, error)
      if (allocated(error)) return
      self%first_path = self%table(1)%path
      self%files = size(self%table)
      call assign_stripes(self%scheme, self%table, self%task%seed, &
                          place_t(team%rank, team%size, team%node, team%nodes, team%node_rank, &
                                  team%node_size), stripes)
      call list_pieces(self, stripes, error)
      if (allocated(error)) return
      self%pool%creates = .not. self%is_given
      self%pool%task = self%task
      self%path = self%first_path
      if (self%pieces > 0) self%path = self%path_of(1)
      call team%sum_of(merge(1_int64, 0_int64, self%pieces > 0), writers, error)
      self%writers = int(writers)
   end subroutine set_up

   !> The files, and the data of each; collective.
   subroutine get_table(self, team, directory, error)
      class(aligned_t), intent(inout) :: self
      type(team_t), intent(in) :: team
      character(len=*), intent(in) :: directory
      type(error_t), allocatable, intent(out) :: error
      character(len=:), allocatable :: text

      associate (task => self%task)
         call count_bytes(task, team%size, self%total_bytes, error)
         if (allocated(error)) return
         self%is_given = allocated(task%layout_path)
         if (self%is_given) then
            call self%settings%add_text("layout", task%layout_path)
            text = ""
            if (team%rank == 0) call read_text(task%layout_path, text, error)
            call team%agree(error)
            if (allocated(error)) return
            call team%share_text(text, 0, error)
            if (allocated(error)) return
            call parse_table(task%layout_path, text, self%table, error)
            if (.not. allocated(error) .and. team%rank == 0) then
               call check_distinct(task%layout_path, self%table, error)
            end if
            call team%agree(error)
            if (allocated(error)) return
         else
            call self%settings%add_integer("stripe-size", task%stripe_bytes)
            call self%settings%add_integer("stripe-count", int(task%stripe_count, int64))
            call assume_table(directory, self%name, task%files, task%stripe_bytes, &
                              task%stripe_count, self%table)
         end if
      end associate
      call divide_data(self%total_bytes/element_bytes, self%table, error)
      if (self%is_given .and. .not. allocated(error)) then
         call check_stripes(self%task%layout_path, self%table, error)
      end if
   end subroutine get_table

   !> An error if two lines of the table name the same file.
   subroutine check_distinct(name, table, error)
      character(len=*), intent(in) :: name
      type(striped_file_t), intent(in) :: table(:)
      type(error_t), allocatable, intent(out) :: error
      type(string_t) :: paths(size(table))
      integer :: at, first, second

      do at = 1, size(table)
         paths(at)%value = table(at)%path
      end do
      call find_same_files(paths, first, second)
      if (first > 0) then
         call fail(error, name//", lines "//to_text(table(first)%line)//" and " &
                   //to_text(table(second)%line)//": "//table(first)%path//" and " &
                   //table(second)%path//" are the same file")
      end if
   end subroutine check_distinct

   !> An error if the stripes of the table are too many.
   pure subroutine check_stripes(name, table, error)
      character(len=*), intent(in) :: name
      type(striped_file_t), intent(in) :: table(:)
      type(error_t), allocatable, intent(out) :: error
      integer :: at

      do at = 1, size(table)
         if (table(at)%stripes_before + table(at)%stripes() <= most_stripes) cycle
         call fail(error, name//", line "//to_text(table(at)%line)//": stripes of " &
                   //to_text(table(at)%stripe_bytes)//" bytes make more than " &
                   //to_text(most_stripes)//" stripes", status_usage)
         return
      end do
   end subroutine check_stripes

   !> Makes the list of pieces, in the order of the files: one for each stripe, or for as
   !> much of it as fits the memory.
   subroutine list_pieces(self, stripes, error)
      class(aligned_t), intent(inout) :: self
      integer(int64), intent(in) :: stripes(:)
      type(error_t), allocatable, intent(out) :: error
      type(string_t), allocatable :: paths(:)
      integer :: pass, count, file, status
      integer(int64) :: at, filled, offset, past

      do pass = 1, 2
         count = 0
         filled = 0_int64
         file = 0
         do at = 1, size(stripes, kind=int64)
            if (is_after(self%table, file, stripes(at))) then
               do while (is_after(self%table, file, stripes(at)))
                  file = file + 1
               end do
               count = count + 1
               if (pass == 2) paths(count)%value = self%table(file)%path
            end if
            associate (of_table => self%table(file))
               offset = (stripes(at) - of_table%stripes_before)*of_table%stripe_bytes
               past = offset + min(of_table%stripe_bytes, of_table%bytes - offset)
               do while (offset < past)
                  filled = filled + 1
                  if (pass == 2) then
                     self%list(filled) = piece_t(count, offset, min(buffer_bytes, past - offset), &
                                                 of_table%start + offset)
                  end if
                  offset = offset + min(buffer_bytes, past - offset)
               end do
            end associate
         end do
         if (pass == 2) exit
         allocate (paths(count))
         allocate (self%list(filled), stat=status)
         if (status /= 0) then
            call fail(error, "no memory for a list of "//to_text(filled)//" stripes")
            return
         end if
      end do
      call move_alloc(paths, self%pool%paths)
      self%pieces = filled
      self%longest = maxval([0_int64, self%list%bytes])
   end subroutine list_pieces

   !> Whether a stripe comes after all stripes of a file of the table; `file` is 0 before the
   !> first one.
   pure function is_after(table, file, stripe) result(res)
      type(striped_file_t), intent(in) :: table(:)
      integer, intent(in) :: file
      integer(int64), intent(in) :: stripe
      logical :: res

      res = .true.
      if (file > 0) res = stripe >= table(file)%stripes_before + table(file)%stripes()
   end function is_after

   pure function piece(self, number) result(res)
      class(aligned_t), intent(in) :: self
      integer(int64), intent(in) :: number
      type(piece_t) :: res

      res = self%list(number)
   end function piece

   pure function path_of(self, file) result(res)
      class(aligned_t), intent(in) :: self
      integer, intent(in) :: file
      character(len=:), allocatable :: res

      res = self%pool%paths(file)%value
   end function path_of

   !> Opens the files whose stripes this process moves.
   subroutine open_file(self, writing, error)
      class(aligned_t), intent(inout) :: self
      logical, intent(in) :: writing
      type(error_t), allocatable, intent(out) :: error

      call self%pool%open_all(writing, error)
      self%is_usable = .not. allocated(error)
   end subroutine open_file

   subroutine move(self, writing, piece, memory, error)
      class(aligned_t), intent(inout) :: self
      logical, intent(in) :: writing
      type(piece_t), intent(in) :: piece
      integer(int8), intent(inout), target, contiguous :: memory(:)
      type(error_t), allocatable, intent(out) :: error

      call self%pool%move_bytes(writing, piece%file, memory, piece%offset, self%outcome%times, &
                                error)
   end subroutine move

   !> Each process flushes the files that it opened.
   subroutine sync(self, error)
      class(aligned_t), intent(inout) :: self
      type(error_t), allocatable, intent(out) :: error

      if (self%is_usable) call self%pool%sync_all(error)
   end subroutine sync

   subroutine close_file(self, error)
      class(aligned_t), intent(inout) :: self
      type(error_t), allocatable, intent(out) :: error

      self%is_usable = .false.
      self%outcome%was_direct = self%pool%is_direct
      call self%pool%close_all(error)
   end subroutine close_file

   subroutine take_down(self, error)
      class(aligned_t), intent(inout) :: self
      type(error_t), allocatable, intent(out) :: error

      call self%close_file(error)
      if (allocated(self%list)) deallocate (self%list)
      if (allocated(self%table)) deallocate (self%table)
   end subroutine take_down

   ! The rest handles all files, distributed over the processes.

   !> Guards all files on each process: another process may create a file after its owner has ended.
   subroutine guard_files(self)
      class(aligned_t), intent(in) :: self
      integer :: file

      do file = 1, size(self%table)
         call shim_guard(self%table(file)%path//c_null_char, &
                         merge(guard_empties, guard_removes, self%is_given))
      end do
   end subroutine guard_files

   !> Files of a table must exist and be empty; others are removed.
   subroutine prepare_files(self, error)
      class(aligned_t), intent(in) :: self
      type(error_t), allocatable, intent(out) :: error
      integer :: file

      if (.not. self%is_given) then
         call self%remove_files(error)
         return
      end if
      do file = self%member + 1, size(self%table), self%members
         associate (path => self%table(file)%path)
            call check_closed_to_others(path(:index(path, "/", back=.true.))//".", error)
         end associate
         if (allocated(error)) return
         call check_empty(self%table(file)%path, error)
         if (allocated(error)) return
      end do
   end subroutine prepare_files

   subroutine check_files(self, error)
      class(aligned_t), intent(in) :: self
      type(error_t), allocatable, intent(out) :: error
      integer :: file

      do file = self%member + 1, size(self%table), self%members
         call check_complete(self%table(file)%path, self%table(file)%bytes, .false., error)
         if (allocated(error)) return
      end do
   end subroutine check_files

   !> Files of a table are emptied and kept.
   subroutine remove_files(self, error)
      class(aligned_t), intent(in) :: self
      type(error_t), allocatable, intent(out) :: error
      type(error_t), allocatable :: trouble
      integer :: file

      do file = self%member + 1, size(self%table), self%members
         if (self%is_given) then
            call empty_file(self%table(file)%path, trouble)
         else
            call remove_file(self%table(file)%path, trouble)
         end if
         call keep_first(error, trouble)
      end do
   end subroutine remove_files

   subroutine list_cached(self, paths, error)
      class(aligned_t), intent(in) :: self
      type(string_t), allocatable, intent(out) :: paths(:)
      type(error_t), allocatable, intent(out) :: error
      integer :: file

      allocate (paths(0))
      do file = self%node_member + 1, size(self%table), self%node_members
         call append(paths, self%table(file)%path)
      end do
   end subroutine list_cached

end module benchio_layer_aligned
