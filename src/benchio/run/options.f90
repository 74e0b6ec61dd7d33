!> The options of a run: what the user requested, as values.
module benchio_options
   use, intrinsic :: iso_fortran_env, only: int64, real64
   use benchio_task, only: task_t
   use benchio_text, only: string_t
   implicit none(type, external)
   private

   public :: options_t

   type :: options_t
      !> The parameters of the layers.
      type(task_t) :: task
      !> The layers and directories to use, in this order.
      type(string_t), allocatable :: layers(:), directories(:)
      logical :: fsync = .false., write = .true., read = .false., require_hints = .false.
      logical :: keep = .false., help = .false., version = .false.
      !> The least number of repeats of each phase, and their least total time.
      integer :: repeats = 1
      real(real64) :: min_seconds = 0.0_real64
      !> The time after which no phase starts; 0 for no limit.
      real(real64) :: max_seconds = 0.0_real64
      !> The bytes that must stay free; 0 for no limit.
      integer(int64) :: min_free_bytes = 0_int64
      !> How reads are kept from finding the data in memory: one of `cache_modes`.
      character(len=:), allocatable :: cache
      !> Whether the user set the seed of the data.
      logical :: seed_given = .false.
      !> The paths of the result file and of the ranks' times, if requested.
      character(len=:), allocatable :: result_path, ranks_path
      !> The options given, by their positions in the table of options.
      integer, allocatable :: given(:)
   end type options_t

   character(len=6), parameter, public :: cache_modes(4) = &
                                          [character(len=6) :: "drop", "shift", "direct", "none"]

end module benchio_options
