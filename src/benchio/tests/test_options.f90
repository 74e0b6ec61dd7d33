program test_options
   use, intrinsic :: iso_fortran_env, only: int64, real64
   use benchio_errors, only: error_t
   use benchio_option_table, only: is_for, name_of, options_known, place_of, takes_value
   use benchio_option_values, only: read_bytes, read_choice, read_count, read_hint, read_seconds
   use benchio_task, only: hint_t
   use benchio_testing, only: expect, expect_refused, finish
   implicit none(type, external)
   character(len=*), parameter :: modes(3) = [character(len=6) :: "drop", "shift", "direct"]
   type(error_t), allocatable :: error
   type(hint_t), allocatable :: hints(:)
   character(len=:), allocatable :: mode
   integer(int64) :: bytes
   real(real64) :: seconds
   integer :: at, count, files, read

   do at = 1, size(options_known)
      call expect("each name is there once", place_of(name_of(options_known(at))), at)
   end do
   call expect("an unknown one", place_of("--repeat"), 0)
   files = place_of("--files")
   read = place_of("--read")
   call expect("a value", takes_value(options_known(files)))
   call expect("no value", (.not. takes_value(options_known(read))))
   call expect("of a layer", is_for(options_known(files), "aligned"))
   call expect("of a variant of it", is_for(options_known(files), "aligned-random"))
   call expect("not of another", (.not. is_for(options_known(files), "mpiio")))
   call expect("of all", is_for(options_known(read), "mpiio"))

   call read_count("--repeats", "2147483647", count, error)
   call expect("the most repeats", count, huge(count))
   call read_count("--repeats", "0", count, error)
   call expect_refused("no repeat", error)
   call read_count("--repeats", "2147483648", count, error)
   call expect_refused("too many repeats", error)
   call read_count("--halo", "0", count, error, least=0)
   call expect("no halo", count, 0)

   call read_bytes("--record", "47008", bytes, error)
   call expect("bytes", bytes, 47008_int64)
   call read_bytes("--record", "8388607T", bytes, error)
   call expect("the most TiB", bytes, 9223370937343148032_int64)
   call read_bytes("--record", "8388608T", bytes, error)
   call expect_refused("2**63 bytes", error)
   call read_bytes("--record", "1P", bytes, error)
   call expect_refused("another letter", error)
   call read_bytes("--record", "K", bytes, error)
   call expect_refused("a letter alone", error)
   call read_bytes("--record", "0", bytes, error)
   call expect_refused("no bytes", error)

   call read_seconds("--compute", "0.5", seconds, error)
   call expect("half a second", seconds, 0.5_real64, 0.0_real64)
   call read_seconds("--compute", "1e3", seconds, error)
   call expect_refused("an exponent", error)
   call read_seconds("--compute", "100000001", seconds, error)
   call expect_refused("more than three years", error)
   call read_seconds("--compute", ".", seconds, error)
   call expect_refused("a point", error)

   call read_choice("--cache", "shift", modes, mode, error)
   call expect("one of three", mode, "shift")
   call read_choice("--cache", "drop ", modes, mode, error)
   call expect_refused("a blank too many", error)

   allocate (hints(0))
   call read_hint("a=b=c", hints, error)
   call expect("up to the first sign", hints(1)%key//" is "//hints(1)%value, "a is b=c")
   call read_hint("=b", hints, error)
   call expect_refused("no key", error)
   call read_hint("a=", hints, error)
   call expect_refused("no value", error)
   call expect("one hint", size(hints), 1)
   call finish()
end program test_options
