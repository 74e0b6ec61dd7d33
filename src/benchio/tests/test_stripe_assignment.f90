program test_stripe_assignment
   use, intrinsic :: iso_fortran_env, only: int64
   use benchio_errors, only: error_t
   use benchio_fingerprint, only: mixed_seed, value_at
   use benchio_sorting, only: order_of
   use benchio_stripe_assignment, only: assign_stripes, place_t
   use benchio_stripe_table, only: divide_data, striped_file_t
   use benchio_testing, only: expect, finish
   use benchio_text, only: to_text
   implicit none(type, external)

   type :: stripes_t
      integer(int64), allocatable :: numbers(:)
   end type stripes_t

   character(len=*), parameter :: schemes(4) = ["single ", "files  ", "random ", "targets"]
   integer(int64), parameter :: seed = 23_int64
   type(striped_file_t), allocatable, save :: files(:)
   type(stripes_t), allocatable, save :: dealt(:)
   integer, allocatable, save :: nodes(:), targets(:), file_of(:)
   integer(int64), allocatable, save :: lengths(:)
   integer(int64) :: drawn = 0_int64
   integer :: example, scheme

   do example = 1, 300
      call draw_files()
      do scheme = 1, size(schemes)
         call deal(trim(schemes(scheme)))
         call every_stripe_is_assigned_once()
         select case (trim(schemes(scheme)))
         case ("single")
            call expect(here("all are the first rank's"), size(dealt(1)%numbers), size(targets))
         case ("files")
            call whole_files()
         case ("random")
            call expect(here("as many each"), maxval(counts()) - minval(counts()) <= 1)
         case default
            call a_target_is_of_one_node()
         end select
      end do
   end do
   call a_random_assignment_is_not_regular()
   call stripes_are_longer_than_files()
   call finish()

