!> Interfaces to libc and to the few functions of `posix_shim.c`. They declare,
!> and define nothing: a procedure defined here under libc's name would take its
!> place, for the MPI library too.
module posix_api
   use, intrinsic :: iso_c_binding, only: c_char, c_int, c_int64_t, c_null_ptr, c_ptr, c_size_t
   implicit none(type, external)
   private

   public :: iovec_t
   public :: c_pwritev, c_preadv, c_fsync, c_close, c_unlink, c_exit, c_strerror, c_strlen
   public :: c_fnmatch, c_memcpy, shim_open_direct, shim_free_bytes
   public :: shim_errno, shim_interrupted, shim_missing, shim_open_new, shim_open_existing
   public :: shim_open_shared, shim_is_regular, shim_is_same_file, c_truncate
   public :: shim_file_size, shim_first_hole, shim_drop_pages, shim_resident_pages
   public :: c_closedir, c_rmdir, shim_open_directory, shim_next_name

   !> `struct iovec`: a stretch of memory and its bytes.
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

      !> Flushes C's and, by the runtime's own clean-up, Fortran's units.
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

      function shim_open_new(path) bind(c, name="benchio_open_new") result(res)
         import :: c_char, c_int
         implicit none(type, external)
         character(kind=c_char), intent(in) :: path(*)
         integer(c_int) :: res
      end function shim_open_new

      function shim_open_shared(path, creates) bind(c, name="benchio_open_shared") result(res)
         import :: c_char, c_int
         implicit none(type, external)
         character(kind=c_char), intent(in) :: path(*)
         integer(c_int), intent(in), value :: creates
         integer(c_int) :: res
      end function shim_open_shared

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

      function shim_open_existing(path) bind(c, name="benchio_open_existing") result(res)
         import :: c_char, c_int
         implicit none(type, external)
         character(kind=c_char), intent(in) :: path(*)
         integer(c_int) :: res
      end function shim_open_existing

      function shim_open_direct(path) bind(c, name="benchio_open_direct") result(res)
         import :: c_char, c_int
         implicit none(type, external)
         character(kind=c_char), intent(in) :: path(*)
         integer(c_int) :: res
      end function shim_open_direct

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

end module posix_api
