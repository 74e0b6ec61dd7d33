!> The table of layers. The only file that is preprocessed: a layer that was not
!> compiled in is not in the table, and nothing else knows of it.
module registry
   use backend, only: backend_t
#ifdef BENCHIO_ADIOS
   use layer_adios, only: adios_t
#endif
   use layer_aligned, only: aligned_t
#ifdef BENCHIO_HDF5
   use layer_hdf5, only: hdf5_t
#endif
#ifdef BENCHIO_MPIIO
   use layer_btio_mpiio, only: btio_mpiio_t
   use layer_mpiio, only: mpiio_t
   use layer_snapshot, only: snapshot_t
   use layer_strided, only: strided_mpiio_t
#endif
#ifdef BENCHIO_NETCDF
   use layer_netcdf, only: netcdf_t
#endif
   use layer_node, only: node_t
#ifdef BENCHIO_PNETCDF
   use layer_btio_pnetcdf, only: btio_pnetcdf_t
   use layer_pnetcdf, only: pnetcdf_t
#endif
   use layer_proc, only: proc_t
   use layer_serial, only: serial_t
   use layer_strided_posix, only: strided_posix_t
   use text, only: append, string_t
   implicit none(type, external)
   private

   public :: layer_names, default_names, absent_names, layer_summary, make_layer
   public :: has_blocks, can_gather, has_table

   !> A layer, by all that is said of it.
   type :: entry_t
      character(len=24) :: name, pattern, interface_name
      !> Whether it is among those that run when none is named: EPCC's.
      logical :: is_default
      !> Whether its data are a block of the 3-D array for each process, and whether
      !> only some of them may write.
      logical :: has_blocks, can_gather
      !> Whether it was compiled in.
      logical :: is_there
      !> For people; empty where that of a layer before it says it for both.
      character(len=64) :: summary
   end type entry_t

#ifdef BENCHIO_MPIIO
   logical, parameter :: with_mpiio = .true.
#else
   logical, parameter :: with_mpiio = .false.
#endif
#ifdef BENCHIO_HDF5
   logical, parameter :: with_hdf5 = .true.
#else
   logical, parameter :: with_hdf5 = .false.
#endif
#ifdef BENCHIO_NETCDF
   logical, parameter :: with_netcdf = .true.
#else
   logical, parameter :: with_netcdf = .false.
#endif
#ifdef BENCHIO_PNETCDF
   logical, parameter :: with_pnetcdf = .true.
#else
   logical, parameter :: with_pnetcdf = .false.
#endif
#ifdef BENCHIO_ADIOS
   logical, parameter :: with_adios = .true.
#else
   logical, parameter :: with_adios = .false.
#endif

   ! In the order in which they run.
   !&< a table
   type(entry_t), parameter :: table(*) = [ &
      entry_t("serial", "serial", "posix", .true., .true., .false., .true., &
              "one file that one process gathers and writes"), &
      entry_t("proc", "fpp", "posix", .true., .true., .true., .true., &
              "a file a process"), &
      entry_t("node", "fpn", "posix", .true., .true., .false., .true., &
              "a file a node, which one process of it gathers and writes"), &
      entry_t("mpiio", "ssf", "mpiio", .true., .true., .true., with_mpiio, &
              "one shared file, by MPI-IO"), &
      entry_t("mpiio-independent", "ssf-independent", "mpiio", .false., .true., .true., &
              with_mpiio, ""), &
      entry_t("hdf5", "ssf", "hdf5", .true., .true., .true., with_hdf5, &
              "one shared file, by parallel HDF5"), &
      entry_t("netcdf", "ssf", "netcdf", .true., .true., .true., with_netcdf, &
              "one shared file, by parallel netCDF-4"), &
      entry_t("pnetcdf", "ssf", "pnetcdf", .false., .true., .true., with_pnetcdf, &
              "one shared file, by PnetCDF"), &
      entry_t("pnetcdf-nonblocking", "ssf-nonblocking", "pnetcdf", .false., .true., .true., &
              with_pnetcdf, ""), &
      entry_t("adios", "subfiles", "adios2", .true., .true., .true., with_adios, &
              "a directory of files that ADIOS2 makes"), &
      entry_t("snapshot", "snapshot", "mpiio", .false., .true., .false., with_mpiio, &
              "a simulation that appends its array"), &
      entry_t("snapshot-nonblocking", "snapshot-nonblocking", "mpiio", .false., .true., .false., &
              with_mpiio, ""), &
      entry_t("btio", "btio", "mpiio", .false., .false., .false., with_mpiio, &
              "time steps of NAS BT"), &
      entry_t("btio-independent", "btio-independent", "mpiio", .false., .false., .false., &
              with_mpiio, ""), &
      entry_t("btio-pnetcdf", "btio", "pnetcdf", .false., .false., .false., with_pnetcdf, &
              ""), &
      entry_t("btio-pnetcdf-nonblocking", "btio-nonblocking", "pnetcdf", .false., .false., &
              .false., with_pnetcdf, ""), &
      entry_t("strided", "strided", "mpiio", .false., .false., .false., with_mpiio, &
              "records dealt in turn, a call each"), &
      entry_t("strided-independent", "strided-independent", "mpiio", .false., .false., .false., &
              with_mpiio, ""), &
      entry_t("strided-posix", "strided", "posix", .false., .false., .false., .true., &
              ""), &
      entry_t("aligned", "aligned", "posix", .false., .false., .false., .true., &
              "stripes, dealt by target or not"), &
      entry_t("aligned-single", "aligned-single", "posix", .false., .false., .false., .true., &
              ""), &
      entry_t("aligned-random", "aligned-random", "posix", .false., .false., .false., .true., &
              "")]
   !&>