contains

   !> Draws files on up to ten targets, and ranks on up to four nodes.
   subroutine draw_files()
      type(error_t), allocatable :: error
      integer :: at, node, stripe, elements, last

      if (allocated(files)) deallocate (files, nodes, targets, lengths, file_of)
      allocate (files(between(1, 8)))
      do at = 1, size(files)
         files(at)%stripe_bytes = between(1, 40)
         files(at)%targets = [(between(0, 9), node=1, between(1, 6))]
      end do
      elements = between(8, 900)
      call divide_data(int(elements, int64), files, error)
      ! Nodes are numbered by their first ranks.
      allocate (nodes(between(1, 9)))
      last = -1
      do at = 1, size(nodes)
         nodes(at) = between(0, min(last + 1, 3))
         last = max(last, nodes(at))
      end do
      allocate (targets(0), lengths(0), file_of(0))
      do at = 1, size(files)
         associate (this => files(at), width => size(files(at)%targets))
            do stripe = 0, int(this%stripes()) - 1
               targets = [targets, this%targets(mod(stripe, width) + 1)]
               lengths = [lengths, min(this%stripe_bytes, this%bytes - stripe*this%stripe_bytes)]
               file_of = [file_of, at]
            end do
         end associate
      end do
   end subroutine draw_files

   subroutine deal(name)
      character(len=*), intent(in) :: name
      integer :: at

      if (allocated(dealt)) deallocate (dealt)
      allocate (dealt(size(nodes)))
      do at = 1, size(nodes)
         call assign_stripes(name, files, seed, &
                             place_t(at - 1, size(nodes), nodes(at), maxval(nodes) + 1, &
                                     count(nodes(:at - 1) == nodes(at)), &
                                     count(nodes == nodes(at))), dealt(at)%numbers)
      end do
   end subroutine deal

   subroutine every_stripe_is_assigned_once()
      integer :: owners(0:size(targets) - 1), at

      owners = 0
      do at = 1, size(dealt)
         associate (mine => dealt(at)%numbers)
            call expect(here("in ascending order"), all(mine(2:) > mine(:size(mine) - 1)))
            owners(mine) = owners(mine) + 1
         end associate
      end do
      call expect(here("every stripe is assigned once"), all(owners == 1))
   end subroutine every_stripe_is_assigned_once

   subroutine whole_files()
      integer :: owner(size(files)), of_rank(size(dealt)), at, stripe

      owner = 0
      of_rank = 0
      do at = 1, size(dealt)
         do stripe = 1, size(dealt(at)%numbers)
            associate (file => file_of(dealt(at)%numbers(stripe) + 1))
               if (owner(file) == 0) of_rank(at) = of_rank(at) + 1
               if (owner(file) == 0) owner(file) = at
               call expect(here("each file is of one rank"), owner(file), at)
            end associate
         end do
      end do
      call expect(here("as many each"), &
                  maxval(of_rank) <= (size(files) + size(dealt) - 1)/size(dealt))
   end subroutine whole_files

   subroutine a_target_is_of_one_node()
      integer :: node_of(0:9), at, stripe, node
      integer(int64) :: of_node(0:maxval(nodes)), of_target(0:9)

      node_of = -1
      of_node = 0_int64
      of_target = 0_int64
      do at = 1, size(dealt)
         do stripe = 1, size(dealt(at)%numbers)
            associate (number => dealt(at)%numbers(stripe) + 1)
               associate (target => targets(number))
                  if (node_of(target) < 0) node_of(target) = nodes(at)
                  call expect(here("a target is of one node"), node_of(target), nodes(at))
                  of_target(target) = of_target(target) + lengths(number)
               end associate
               of_node(nodes(at)) = of_node(nodes(at)) + lengths(number)
            end associate
         end do
      end do
      ! Each target was assigned to the node with the least load at that time.
      call expect(here("loads differ by a target at most"), &
                  maxval(of_node) - minval(of_node) <= maxval(of_target))
      do node = 0, maxval(nodes)
         associate (these => pack(counts(), nodes == node))
            call expect(here("as many each of a node"), maxval(these) - minval(these) <= 1)
         end associate
      end do
   end subroutine a_target_is_of_one_node

   !> One file on 8 targets, and 8 ranks: assigned round robin, each rank would have one target.
   subroutine a_random_assignment_is_not_regular()
      type(error_t), allocatable :: error
      integer(int64), allocatable :: steps(:)
      integer :: at, target, on(0:7)

      if (allocated(files)) deallocate (files)
      allocate (files(1))
      files(1)%stripe_bytes = 8_int64
      files(1)%targets = [(target, target=0, 7)]
      call divide_data(4096_int64, files, error)
      nodes = [0, 0, 1, 1, 2, 2, 3, 3]
      call deal("random")
      do at = 1, size(dealt)
         associate (mine => dealt(at)%numbers)
            on = [(count(mod(mine, 8_int64) == target), target=0, 7)]
            call expect("as many each", sum(on), 512)
            ! 64 on each, within four standard deviations of the binomial distribution.
            call expect("on all targets", all(abs(on - 64) <= 30))
            call expect("not on all alike", maxval(on) > minval(on))
            steps = mine(2:) - mine(:size(mine) - 1)
            steps = steps(order_of(steps))
            call expect("no regular steps", count(steps(2:) /= steps(:size(steps) - 1)) >= 10)
         end associate
      end do
   end subroutine a_random_assignment_is_not_regular

   !> Targets 5, 6 and 5 have files of 16, 16 and 8 bytes.
   subroutine stripes_are_longer_than_files()
      type(error_t), allocatable :: error
      integer :: at

      if (allocated(files)) deallocate (files)
      allocate (files(3))
      do at = 1, size(files)
         files(at)%stripe_bytes = huge(files(at)%stripe_bytes)
         files(at)%targets = [5 + mod(at - 1, 2)]
      end do
      call divide_data(5_int64, files, error)
      nodes = [0, 1]
      call deal("targets")
      call expect("the target with the most data first", all(dealt(1)%numbers == [0, 2]))
      call expect("and the other one", all(dealt(2)%numbers == [1]))
   end subroutine stripes_are_longer_than_files

   pure function counts() result(res)
      integer :: res(size(dealt))
      integer :: at

      res = [(size(dealt(at)%numbers), at=1, size(dealt))]
   end function counts

   function here(what) result(res)
      character(len=*), intent(in) :: what
      character(len=:), allocatable :: res

      res = "example "//to_text(example)//", "//trim(schemes(scheme))//": "//what
   end function here

   !> The next pseudo-random number from `least` to `most`; the same in each run.
   function between(least, most) result(res)
      integer, intent(in) :: least, most
      integer :: res

      drawn = drawn + 1
      res = least + int(modulo(shiftr(value_at(drawn, mixed_seed(seed)), 17), &
                               most - least + 1_int64))
   end function between

end program test_stripe_assignment
