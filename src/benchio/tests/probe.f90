!> Prints results of the arithmetic for the tests, for arrays that are too large to write:
!>   value INDEX SEED                       the value of an element
!>   place N1 N2 N3 P1 P2 P3 RANK [WRITERS] the indices of the first and the last element of
!>                                          a block of a global array, or of what its writer has
!>   cells N1 N2 N3 local|global P RANK     the first point and the points of each cell of a
!>                                          btio grid, one line for each cell
!>   decimal NUMBER                         a number as benchio prints it
!>   percentile PERCENT SECONDS ...         a percentile of times, as --latency reports it
!>   assign SCHEME SEED ELEMENTS TABLE NODE ...
!>                                          the stripes of each rank, one line for each; the
!>                                          NODEs are those of the ranks
program probe
   use, intrinsic :: iso_fortran_env, only: int64, real64
   use benchio_btio_partition, only: make_partition, partition_t
   use benchio_call_times, only: call_times_t
   use benchio_errors, only: error_t
   use benchio_fingerprint, only: mixed_seed, value_at
   use benchio_layout, only: layout_t, make_layout
   use benchio_stripe_assignment, only: assign_stripes, place_t
   use benchio_stripe_table, only: divide_data, parse_table, striped_file_t
   use benchio_text, only: decimal
   use benchio_text_file, only: read_text
   use benchio_writer_groups, only: find_group
   implicit none(type, external)

   select case (word(1))
   case ("value")
      write (*, "(i0)") value_at(number(2), mixed_seed(number(3)))
   case ("place")
      call place()
   case ("cells")
      call cells()
   case ("decimal")
      write (*, "(a)") decimal(real_number(2))
   case ("percentile")
      call percentile()
   case ("assign")
      call assign_to_all()
   case default
      error stop "unknown question"
   end select

contains

   subroutine place()
      type(layout_t) :: layout, block
      type(error_t), allocatable :: error
      integer :: at, group

      call make_layout([(number(at), at=2, 4)], .true., [(int(number(at)), at=5, 7)], &
                       int(number(8)), layout, error)
      if (command_argument_count() > 8 .and. .not. allocated(error)) then
         block = layout
         call find_group(block, int(number(9)), group, layout, error)
      end if
      if (allocated(error)) then
         write (*, "(a)") error%text
         return
      end if
      associate (n => layout%block)
         write (*, "(i0, 1x, i0)") layout%global_index(1_int64, 1_int64, 1_int64), &
            layout%global_index(n(1), n(2), n(3))
      end associate
   end subroutine place

   subroutine percentile()
      type(call_times_t) :: times
      integer :: at

      do at = 3, command_argument_count()
         call times%add(real_number(at))
      end do
      write (*, "(es24.16)") times%percentile(int(number(2)))
   end subroutine percentile

   subroutine assign_to_all()
      type(striped_file_t), allocatable :: files(:)
      type(error_t), allocatable :: error
      type(place_t) :: place
      character(len=:), allocatable :: text
      integer, allocatable :: nodes(:)
      integer(int64), allocatable :: mine(:)
      integer :: at

      call read_text(word(5), text, error)
      if (.not. allocated(error)) call parse_table(word(5), text, files, error)
      if (.not. allocated(error)) call divide_data(number(4), files, error)
      if (allocated(error)) then
         write (*, "(a)") error%text
         return
      end if
      nodes = [(int(number(at)), at=6, command_argument_count())]
      do at = 1, size(nodes)
         place = place_t(at - 1, size(nodes), nodes(at), maxval(nodes) + 1, &
                         count(nodes(:at - 1) == nodes(at)), count(nodes == nodes(at)))
         call assign_stripes(word(2), files, number(3), place, mine)
         write (*, "(a, *(1x, i0))") ">", mine
      end do
   end subroutine assign_to_all

   subroutine cells()
      type(partition_t) :: partition
      type(error_t), allocatable :: error
      integer :: at

      call make_partition([(number(at), at=2, 4)], word(5) == "global", 0, int(number(6)), &
                          int(number(7)), partition, error)
      if (allocated(error)) then
         write (*, "(a)") error%text
         return
      end if
      do at = 1, size(partition%cells)
         write (*, "(*(i0, :, 1x))") partition%cells(at)%start, partition%cells(at)%points
      end do
   end subroutine cells

   function word(at) result(res)
      integer, intent(in) :: at
      character(len=:), allocatable :: res
      character(len=64) :: buffer

      call get_command_argument(at, buffer)
      res = trim(buffer)
   end function word

   function number(at) result(res)
      integer, intent(in) :: at
      integer(int64) :: res
      character(len=:), allocatable :: digits

      digits = word(at)
      read (unit=digits, fmt=*) res
   end function number

   function real_number(at) result(res)
      integer, intent(in) :: at
      real(real64) :: res
      character(len=:), allocatable :: digits

      digits = word(at)
      read (unit=digits, fmt=*) res
   end function real_number

end program probe
