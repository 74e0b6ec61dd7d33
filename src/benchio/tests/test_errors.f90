program test_errors
   use benchio_errors, only: error_t, fail, keep_first, status_failed, status_usage
   use benchio_testing, only: expect, expect_refused, finish
   implicit none(type, external)
   type(error_t), allocatable :: first, later, none

   call fail(first, "the first")
   call expect("a failed call", first%status, status_failed)
   call expect("is of one process", (.not. first%is_shared))
   call fail(later, "the later", status_usage)
   call expect_refused("a usage error", later)
   call expect("is of all processes", later%is_shared)

   call keep_first(first, none)
   call expect("no later one", first%text, "the first")
   call keep_first(first, later)
   call expect("the first is kept", first%text, "the first")
   call expect("the later is dropped", (.not. allocated(later)))
   call keep_first(none, first)
   call expect("the only one moves", none%text, "the first")
   call expect("and is gone there", (.not. allocated(first)))
   call finish()
end program test_errors
