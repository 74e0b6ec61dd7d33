!> Interfaces to libc and to the functions of posix_shim.c. Declarations only: a procedure
!> defined here under a libc name would replace libc's, for the MPI library too.
module benchio_posix_api
   use, intrinsic :: iso_c_binding, only: c_char, c_funptr, c_int, c_int64_t, c_null_ptr, c_ptr
   use, intrinsic :: iso_c_binding, only: c_size_t
   implicit none(type, external)
   private

   public :: iovec_t
   public :: c_close, c_closedir, c_exit, c_fnmatch, c_free, c_fsync, c_ftruncate, c_memcpy
   public :: c_posix_memalign, c_preadv, c_pwritev, c_rmdir, c_sleep, c_strerror, c_strlen
   public :: c_truncate, c_unlink
   public :: shim_direct_alignment, shim_drop_pages, shim_end_limits, shim_errno
   public :: shim_file_limit, shim_file_size, shim_first_hole, shim_free_bytes, shim_guard
   public :: shim_identity, shim_interrupted, shim_is_open_to_others, shim_is_regular
   public :: shim_is_same_file, shim_limit_wait, shim_missing, shim_next_name, shim_open
   public :: shim_open_directory, shim_resident_pages, shim_room, shim_start_limits, shim_unguard
   public :: shim_unwritable

   ! How shim_open opens a file; posix_shim.c lists the flags in this order.
   !> Creates the file, which must not exist, to write.
   integer(c_int), parameter, public :: mode_new = 0_c_int
   !> Keep the content, to write. mode_shared creates the file unless another process has, follows
   !> no link and refuses a file with a second name; mode_shared_existing requires that it exists.
   integer(c_int), parameter, public :: mode_shared = 1_c_int, mode_shared_existing = 2_c_int
   !> Creates the file, or keeps the content of an old one, to write; does not wait for the reader
   !> of a pipe.
   integer(c_int), parameter, public :: mode_replacing = 3_c_int
   !> Requires that it exists, to read.
   integer(c_int), parameter, public :: mode_existing = 4_c_int

   ! What a signal that ends the process does to a path that shim_guard was given.
   integer(c_int), parameter, public :: guard_removes = 0_c_int, guard_empties = 1_c_int
   integer(c_int), parameter, public :: guard_removes_directory = 2_c_int

   !> A multiple of the alignments that O_DIRECT needs, and of every page size but huge pages.
   integer(c_int64_t), parameter, public :: memory_alignment = 65536_c_int64_t

   !> `struct iovec`: the start of a piece of memory, and its length in bytes.
   type, bind(c) :: iovec_t
      type(c_ptr) :: base = c_null_ptr
      integer(c_size_t) :: length = 0_c_size_t
   end type iovec_t

   ! ssize_t has the size of c_size_t, and Fortran's integers are signed.
   interface
      function c_pwritev(fd, vectors, count, offset) bind(c, name="pwritev") result(res)
         import :: c_int, c_int64_t, c_size_t, iovec_t
         implicit none(type, external)
         integer(c_int), intent(in), value :: fd, count
         type(iovec_t), intent(in) :: vectors(*)
         integer(c_int64_t), intent(in), value :: offset
         integer(c_size_t) :: res
      end function c_pwritev

      function c_preadv(fd, vectors, count, offset) bind(c, name="preadv") result(res)
         import :: c_int, c_int64_t, c_size_t, iovec_t
         implicit none(type, external)
         integer(c_int), intent(in), value :: fd, count
         type(iovec_t), intent(in) :: vectors(*)
         integer(c_int64_t), intent(in), value :: offset
         integer(c_size_t) :: res
      end function c_preadv

      function c_fsync(fd) bind(c, name="fsync") result(res)
         import :: c_int
         implicit none(type, external)
         integer(c_int), intent(in), value :: fd
         integer(c_int) :: res
      end function c_fsync

      function c_close(fd) bind(c, name="close") result(res)
         import :: c_int
         implicit none(type, external)
         integer(c_int), intent(in), value :: fd
         integer(c_int) :: res
      end function c_close

      !> Flushes C's streams and, in the clean-up of its runtime, Fortran's units.
      subroutine c_exit(status) bind(c, name="exit")
         import :: c_int
         implicit none(type, external)
         integer(c_int), intent(in), value :: status
      end subroutine c_exit

      function c_unlink(path) bind(c, name="unlink") result(res)
         import :: c_char, c_int
         implicit none(type, external)
         character(kind=c_char), intent(in) :: path(*)
         integer(c_int) :: res
      end function c_unlink

      function c_truncate(path, length) bind(c, name="truncate") result(res)
         import :: c_char, c_int, c_int64_t
         implicit none(type, external)
         character(kind=c_char), intent(in) :: path(*)
         integer(c_int64_t), intent(in), value :: length
         integer(c_int) :: res
      end function c_truncate

      function c_ftruncate(fd, length) bind(c, name="ftruncate") result(res)
         import :: c_int, c_int64_t
         implicit none(type, external)
         integer(c_int), intent(in), value :: fd
         integer(c_int64_t), intent(in), value :: length
         integer(c_int) :: res
      end function c_ftruncate

      function c_rmdir(path) bind(c, name="rmdir") result(res)
         import :: c_char, c_int
         implicit none(type, external)
         character(kind=c_char), intent(in) :: path(*)
         integer(c_int) :: res
      end function c_rmdir

      function c_closedir(directory) bind(c, name="closedir") result(res)
         import :: c_int, c_ptr
         implicit none(type, external)
         type(c_ptr), intent(in), value :: directory
         integer(c_int) :: res
      end function c_closedir

      function c_memcpy(to, from, bytes) bind(c, name="memcpy") result(res)
         import :: c_ptr, c_size_t
         implicit none(type, external)
         type(c_ptr), intent(in), value :: to, from
         integer(c_size_t), intent(in), value :: bytes
         type(c_ptr) :: res
      end function c_memcpy

      function c_fnmatch(pattern, text, flags) bind(c, name="fnmatch") result(res)
         import :: c_char, c_int
         implicit none(type, external)
         character(kind=c_char), intent(in) :: pattern(*), text(*)
         integer(c_int), intent(in), value :: flags
         integer(c_int) :: res
      end function c_fnmatch

      function c_strerror(number) bind(c, name="strerror") result(res)
         import :: c_int, c_ptr
         implicit none(type, external)
         integer(c_int), intent(in), value :: number
         type(c_ptr) :: res
      end function c_strerror

      function c_strlen(string) bind(c, name="strlen") result(res)
         import :: c_ptr, c_size_t
         implicit none(type, external)
         type(c_ptr), intent(in), value :: string
         integer(c_size_t) :: res
      end function c_strlen

      function shim_errno() bind(c, name="benchio_errno") result(res)
         import :: c_int
         implicit none(type, external)
         integer(c_int) :: res
      end function shim_errno

      function shim_interrupted(number) bind(c, name="benchio_interrupted") result(res)
         import :: c_int
         implicit none(type, external)
         integer(c_int), intent(in), value :: number
         integer(c_int) :: res
      end function shim_interrupted

      function shim_missing(number) bind(c, name="benchio_missing") result(res)
         import :: c_int
         implicit none(type, external)
         integer(c_int), intent(in), value :: number
         integer(c_int) :: res
      end function shim_missing

      function shim_unwritable(number) bind(c, name="benchio_unwritable") result(res)
         import :: c_int
         implicit none(type, external)
         integer(c_int), intent(in), value :: number
         integer(c_int) :: res
      end function shim_unwritable

      function c_posix_memalign(memory, alignment, bytes) bind(c, name="posix_memalign") &
         result(res)
         import :: c_int, c_int64_t, c_ptr
         implicit none(type, external)
         type(c_ptr), intent(out) :: memory
         integer(c_int64_t), intent(in), value :: alignment, bytes
         integer(c_int) :: res
      end function c_posix_memalign

      subroutine c_free(memory) bind(c, name="free")
         import :: c_ptr
         implicit none(type, external)
         type(c_ptr), intent(in), value :: memory
      end subroutine c_free

      function shim_direct_alignment(fd) bind(c, name="benchio_direct_alignment") result(res)
         import :: c_int, c_int64_t
         implicit none(type, external)
         integer(c_int), intent(in), value :: fd
         integer(c_int64_t) :: res
      end function shim_direct_alignment

      !> open(2) with one of the modes above, with O_DIRECT if `direct` is not 0; retried when a
      !> signal interrupts it.
      function shim_open(path, mode, direct) bind(c, name="benchio_open") result(res)
         import :: c_char, c_int
         implicit none(type, external)
         character(kind=c_char), intent(in) :: path(*)
         integer(c_int), intent(in), value :: mode, direct
         integer(c_int) :: res
      end function shim_open

      subroutine shim_guard(path, mode) bind(c, name="benchio_guard")
         import :: c_char, c_int
         implicit none(type, external)
         character(kind=c_char), intent(in) :: path(*)
         integer(c_int), intent(in), value :: mode
      end subroutine shim_guard

      subroutine shim_start_limits(name, finish) bind(c, name="benchio_start_limits")
         import :: c_char, c_funptr
         implicit none(type, external)
         character(kind=c_char), intent(in) :: name(*)
         type(c_funptr), intent(in), value :: finish
      end subroutine shim_start_limits

      subroutine shim_limit_wait(failure) bind(c, name="benchio_limit_wait")
         import :: c_char
         implicit none(type, external)
         character(kind=c_char), intent(in) :: failure(*)
      end subroutine shim_limit_wait

      subroutine shim_end_limits() bind(c, name="benchio_end_limits")
         implicit none(type, external)
      end subroutine shim_end_limits

      subroutine shim_unguard() bind(c, name="benchio_unguard")
         implicit none(type, external)
      end subroutine shim_unguard

      function shim_is_open_to_others(path) bind(c, name="benchio_is_open_to_others") result(res)
         import :: c_char, c_int
         implicit none(type, external)
         character(kind=c_char), intent(in) :: path(*)
         integer(c_int) :: res
      end function shim_is_open_to_others

      function shim_is_same_file(one, other) bind(c, name="benchio_is_same_file") result(res)
         import :: c_char, c_int
         implicit none(type, external)
         character(kind=c_char), intent(in) :: one(*), other(*)
         integer(c_int) :: res
      end function shim_is_same_file

      function shim_is_regular(path) bind(c, name="benchio_is_regular") result(res)
         import :: c_char, c_int
         implicit none(type, external)
         character(kind=c_char), intent(in) :: path(*)
         integer(c_int) :: res
      end function shim_is_regular

      function shim_open_directory(path) bind(c, name="benchio_open_directory") result(res)
         import :: c_char, c_ptr
         implicit none(type, external)
         character(kind=c_char), intent(in) :: path(*)
         type(c_ptr) :: res
      end function shim_open_directory

      function shim_next_name(directory, name, size) bind(c, name="benchio_next_name") result(res)
         import :: c_char, c_int, c_ptr, c_size_t
         implicit none(type, external)
         type(c_ptr), intent(in), value :: directory
         integer(c_size_t), intent(in), value :: size
         character(kind=c_char), intent(inout) :: name(size)
         integer(c_int) :: res
      end function shim_next_name

      function shim_free_bytes(path) bind(c, name="benchio_free_bytes") result(res)
         import :: c_char, c_int64_t
         implicit none(type, external)
         character(kind=c_char), intent(in) :: path(*)
         integer(c_int64_t) :: res
      end function shim_free_bytes

      function shim_room(path) bind(c, name="benchio_room") result(res)
         import :: c_char, c_int64_t
         implicit none(type, external)
         character(kind=c_char), intent(in) :: path(*)
         integer(c_int64_t) :: res
      end function shim_room

      function shim_file_limit() bind(c, name="benchio_file_limit") result(res)
         import :: c_int64_t
         implicit none(type, external)
         integer(c_int64_t) :: res
      end function shim_file_limit

      function shim_identity(path, device, number) bind(c, name="benchio_identity") result(res)
         import :: c_char, c_int, c_int64_t
         implicit none(type, external)
         character(kind=c_char), intent(in) :: path(*)
         integer(c_int64_t), intent(out) :: device, number
         integer(c_int) :: res
      end function shim_identity

      function c_sleep(seconds) bind(c, name="sleep") result(res)
         import :: c_int
         implicit none(type, external)
         integer(c_int), intent(in), value :: seconds
         integer(c_int) :: res
      end function c_sleep

      function shim_file_size(path) bind(c, name="benchio_file_size") result(res)
         import :: c_char, c_int64_t
         implicit none(type, external)
         character(kind=c_char), intent(in) :: path(*)
         integer(c_int64_t) :: res
      end function shim_file_size

      function shim_first_hole(fd, from) bind(c, name="benchio_first_hole") result(res)
         import :: c_int, c_int64_t
         implicit none(type, external)
         integer(c_int), intent(in), value :: fd
         integer(c_int64_t), intent(in), value :: from
         integer(c_int64_t) :: res
      end function shim_first_hole

      function shim_drop_pages(fd) bind(c, name="benchio_drop_pages") result(res)
         import :: c_int
         implicit none(type, external)
         integer(c_int), intent(in), value :: fd
         integer(c_int) :: res
      end function shim_drop_pages

      function shim_resident_pages(fd, size) bind(c, name="benchio_resident_pages") result(res)
         import :: c_int, c_int64_t
         implicit none(type, external)
         integer(c_int), intent(in), value :: fd
         integer(c_int64_t), intent(in), value :: size
         integer(c_int64_t) :: res
      end function shim_resident_pages
   end interface

end module benchio_posix_api
