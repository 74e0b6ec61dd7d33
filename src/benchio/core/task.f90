!> What to measure: the parameters that a layer needs, wherever they come from.
module benchio_task
   use, intrinsic :: iso_fortran_env, only: int64, real64
   implicit none(type, external)
   private

   public :: task_t, hint_t

   !> An MPI-IO hint.
   type :: hint_t
      character(len=:), allocatable :: key, value
      !> A shell pattern for the paths that it applies to; unallocated for all paths.
      character(len=:), allocatable :: files
      !> Whether it stands in the file that ROMIO reads by itself.
      logical :: is_in_file = .false.
   end type hint_t

   type :: task_t
      !> N1 N2 N3: the sizes of the whole array if global, else of each block.
      integer(int64) :: sizes(3) = 0_int64
      logical :: is_global = .false.
      !> The seed of the data.
      integer(int64) :: seed = 0_int64
      !> Whether to compare the data read with the data written.
      logical :: verify = .false.
      !> Halo elements on each side of a block in memory.
      integer :: halo = 1
      !> Whether to read with O_DIRECT where a layer can (`--cache=direct`), and whether to write
      !> and read with nothing else (`--direct`).
      logical :: reads_direct = .false., direct = .false.
      !> Whether to time each call that moves data.
      logical :: latency = .false.
      !> Hints for MPI-IO; layers without MPI-IO ignore them.
      type(hint_t), allocatable :: hints(:)
      !> Variables of the environment to record.
      type(hint_t), allocatable :: environment(:)

      !> How the array is cut: `block`, `slab` or `pencil`.
      character(len=:), allocatable :: decomposition
      !> How many processes gather and write the data of all; 0 if every process writes.
      integer :: writers = 0

      !> btio, snapshot: time steps to write; 0 for the layer's default.
      integer :: steps = 0
      !> snapshot: time steps computed before each one written, and the seconds that each
      !> takes.
      integer :: every = 100
      real(real64) :: compute_seconds = 0.001_real64
      !> snapshot: whether the processes exchange the faces of their blocks in each time step.
      logical :: exchanges = .false.
      !> strided, mapped: bytes of a record; 0 for a row of N1 elements.
      integer(int64) :: record_bytes = 0_int64
      !> group, aligned: the number of files.
      integer :: files = 1
      !> aligned: the table of the files' stripes or, without one, the stripe size and count to
      !> assume.
      character(len=:), allocatable :: layout_path
      integer(int64) :: stripe_bytes = 1048576_int64
      integer :: stripe_count = 1
   end type task_t

end module benchio_task
