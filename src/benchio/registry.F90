!> The table of layers. The only file that is preprocessed: a layer that was not
!> compiled in is not in the table, and nothing else knows of it.
module registry
   use backend, only: backend_t, hint_t
#ifdef BENCHIO_MPIIO
   use layer_mpiio, only: mpiio_t
#endif
   use layer_node, only: node_t
   use layer_proc, only: proc_t
   use layer_serial, only: serial_t
   use text, only: string_t
   implicit none(type, external)
   private

   public :: layer_names, absent_names, layer_summary, make_layer

   integer, parameter :: word = 8

   ! In the order in which they run.
   character(len=word), parameter :: compiled_in(*) = [character(len=word) :: &
                                                       "serial", "proc", "node" &
#ifdef BENCHIO_MPIIO
                                                       , "mpiio" &
#endif
                                                       ]

   ! Names that EPCC's benchio or other builds know.
   character(len=word), parameter :: others(*) = [character(len=word) :: &
#ifndef BENCHIO_MPIIO
                                                  "mpiio", &
#endif
                                                  "hdf5", "netcdf", "adios"]

contains

   !> The layers that were compiled in, in the order in which they run.
   pure function layer_names() result(res)
      type(string_t), allocatable :: res(:)

      allocate (res, source=strings(compiled_in))
   end function layer_names

   !> Names of layers that were not compiled in.
   pure function absent_names() result(res)
      type(string_t), allocatable :: res(:)

      allocate (res, source=strings(others))
   end function absent_names

   !> A line about a layer, for people.
   pure function layer_summary(name) result(res)
      character(len=*), intent(in) :: name
      character(len=:), allocatable :: res

      select case (name)
      case ("serial")
         res = "one file that one process gathers and writes"
      case ("proc")
         res = "a file a process"
      case ("node")
         res = "a file a node, which one process of the node gathers and writes"
      case ("mpiio")
         res = "one file that all processes write by collective MPI-IO calls"
      case default
         res = ""
      end select
   end function layer_summary

   !> A layer by its name, which must be one of `layer_names`. `hints` is what
   !> MPI-IO is to be told, where the layer uses it.
   subroutine make_layer(name, hints, res)
      character(len=*), intent(in) :: name
      type(hint_t), intent(in) :: hints(:)
      class(backend_t), allocatable, intent(out) :: res

      select case (name)
      case ("serial")
         allocate (serial_t :: res)
         res%pattern = "serial"
         res%interface_name = "posix"
      case ("proc")
         allocate (proc_t :: res)
         res%pattern = "fpp"
         res%interface_name = "posix"
      case ("node")
         allocate (node_t :: res)
         res%pattern = "fpn"
         res%interface_name = "posix"
#ifdef BENCHIO_MPIIO
      case ("mpiio")
         allocate (mpiio_t :: res)
         res%pattern = "ssf"
         res%interface_name = "mpiio"
#endif
      end select
      res%name = name
      res%hints_asked = hints
   end subroutine make_layer

   pure function strings(words) result(res)
      character(len=*), intent(in) :: words(:)
      type(string_t), allocatable :: res(:)
      integer :: at

      allocate (res(size(words)))
      do at = 1, size(words)
         res(at)%value = trim(words(at))
      end do
   end function strings

end module registry
