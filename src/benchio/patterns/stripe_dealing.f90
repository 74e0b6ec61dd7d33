!> Which process moves which stripes of files. There are three ways:
!>   single   one process has all of them
!>   random   they are dealt to all processes at random, as a shuffled pack of cards
!>   targets  targets are dealt to nodes, so that a target has to do with one node
!>            alone, and the stripes on a node's targets to the processes of the node
!> Stripes are numbered from 0 through all files. Arithmetic alone: each process works
!> out its own stripes without those of the others, and all come to the same result.
module stripe_dealing
   use, intrinsic :: iso_fortran_env, only: int64
   use fingerprint, only: mixed_seed, value_at
   use sorting, only: order_of
   use stripe_table, only: striped_file_t
   implicit none(type, external)
   private

   public :: place_t, deal

   !> Where a process stands, as team_t says it.
   type :: place_t
      integer :: rank = 0, size = 1
      integer :: node = 0, nodes = 1, node_rank = 0, node_size = 1
   end type place_t

   ! Rounds of the shuffle; each makes it less regular.
   integer, parameter :: shuffle_rounds = 6

contains

   !> The stripes of a process, in ascending order.
   pure subroutine deal(way, files, seed, place, mine)
      character(len=*), intent(in) :: way
      type(striped_file_t), intent(in) :: files(:)
      integer(int64), intent(in) :: seed
      type(place_t), intent(in) :: place
      integer(int64), allocatable, intent(out) :: mine(:)
      integer(int64) :: total, at

      associate (last => files(size(files)))
         total = last%stripes_before + last%stripes()
      end associate
      select case (way)
      case ("random")
         call deal_at_random(total, seed, place, mine)
      case ("targets")
         call deal_by_target(files, place, mine)
      case default
         if (place%rank > 0) total = 0_int64
         allocate (mine(total))
         mine = [(at, at=0, total - 1)]
      end select
   end subroutine deal

   pure subroutine deal_at_random(total, seed, place, mine)
      integer(int64), intent(in) :: total, seed
      type(place_t), intent(in) :: place
      integer(int64), allocatable, intent(out) :: mine(:)
      integer(int64) :: at

      allocate (mine((total + place%size - 1 - place%rank)/place%size))
      do at = 1, size(mine, kind=int64)
         mine(at) = shuffled((at - 1)*place%size + place%rank, total, mixed_seed(seed))
      end do
      mine = mine(order_of(mine))
   end subroutine deal_at_random

   !> The number that takes the place of another below `total`: no two have the same.
   !> A Feistel network shuffles the numbers of so many bits; what it makes too large
   !> goes through it again.
   pure function shuffled(number, total, mixed) result(res)
      integer(int64), intent(in) :: number, total, mixed
      integer(int64) :: res
      integer(int64) :: left, right, held, mask
      integer :: half, round

      half = 1
      do while (half < 31 .and. shiftr(total - 1, 2*half) > 0)
         half = half + 1
      end do
      mask = shiftl(1_int64, half) - 1
      res = number
      do
         left = shiftr(res, half)
         right = iand(res, mask)
         do round = 1, shuffle_rounds
            held = right
            right = iand(ieor(left, scattered(right, value_at(int(round, int64), mixed))), mask)
            left = held
         end do
         res = ior(shiftl(left, half), right)
         if (res < total) return
      end do
   end function shuffled

   !> A number that looks like chance. The fingerprint alone would not do: made of
   !> exclusive-or and shifts, it would deal numbers with the same low bits alike.
   pure function scattered(number, key) result(res)
      integer(int64), intent(in) :: number, key
      integer(int64) :: res
      ! Factors of 31 bits, whose product 64 bits hold.
      integer(int64), parameter :: factor = 1664525957_int64, low = 2147483647_int64

      res = iand(ieor(number, key), low)*factor
      res = iand(ieor(res, shiftr(res, 27)), low)*factor
      res = ieor(res, shiftr(res, 31))
   end function scattered

   !> The stripes on the targets of the node, in ascending order, are cut into a run
   !> for each of its processes, so that few of them open the same file.
   pure subroutine deal_by_target(files, place, mine)
      type(striped_file_t), intent(in) :: files(:)
      type(place_t), intent(in) :: place
      integer(int64), allocatable, intent(out) :: mine(:)
      integer, allocatable :: targets(:), nodes(:), columns(:)
      integer(int64) :: counts(size(files)), total, first, past, before, at, there
      integer :: file

      call deal_targets(files, place%nodes, targets, nodes)
      do file = 1, size(files)
         columns = columns_of(files(file), targets, nodes, place%node)
         counts(file) = stripes_in(files(file), columns)
      end do
      total = sum(counts)
      first = run_start(total, place%node_rank, place%node_size)
      past = run_start(total, place%node_rank + 1, place%node_size)
      allocate (mine(past - first))
      before = 0_int64
      do file = 1, size(files)
         if (before + counts(file) > first .and. before < past) then
            columns = columns_of(files(file), targets, nodes, place%node)
            associate (width => size(files(file)%targets), n => size(columns))
               do at = max(first, before), min(past, before + counts(file)) - 1
                  there = at - before
                  mine(at - first + 1) = files(file)%stripes_before + there/n*width &
                                         + columns(mod(there, int(n, int64)) + 1)
               end do
            end associate
         end if
         before = before + counts(file)
      end do
   end subroutine deal_by_target

   !> Where the run of part `part` begins when `total` things are cut evenly.
   pure function run_start(total, part, parts) result(res)
      integer(int64), intent(in) :: total
      integer, intent(in) :: part, parts
      integer(int64) :: res

      res = total/parts*part + min(mod(total, int(parts, int64)), int(part, int64))
   end function run_start

   !> Of a file's targets those that are the node's, by their place from 0.
   pure function columns_of(file, targets, nodes, node) result(res)
      type(striped_file_t), intent(in) :: file
      integer, intent(in) :: targets(:), nodes(:), node
      integer, allocatable :: res(:)
      logical :: is_mine(size(file%targets))
      integer :: at

      do at = 1, size(file%targets)
         is_mine(at) = nodes(place_in(targets, file%targets(at))) == node
      end do
      res = pack([(at, at=0, size(file%targets) - 1)], is_mine)
   end function columns_of

   !> How many stripes of a file are in these columns.
   pure function stripes_in(file, columns) result(res)
      type(striped_file_t), intent(in) :: file
      integer, intent(in) :: columns(:)
      integer(int64) :: res

      associate (width => size(file%targets, kind=int64), n => file%stripes())
         res = n/width*size(columns) + count(columns < mod(n, width))
      end associate
   end function stripes_in

   !> Deals the targets to the nodes: the one with the most data first, each to the
   !> node that has the least. `targets` are in ascending order.
   pure subroutine deal_targets(files, count, targets, nodes)
      type(striped_file_t), intent(in) :: files(:)
      integer, intent(in) :: count
      integer, allocatable, intent(out) :: targets(:), nodes(:)
      integer(int64), allocatable :: bytes(:), order(:)
      integer(int64) :: of_node(count)
      integer :: file, at, place, node

      call get_targets(files, targets)
      allocate (bytes(size(targets)), source=0_int64)
      do file = 1, size(files)
         associate (this => files(file))
            do at = 1, size(this%targets)
               place = place_in(targets, this%targets(at))
               bytes(place) = bytes(place) + this%stripe_bytes*stripes_in(this, [at - 1])
            end do
            ! The last stripe may be shorter.
            at = int(mod(this%stripes() - 1, size(this%targets, kind=int64))) + 1
            place = place_in(targets, this%targets(at))
            bytes(place) = bytes(place) - (this%stripe_bytes*this%stripes() - this%bytes)
         end associate
      end do
      order = order_of(-bytes)
      allocate (nodes(size(targets)))
      of_node = 0_int64
      do at = 1, size(targets)
         node = minloc(of_node, 1)
         nodes(order(at)) = node - 1
         of_node(node) = of_node(node) + bytes(order(at))
      end do
   end subroutine deal_targets

   !> All targets of the files, each once, in ascending order.
   pure subroutine get_targets(files, res)
      type(striped_file_t), intent(in) :: files(:)
      integer, allocatable, intent(out) :: res(:)
      integer, allocatable :: all(:)
      integer :: file, filled, at

      filled = 0
      do file = 1, size(files)
         filled = filled + size(files(file)%targets)
      end do
      allocate (all(filled))
      filled = 0
      do file = 1, size(files)
         associate (some => files(file)%targets)
            all(filled + 1:filled + size(some)) = some
            filled = filled + size(some)
         end associate
      end do
      all = all(order_of(int(all, int64)))
      res = pack(all, [.true., (all(at) /= all(at - 1), at=2, size(all))])
   end subroutine get_targets

   !> The place of a number in an ascending list that has it.
   pure function place_in(list, number) result(res)
      integer, intent(in) :: list(:), number
      integer :: res
      integer :: first, last

      first = 1
      last = size(list)
      do while (first < last)
         res = (first + last)/2
         if (list(res) < number) then
            first = res + 1
         else
            last = res
         end if
      end do
      res = first
   end function place_in

end module stripe_dealing
