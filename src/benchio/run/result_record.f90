!> A line of the result file: one JSON object for each measured phase. docs/contracts.md
!> defines the fields.
module benchio_result_record
   use, intrinsic :: iso_fortran_env, only: int64, real64
   use benchio_backend, only: backend_t
   use benchio_block_backend, only: block_backend_t
   use benchio_call_times, only: latency_t, percentiles
   use benchio_json, only: json_object_t
   use benchio_phase, only: phase_t
   use benchio_task, only: hint_t, task_t
   use benchio_team, only: team_t
   use benchio_text, only: to_text
   use benchio_version, only: program_version
   use benchio_witnesses, only: counts_t
   implicit none(type, external)
   private

   public :: result_line

contains

   !> The object of a phase.
   function result_line(team, task, layer, phase, mpi_library) result(res)
      type(team_t), intent(in) :: team
      type(task_t), intent(in) :: task
      class(backend_t), intent(in) :: layer
      type(phase_t), intent(in) :: phase
      character(len=*), intent(in) :: mpi_library
      character(len=:), allocatable :: res
      type(json_object_t) :: object

      call object%add_text("schema", "benchio/4")
      call object%add_text("version", program_version)
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
      call object%add_integer("writers", int(layer%writers, int64))
      select type (layer)
      class is (block_backend_t)
         call object%add_text("decomposition", task%decomposition)
         call object%add_integer("halo", int(task%halo, int64))
      class default
         call object%add_null("decomposition")
         call object%add_null("halo")
      end select
      call object%add_object("settings", layer%settings)
      call object%add_integer("bytes", phase%bytes)
      call object%add_integer("files", int(layer%files, int64))
      call object%add_logical("fsync", phase%fsync)
      call object%add_logical("direct", task%direct)
      if (phase%writing) then
         call object%add_null("cache")
         call object%add_null("cache_asked")
      else
         call object%add_text("cache", phase%cache)
         call object%add_text("cache_asked", phase%cache_asked)
      end if
      call object%add_integer("seed", task%seed)
      call object%add_real("seconds", phase%seconds)
      call object%add_real("seconds_open", phase%stage_seconds(1))
      call object%add_real("seconds_transfer", phase%stage_seconds(2))
      call object%add_real("seconds_sync", phase%stage_seconds(3))
      call object%add_real("seconds_close", phase%stage_seconds(4))
      call object%add_logical("short", phase%is_short())
      if (phase%computes) then
         call object%add_real("seconds_compute", phase%computed_seconds)
         call object%add_real("seconds_hidden", phase%hidden_seconds)
      else
         call object%add_null("seconds_compute")
         call object%add_null("seconds_hidden")
      end if
      call add_known(object, "seconds_step", phase%step_seconds)
      call add_known(object, "seconds_step_beside", phase%beside_seconds)
      if (phase%latency%calls > 0_int64) then
         call object%add_object("latency", latency_object(phase%latency))
      else
         call object%add_null("latency")
      end if
      if (phase%seen%collective >= 0_int64) then
         call object%add_object("calls", calls_object(phase%seen))
      else
         call object%add_null("calls")
      end if
      if (phase%seen%movers >= 0_int64) then
         call object%add_integer("movers", phase%seen%movers)
      else
         call object%add_null("movers")
      end if
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
      call object%add_object("hints", texts_object(phase%hints))
      call object%add_object("environment", texts_object(task%environment))
      res = object%complete()
   end function result_line

   !> A time, or null if there was none.
   subroutine add_known(object, name, seconds)
      type(json_object_t), intent(inout) :: object
      character(len=*), intent(in) :: name
      real(real64), intent(in) :: seconds

      if (seconds > 0.0_real64) then
         call object%add_real(name, seconds)
      else
         call object%add_null(name)
      end if
   end subroutine add_known

   function texts_object(pairs) result(res)
      type(hint_t), intent(in) :: pairs(:)
      type(json_object_t) :: res
      integer :: at

      do at = 1, size(pairs)
         call res%add_text(pairs(at)%key, pairs(at)%value)
      end do
   end function texts_object

   function calls_object(seen) result(res)
      type(counts_t), intent(in) :: seen
      type(json_object_t) :: res

      call res%add_integer("collective", seen%collective)
      call res%add_integer("independent", seen%independent)
   end function calls_object

   function latency_object(latency) result(res)
      type(latency_t), intent(in) :: latency
      type(json_object_t) :: res
      integer :: at

      call res%add_integer("calls", latency%calls)
      do at = 1, size(percentiles)
         call res%add_real("seconds_p"//to_text(percentiles(at)), latency%at(at))
      end do
      call res%add_real("seconds_max", latency%slowest)
   end function latency_object

end module benchio_result_record
