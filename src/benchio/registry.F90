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
   use text, only: append, string_t
   implicit none(type, external)
   private

   public :: layer_names, absent_names, layer_summary, make_layer

   ! The layers in the order in which they run, and the names that EPCC's benchio
   ! or another build of this one knows.
#ifdef BENCHIO_MPIIO
   character(len=*), parameter :: compiled_in = "serial proc node mpiio"
   character(len=*), parameter :: absent = "hdf5 netcdf adios"
#else
   character(len=*), parameter :: compiled_in = "serial proc node"
   character(len=*), parameter :: absent = "mpiio hdf5 netcdf adios"
#endif

contains

   !> The layers that were compiled in, in the order in which they run.
   pure function layer_names() result(res)
      type(string_t), allocatable :: res(:)

      allocate (res, source=split(compiled_in))
   end function layer_names

   !> Names of layers that were not compiled in.
   pure function absent_names() result(res)
      type(string_t), allocatable :: res(:)

      allocate (res, source=split(absent))
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

   !> A layer by its name; none for a name that is not one of `layer_names`.
   !> `hints` is what MPI-IO is to be told, where the layer uses it.
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
      case default
         return
      end select
      res%name = name
      res%hints_asked = hints
   end subroutine make_layer

   !> The words of a line with one blank between each two.
   pure function split(line) result(res)
      character(len=*), intent(in) :: line
      type(string_t), allocatable :: res(:)
      integer :: start, blank

      allocate (res(0))
      start = 1
      do while (start <= len(line))
         blank = index(line(start:)//" ", " ")
         call append(res, line(start:start + blank - 2))
         start = start + blank
      end do
   end function split

end module registry
