!> The assignment of stripes to processes, by one of four schemes:
!>   single   one process has all stripes
!>   files    a random permutation of the files is distributed round robin: each process has all
!>            stripes of its files
!>   random   a random permutation of the stripes is distributed round robin
!>   targets  each target is assigned to one node, and the stripes on a node's targets to
!>            the processes of the node
!> Stripes are numbered from 0 through all files. Each process computes its own stripes,
!> without communication; the results of all processes are consistent.
module benchio_stripe_assignment
   use, intrinsic :: iso_fortran_env, only: int64
   use benchio_fingerprint, only: mixed_seed, value_at
   use benchio_sorting, only: order_of
   use benchio_stripe_table, only: striped_file_t
   implicit none(type, external)
   private

   public :: place_t, assign_stripes

   !> The rank and node of a process, as in team_t.
   type :: place_t
      integer :: rank = 0, size = 1
      integer :: node = 0, nodes = 1, node_rank = 0, node_size = 1
   end type place_t

   ! Rounds of the Feistel network.
   integer, parameter :: shuffle_rounds = 6

contains

   !> The stripes of a process, in ascending order.
   pure subroutine assign_stripes(scheme, files, seed, place, mine)
      character(len=*), intent(in) :: scheme
      type(striped_file_t), intent(in) :: files(:)
      integer(int64), intent(in) :: seed
      type(place_t), intent(in) :: place
      integer(int64), allocatable, intent(out) :: mine(:)
      integer(int64) :: total, at

      associate (last => files(size(files)))
         total = last%stripes_before + last%stripes()
      end associate
      select case (scheme)
      case ("random")
         call assign_at_random(total, seed, place, mine)
      case ("files")
         call assign_files(files, seed, place, mine)
      case ("targets")
         call assign_by_target(files, place, mine)
      case default
         if (place%rank > 0) total = 0_int64
         allocate (mine(total))
         mine = [(at, at=0, total - 1)]
      end select
   end subroutine assign_stripes

   pure subroutine assign_files(files, seed, place, mine)
      type(striped_file_t), intent(in) :: files(:)
      integer(int64), intent(in) :: seed
      type(place_t), intent(in) :: place
      integer(int64), allocatable, intent(out) :: mine(:)
      integer(int64), allocatable :: dealt(:)
      integer(int64) :: file, at, total, filled

      call assign_at_random(size(files, kind=int64), seed, place, dealt)
      total = 0_int64
      do file = 1, size(dealt, kind=int64)
         total = total + files(dealt(file) + 1)%stripes()
      end do
      allocate (mine(total))
      filled = 0_int64
      do file = 1, size(dealt, kind=int64)
         associate (this => files(dealt(file) + 1))
            mine(filled + 1:filled + this%stripes()) = &
               [(this%stripes_before + at, at=0, this%stripes() - 1)]
            filled = filled + this%stripes()
         end associate
      end do
   end subroutine assign_files

   pure subroutine assign_at_random(total, seed, place, mine)
      integer(int64), intent(in) :: total, seed
      type(place_t), intent(in) :: place
      integer(int64), allocatable, intent(out) :: mine(:)
      integer(int64) :: at

      allocate (mine((total + place%size - 1 - place%rank)/place%size))
      do at = 1, size(mine, kind=int64)
         mine(at) = permuted((at - 1)*place%size + place%rank, total, mixed_seed(seed))
      end do
      mine = mine(order_of(mine))
   end subroutine assign_at_random

   !> The image of a number under a pseudo-random permutation of 0 to `total` - 1: a
   !> Feistel network on the next even number of bits, applied until the result is less
   !> than `total` (cycle walking; Black and Rogaway 2002).
   pure function permuted(number, total, mixed) result(res)
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
            right = iand(ieor(left, hashed(right, value_at(int(round, int64), mixed))), mask)
            left = held
         end do
         res = ior(shiftl(left, half), right)
         if (res < total) return
      end do
   end function permuted

   !> The round function: a hash of a number and a key. The fingerprint's exclusive-or and
   !> shifts alone are linear, and would permute numbers with equal low bits alike.
   pure function hashed(number, key) result(res)
      integer(int64), intent(in) :: number, key
      integer(int64) :: res
      ! Factors of 31 bits, so that the product does not overflow.
      integer(int64), parameter :: factor = 1664525957_int64, low = 2147483647_int64

      res = iand(ieor(number, key), low)*factor
      res = iand(ieor(res, shiftr(res, 27)), low)*factor
      res = ieor(res, shiftr(res, 31))
   end function hashed

   !> Cuts the stripes on the targets of the node, in ascending order, into one contiguous
   !> part for each of its processes, so that few processes open the same file.
   pure subroutine assign_by_target(files, place, mine)
      type(striped_file_t), intent(in) :: files(:)
      type(place_t), intent(in) :: place
      integer(int64), allocatable, intent(out) :: mine(:)
      integer, allocatable :: targets(:), nodes(:), columns(:)
      integer(int64) :: counts(size(files)), total, first, past, before, at, there
      integer :: file

      call assign_targets(files, place%nodes, targets, nodes)
      do file = 1, size(files)
         columns = columns_of(files(file), targets, nodes, place%node)
         counts(file) = stripes_in(files(file), columns)
      end do
      total = sum(counts)
      first = part_start(total, place%node_rank, place%node_size)
      past = part_start(total, place%node_rank + 1, place%node_size)
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
   end subroutine assign_by_target

   !> The start of part `part` when `total` items are cut evenly.
   pure function part_start(total, part, parts) result(res)
      integer(int64), intent(in) :: total
      integer, intent(in) :: part, parts
      integer(int64) :: res

      res = total/parts*part + min(mod(total, int(parts, int64)), int(part, int64))
   end function part_start

   !> The positions, from 0, of the node's targets among a file's targets.
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

   !> The number of a file's stripes in these columns.
   pure function stripes_in(file, columns) result(res)
      type(striped_file_t), intent(in) :: file
      integer, intent(in) :: columns(:)
      integer(int64) :: res

      associate (width => size(file%targets, kind=int64), n => file%stripes())
         res = n/width*size(columns) + count(columns < mod(n, width))
      end associate
   end function stripes_in

   !> Assigns the targets to the nodes: in the order of decreasing data, each to the node
   !> with the least data so far. `targets` are in ascending order.
   pure subroutine assign_targets(files, count, targets, nodes)
      type(striped_file_t), intent(in) :: files(:)
      integer, intent(in) :: count
      integer, allocatable, intent(out) :: targets(:), nodes(:)
      integer(int64), allocatable :: bytes(:), order(:)
      integer(int64) :: of_node(count)
      integer :: file, at, place, node

      call get_targets(files, targets)
      allocate (bytes(size(targets)), source=0_int64)
      do file = 1, size(files)
         ! A stripe may be longer than the file.
         associate (this => files(file), &
                    stripe => min(files(file)%stripe_bytes, files(file)%bytes))
            do at = 1, size(this%targets)
               place = place_in(targets, this%targets(at))
               bytes(place) = bytes(place) + stripe*stripes_in(this, [at - 1])
            end do
            ! The last stripe may be shorter.
            at = int(mod(this%stripes() - 1, size(this%targets, kind=int64))) + 1
            place = place_in(targets, this%targets(at))
            bytes(place) = bytes(place) - (stripe*this%stripes() - this%bytes)
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
   end subroutine assign_targets

   !> The distinct targets of the files, in ascending order.
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

   !> The position of a number in an ascending list that contains it.
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

end module benchio_stripe_assignment