contains

   !> The layers that were compiled in, in the order in which they run.
   pure function layer_names() result(res)
      type(string_t), allocatable :: res(:)

      allocate (res, source=names_of(table%is_there))
   end function layer_names

   !> Those of them that run when none is named.
   pure function default_names() result(res)
      type(string_t), allocatable :: res(:)

      allocate (res, source=names_of(table%is_there .and. table%is_default))
   end function default_names

   !> Names of layers that were not compiled in.
   pure function absent_names() result(res)
      type(string_t), allocatable :: res(:)

      allocate (res, source=names_of(.not. table%is_there))
   end function absent_names

   pure function names_of(chosen) result(res)
      logical, intent(in) :: chosen(:)
      type(string_t), allocatable :: res(:)
      integer :: at

      allocate (res(0))
      do at = 1, size(table)
         if (chosen(at)) call append(res, trim(table(at)%name))
      end do
   end function names_of

   !> A few words about a layer, for people: the same for all of a kind.
   pure function layer_summary(name) result(res)
      character(len=*), intent(in) :: name
      character(len=:), allocatable :: res
      integer :: place

      place = place_of(name)
      do while (table(place)%summary == "")
         place = place - 1
      end do
      res = trim(table(place)%summary)
   end function layer_summary

   !> Whether the data of a layer are a block of the 3-D array for each process.
   pure function has_blocks(name) result(res)
      character(len=*), intent(in) :: name
      logical :: res

      res = table(place_of(name))%has_blocks
   end function has_blocks

   !> Whether `--writers` has a meaning for a layer.
   pure function can_gather(name) result(res)
      character(len=*), intent(in) :: name
      logical :: res

      res = table(place_of(name))%can_gather
   end function can_gather

   !> Whether the files of a layer may be named by a table of their stripes.
   pure function has_table(name) result(res)
      character(len=*), intent(in) :: name
      logical :: res

      res = index(table(place_of(name))%pattern, "aligned") == 1
   end function has_table

   pure function place_of(name) result(res)
      character(len=*), intent(in) :: name
      integer :: res

      do res = 1, size(table)
         if (table(res)%name == name) return
      end do
   end function place_of

   !> A layer by its name, one of `layer_names`.
   subroutine make_layer(name, res)
      character(len=*), intent(in) :: name
      class(backend_t), allocatable, intent(out) :: res
      type(entry_t) :: row

      select case (name)
      case ("serial")
         allocate (serial_t :: res)
      case ("proc")
         allocate (proc_t :: res)
      case ("node")
         allocate (node_t :: res)
      case ("aligned", "aligned-single", "aligned-random")
         allocate (aligned_t :: res)
      case ("strided-posix")
         allocate (strided_posix_t :: res)
#ifdef BENCHIO_MPIIO
      case ("mpiio")
         allocate (mpiio_t :: res)
      case ("mpiio-independent")
         allocate (res, source=mpiio_t(collective=.false.))
      case ("snapshot")
         allocate (snapshot_t :: res)
      case ("snapshot-nonblocking")
         allocate (res, source=snapshot_t(overlaps=.true.))
      case ("btio")
         allocate (btio_mpiio_t :: res)
      case ("btio-independent")
         allocate (res, source=btio_mpiio_t(collective=.false.))
      case ("strided")
         allocate (strided_mpiio_t :: res)
      case ("strided-independent")
         allocate (res, source=strided_mpiio_t(collective=.false.))
#endif
#ifdef BENCHIO_HDF5
      case ("hdf5")
         allocate (hdf5_t :: res)
#endif
#ifdef BENCHIO_NETCDF
      case ("netcdf")
         allocate (netcdf_t :: res)
#endif
#ifdef BENCHIO_PNETCDF
      case ("pnetcdf")
         allocate (pnetcdf_t :: res)
      case ("pnetcdf-nonblocking")
         allocate (res, source=pnetcdf_t(blocking=.false.))
      case ("btio-pnetcdf")
         allocate (btio_pnetcdf_t :: res)
      case ("btio-pnetcdf-nonblocking")
         allocate (res, source=btio_pnetcdf_t(blocking=.false.))
#endif
#ifdef BENCHIO_ADIOS
      case ("adios")
         allocate (adios_t :: res)
#endif
      case default
         ! Such a name is not in the table, and was refused.
         return
      end select
      row = table(place_of(name))
      res%name = trim(row%name)
      res%pattern = trim(row%pattern)
      res%interface_name = trim(row%interface_name)
   end subroutine make_layer

end module registry
