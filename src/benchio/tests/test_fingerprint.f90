program test_fingerprint
   use, intrinsic :: iso_fortran_env, only: int64
   use benchio_fingerprint, only: mixed_seed, value_at
   use benchio_sorting, only: order_of
   use benchio_testing, only: expect, finish
   use benchio_text, only: to_text
   implicit none(type, external)
   !&< tables
   integer(int64), parameter :: indices(6) = [ &
      0_int64, 1_int64, 2147483647_int64, 2147483648_int64, 8589934591_int64, &
      1152921504606846975_int64]
   integer(int64), parameter :: seeds(4) = [0_int64, 1_int64, 20231009_int64, huge(1_int64)]
   ! Computed by tests/kernel/reference.py, with NumPy's unsigned integers.
   integer(int64), parameter :: expected(6, 4) = reshape([ &
      -6779548115033306388_int64, -5626555116199584083_int64, -6912335936281533165_int64, &
      -5484754428218619156_int64, -7635172470420167405_int64, -2443683186950298349_int64, &
      2875033069643683977_int64, 4028023869454273736_int64, 2746752284533471094_int64, &
      3886082392042952841_int64, 1154738618793342838_int64, 6348479697250301814_int64, &
      1701008255806189654_int64, 548155994460693527_int64, 1613262840130789289_int64, &
      401728561550438486_int64, 2340585381710487465_int64, 7523067468960194473_int64, &
      3601549365832100552_int64, 2448558617561251465_int64, 3459611062669952311_int64, &
      2590500043433093832_int64, 439973902944453943_int64, 5622526358397273399_int64], [6, 4])
   !&>
   integer(int64) :: at, many(100000)
   integer :: seed

   do seed = 1, size(seeds)
      call expect("values of seed "//to_text(seeds(seed)), &
                  value_at(indices, mixed_seed(seeds(seed))), expected(:, seed))
      many = value_at([(at, at=0, size(many) - 1)], mixed_seed(seeds(seed)))
      call expect("no two elements share a value", all_differ(many))
   end do
   many = value_at(12345_int64, mixed_seed([(at, at=0, size(many) - 1)]))
   call expect("no two seeds share a value", all_differ(many))
   call finish()

contains

   function all_differ(values) result(res)
      integer(int64), intent(in) :: values(:)
      logical :: res
      integer(int64), allocatable :: sorted(:)

      allocate (sorted, source=values(order_of(values)))
      res = all(sorted(2:) /= sorted(:size(sorted) - 1))
   end function all_differ

end program test_fingerprint
