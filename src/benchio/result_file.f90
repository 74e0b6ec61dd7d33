!> The result file: a JSON object a measured phase, complete on its line as soon
!> as the phase is done. Rank 0 alone has one. The fields are a contract, in
!> docs/contracts.md.
module result_file
   use, intrinsic :: iso_c_binding, only: c_char, c_int, c_loc, c_size_t
   use, intrinsic :: iso_fortran_env, only: int64, real64
   use backend, only: backend_t
   use errors, only: error_t
   use json, only: json_object_t
   use phase, only: phase_t
   use posix_api, only: iovec_t
   use posix_file, only: close_file, open_new, write_vectors
   use team, only: team_t
   use version, only: benchio_version
   implicit none(type, external)
   private

   public :: result_file_t, result_line

   type :: result_file_t
      private
      character(len=:), allocatable :: path
      integer(c_int) :: fd = -1_c_int
      integer(int64) :: bytes = 0_int64
   contains
      procedure :: start
      procedure :: append
      procedure :: finish
   end type result_file_t

contains

   !> Makes the file, empty.
   subroutine start(self, path, error)
      class(result_file_t), intent(inout) :: self
      character(len=*), intent(in) :: path
      type(error_t), allocatable, intent(out) :: error

      self%path = path
      call open_new(path, self%fd, error)
   end subroutine start

   !> Adds a line; does nothing when no file was started.
   subroutine append(self, line, error)
      class(result_file_t), intent(inout) :: self
      character(len=*), intent(in) :: line
      type(error_t), allocatable, intent(out) :: error
      character(kind=c_char), allocatable, target :: letters(:)
      type(iovec_t) :: stretch(1)
      integer :: at

      if (self%fd < 0) return
      letters = [(line(at:at), at=1, len(line)), new_line("a")]
      stretch(1)%base = c_loc(letters)
      stretch(1)%length = int(size(letters), c_size_t)
      call write_vectors(self%fd, self%path, stretch, self%bytes, error)
      if (.not. allocated(error)) self%bytes = self%bytes + size(letters)
   end subroutine append

   subroutine finish(self, error)
      class(result_file_t), intent(inout) :: self
      type(error_t), allocatable, intent(out) :: error

      if (self%fd >= 0) call close_file(self%fd, self%path, error)
   end subroutine finish

   !> The object of a phase.
   function result_line(team, layer, phase, seed, mpi_library) result(res)
      type(team_t), intent(in) :: team
      class(backend_t), intent(in) :: layer
      type(phase_t), intent(in) :: phase
      integer(int64), intent(in) :: seed
      character(len=*), intent(in) :: mpi_library
      character(len=:), allocatable :: res
      type(json_object_t) :: object, hints
      integer :: at

      call object%add_text("schema", "benchio/1")
      call object%add_text("version", benchio_version)
      call object%add_text("mpi_library", mpi_library)
      call object%add_text("layer", layer%name)
      call object%add_text("pattern", layer%pattern)
      call object%add_text("interface", layer%interface_name)
      call object%add_text("operation", trim(merge("write", "read ", phase%writing)))
      call object%add_integer("repeat", int(phase%repeat, int64))
      call object%add_text("path", layer%first_path)
      call object%add_integer("nodes", int(team%nodes, int64))
      call object%add_integer("processes", int(team%size, int64))
      call object%add_integer("processes_per_node", int(team%processes_per_node, int64))
      call object%add_integer("bytes", phase%bytes)
      call object%add_integer("files", int(layer%files, int64))
      call object%add_logical("fsync", phase%fsync)
      if (phase%writing) then
         call object%add_null("cache")
      else
         call object%add_text("cache", trim(merge("dropped", "none   ", phase%cache_dropped)))
      end if
      call object%add_integer("seed", seed)
      call object%add_real("seconds", phase%seconds)
      call object%add_real("seconds_open", phase%stage_seconds(1))
      call object%add_real("seconds_transfer", phase%stage_seconds(2))
      call object%add_real("seconds_sync", phase%stage_seconds(3))
      call object%add_real("seconds_close", phase%stage_seconds(4))
      call object%add_real("bandwidth_gib_s", phase%bandwidth())
      call object%add_real("rank_seconds_min", phase%rank_min)
      call object%add_real("rank_seconds_median", phase%rank_median)
      call object%add_real("rank_seconds_max", phase%rank_max)
      call object%add_integer("slowest_rank", int(phase%slowest_rank, int64))
      call object%add_text("slowest_host", phase%slowest_host)
      if (phase%verified) then
         call object%add_integer("verified_bytes", phase%verified_bytes)
      else
         call object%add_null("verified_bytes")
      end if
      do at = 1, size(layer%hints)
         call hints%add_text(layer%hints(at)%key, layer%hints(at)%value)
      end do
      call object%add_object("hints", hints)
      res = object%complete()
   end function result_line

end module result_file
