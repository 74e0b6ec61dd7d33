!> What is to be measured, as far as a layer has to know it. The command line is
!> one way to come by a task; this knows of no other.
module task
   use, intrinsic :: iso_fortran_env, only: int64, real64
   implicit none(type, external)
   private

   public :: task_t, hint_t

   !> An MPI-IO hint.
   type :: hint_t
      character(len=:), allocatable :: key, value
      !> The shell pattern of the paths that it is meant for; all without one.
      character(len=:), allocatable :: files
   end type hint_t

   type :: task_t
      !> The sizes N1 N2 N3, and whether they are those of the whole array.
      integer(int64) :: sizes(3) = 0_int64
      logical :: is_global = .false.
      !> The seed of the data.
      integer(int64) :: seed = 0_int64
      !> Whether what is read is to be compared with what was written.
      logical :: verify = .false.
      !> Whether files are to be read past the page cache, where a layer can.
      logical :: direct = .false.
      !> What MPI-IO is to be told; no matter to layers without it.
      type(hint_t), allocatable :: hints(:)

      !> How the array is cut: `block`, `slab` or `pencil`.
      character(len=:), allocatable :: decomposition
      !> How many processes write, with the data of all; 0 for all of them.
      integer :: writers = 0

      !> btio, snapshot: the time steps that are written; 0 for the layer's own
      !> number.
      integer :: steps = 0
      !> snapshot: the time steps that are computed before each that is written,
      !> and the seconds that each takes.
      integer :: every = 100
      real(real64) :: compute_seconds = 0.001_real64
      !> strided: the bytes of a record; 0 for those of a row of N1 elements.
      integer(int64) :: record_bytes = 0_int64
      !> aligned: the files that the data are divided among; the table of their
      !> stripes or, without one, the size and number that are assumed.
      integer :: files = 1
      character(len=:), allocatable :: layout_path
      integer(int64) :: stripe_bytes = 1048576_int64
      integer :: stripe_count = 1
   end type task_t

end module task
