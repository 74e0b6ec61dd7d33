!> The layers aligned, aligned-single and aligned-random: one large striped file or
!> many files, moved a stripe a call. They differ in who moves which stripe; see
!> stripe_dealing.
!>
!> The files are those of a table, which are there and stay there, or new ones of
!> which stripes of a size are assumed. Each repeat writes over the files of the one
!> before: the first differs from the others, since the file system must find room.
!>
!> Memory: besides that for the pieces, 40 bytes a stripe of this process, and the
!> table.
module layer_aligned
   use, intrinsic :: iso_c_binding, only: c_int
   use, intrinsic :: iso_fortran_env, only: int64, int8
   use direct_read, only: direct_reader_t, open_to_read
   use errors, only: error_t, fail, keep_first, status_usage
   use layout, only: element_bytes
   use page_cache, only: drop_file, flush_file
   use piece_backend, only: buffer_bytes, piece_backend_t, piece_t
   use posix_file, only: check_complete, close_fd => close_file, open_shared, remove_file, &
                         sync_file
   use posix_pieces, only: read_piece, write_piece
   use standing_file, only: check_vacant, empty_file
   use stripe_dealing, only: deal, place_t
   use stripe_table, only: assume_table, divide_data, parse_table, striped_file_t
   use task, only: task_t
   use team, only: team_t
   use text, only: to_text
   use text_file, only: read_text
   use volume, only: multiply
   implicit none(type, external)
   private

   public :: aligned_t

   ! Files that a process has open at a time, one of which it opens when it comes to
   ! it: systems allow 1024 and less.
   integer, parameter :: most_open = 256

   ! More than any file system has, and as many as memory may be spent on.
   integer, parameter :: most_targets = 65536
   integer(int64), parameter :: most_stripes = 100000000_int64

   type, extends(piece_backend_t) :: aligned_t
      private
      type(striped_file_t), allocatable :: table(:)
      !> Whether the table was given, and its files are to stay.
      logical :: is_given = .false.
      type(piece_t), allocatable :: list(:)
      !> The files of this process, by their place in the table, and their descriptors.
      integer, allocatable :: mine(:)
      integer(c_int), allocatable :: fds(:)
      !> The file that was opened when its turn came.
      integer :: spare = 0
      logical :: writing = .false.
      type(direct_reader_t) :: direct
      !> Which process this is, and how many there are; the same of the node's.
      integer :: member = 0, members = 1, node_member = 0, node_members = 1
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
      procedure :: make_way
      procedure :: check_files
      procedure :: remove_files
      procedure :: flush_pages
      procedure :: drop_pages
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
      integer(int64) :: acting

      self%overwrites = .true.
      self%member = team%rank
      self%members = team%size
      self%node_member = team%node_rank
      self%node_members = team%node_size
      call get_table(self, team, directory, error)
      if (allocated(error)) return
      self%first_path = self%table(1)%path
      self%files = size(self%table)
      call deal(way_of(self%name), self%table, self%task%seed, &
                place_t(team%rank, team%size, team%node, team%nodes, team%node_rank, &
                        team%node_size), stripes)
      call list_pieces(self, stripes)
      self%path = self%first_path
      if (size(self%mine) > 0) self%path = self%path_of(1)
      call team%sum_of(merge(1_int64, 0_int64, self%pieces > 0), acting, error)
      self%writers = int(acting)
   end subroutine set_up

   !> The files, and what of the data each holds; collective.
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
            if (allocated(error)) return
         else
            call self%settings%add_integer("stripe-size", task%stripe_bytes)
            call self%settings%add_integer("stripe-count", int(task%stripe_count, int64))
            call assume_table(directory, self%name, task%files, task%stripe_bytes, &
                              task%stripe_count, self%table)
         end if
      end associate
      call divide_data(self%total_bytes/element_bytes, self%table, error)
   end subroutine get_table

   pure function way_of(name) result(res)
      character(len=*), intent(in) :: name
      character(len=:), allocatable :: res

      select case (name)
      case ("aligned-single")
         res = "single"
      case ("aligned-random")
         res = "random"
      case default
         res = "targets"
      end select
   end function way_of

   !> Makes the list of pieces, in the order of files: a stripe each, or so much of it
   !> as the memory holds.
   subroutine list_pieces(self, stripes)
      class(aligned_t), intent(inout) :: self
      integer(int64), intent(in) :: stripes(:)
      integer :: pass, count, file
      integer(int64) :: at, filled, offset, past

      do pass = 1, 2
         count = 0
         filled = 0_int64
         file = 0
         do at = 1, size(stripes, kind=int64)
            if (file == 0 .or. is_behind(self%table, file, stripes(at))) then
               do while (file == 0 .or. is_behind(self%table, file, stripes(at)))
                  file = file + 1
               end do
               count = count + 1
               if (pass == 2) self%mine(count) = file
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
         if (pass == 1) allocate (self%mine(count), self%list(filled))
      end do
      allocate (self%fds(count), source=-1_c_int)
      self%pieces = filled
      self%longest = maxval([0_int64, self%list%bytes])
   end subroutine list_pieces

   !> Whether a stripe is behind those of a file of the table.
   pure function is_behind(table, file, stripe) result(res)
      type(striped_file_t), intent(in) :: table(:)
      integer, intent(in) :: file
      integer(int64), intent(in) :: stripe
      logical :: res

      res = .true.
      if (file > 0) res = stripe >= table(file)%stripes_before + table(file)%stripes()
   end function is_behind

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

      res = self%table(self%mine(file))%path
   end function path_of

   !> Opens the files that this process has a part in, as many as may be open.
   subroutine open_file(self, writing, error)
      class(aligned_t), intent(inout) :: self
      logical, intent(in) :: writing
      type(error_t), allocatable, intent(out) :: error
      integer :: file

      self%writing = writing
      self%is_usable = .true.
      ! To those without a file its way of reading is no matter.
      self%was_direct = .not. writing
      do file = 1, min(size(self%mine), most_open)
         call open_one(self, file, error)
         if (.not. allocated(error)) cycle
         self%is_usable = .false.
         return
      end do
   end subroutine open_file

   subroutine open_one(self, file, error)
      class(aligned_t), intent(inout) :: self
      integer, intent(in) :: file
      type(error_t), allocatable, intent(out) :: error
      logical :: is_direct, creates

      if (self%writing) then
         creates = .not. self%is_given
         call open_shared(self%path_of(file), creates, self%fds(file), error)
      else
         call open_to_read(self%path_of(file), self%task%direct, self%fds(file), is_direct, error)
         self%was_direct = self%was_direct .and. is_direct
      end if
   end subroutine open_one

   subroutine close_one(self, file, error)
      class(aligned_t), intent(inout) :: self
      integer, intent(in) :: file
      type(error_t), allocatable, intent(out) :: error

      if (self%fds(file) >= 0) call close_fd(self%fds(file), self%path_of(file), error)
   end subroutine close_one

   subroutine move(self, writing, piece, memory, error)
      class(aligned_t), intent(inout) :: self
      logical, intent(in) :: writing
      type(piece_t), intent(in) :: piece
      integer(int8), intent(inout), target, contiguous :: memory(:)
      type(error_t), allocatable, intent(out) :: error

      associate (file => piece%file)
         if (self%fds(file) < 0) then
            if (self%spare > 0) call close_one(self, self%spare, error)
            if (allocated(error)) return
            self%spare = file
            call open_one(self, file, error)
            if (allocated(error)) return
         end if
         if (writing) then
            call write_piece(self%fds(file), self%path_of(file), memory, piece%offset, error)
         else
            call read_piece(self%fds(file), self%path_of(file), memory, piece%offset, &
                            self%task%direct, self%direct, error)
         end if
      end associate
   end subroutine move

   !> Each process sees to its own files. One that was closed to make room is opened
   !> again: fsync is of the file and not of what wrote to it.
   subroutine sync(self, error)
      class(aligned_t), intent(inout) :: self
      type(error_t), allocatable, intent(out) :: error
      type(error_t), allocatable :: trouble
      integer :: file

      if (.not. self%is_usable) return
      do file = 1, size(self%mine)
         if (self%fds(file) < 0) then
            if (self%spare > 0) call close_one(self, self%spare, trouble)
            call keep_first(error, trouble)
            self%spare = file
            call open_one(self, file, trouble)
            call keep_first(error, trouble)
         end if
         if (self%fds(file) >= 0) call sync_file(self%fds(file), self%path_of(file), trouble)
         call keep_first(error, trouble)
         if (allocated(error)) return
      end do
   end subroutine sync

   subroutine close_file(self, error)
      class(aligned_t), intent(inout) :: self
      type(error_t), allocatable, intent(out) :: error
      type(error_t), allocatable :: trouble
      integer :: file

      self%is_usable = .false.
      self%spare = 0
      if (.not. allocated(self%fds)) return
      do file = 1, size(self%mine)
         call close_one(self, file, trouble)
         call keep_first(error, trouble)
      end do
   end subroutine close_file

   subroutine take_down(self, error)
      class(aligned_t), intent(inout) :: self
      type(error_t), allocatable, intent(out) :: error

      call self%close_file(error)
      call self%direct%free()
      if (allocated(self%list)) deallocate (self%list)
      if (allocated(self%mine)) deallocate (self%mine)
      if (allocated(self%fds)) deallocate (self%fds)
      if (allocated(self%table)) deallocate (self%table)
   end subroutine take_down

   ! What follows is of all files, of which each process sees to some.

   !> Files of a table must be there and empty; others must not be there.
   subroutine make_way(self, error)
      class(aligned_t), intent(in) :: self
      type(error_t), allocatable, intent(out) :: error
      integer :: file

      if (.not. self%is_given) then
         call self%remove_files(error)
         return
      end if
      do file = self%member + 1, size(self%table), self%members
         call check_vacant(self%table(file)%path, error)
         if (allocated(error)) return
      end do
   end subroutine make_way

   subroutine check_files(self, error)
      class(aligned_t), intent(in) :: self
      type(error_t), allocatable, intent(out) :: error
      integer :: file

      do file = self%member + 1, size(self%table), self%members
         call check_complete(self%table(file)%path, self%table(file)%bytes, .false., error)
         if (allocated(error)) return
      end do
   end subroutine check_files

   !> Files of a table are left, empty.
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

   subroutine flush_pages(self, error)
      class(aligned_t), intent(in) :: self
      type(error_t), allocatable, intent(out) :: error
      integer :: file

      do file = self%node_member + 1, size(self%table), self%node_members
         call flush_file(self%table(file)%path, error)
         if (allocated(error)) return
      end do
   end subroutine flush_pages

   subroutine drop_pages(self, dropped, error)
      class(aligned_t), intent(in) :: self
      logical, intent(out) :: dropped
      type(error_t), allocatable, intent(out) :: error
      integer :: file
      logical :: all_of_file

      dropped = .true.
      do file = self%node_member + 1, size(self%table), self%node_members
         call drop_file(self%table(file)%path, all_of_file, error)
         dropped = dropped .and. all_of_file
         if (allocated(error)) return
      end do
   end subroutine drop_pages

end module layer_aligned
