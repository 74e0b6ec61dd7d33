!> The table of layers, which declares each layer in one row; see fill_table. This is the only
!> preprocessed file: here `absent_t` takes the name of each layer that was not compiled in.
module benchio_registry
   use benchio_backend, only: backend_t, identity_t
   use benchio_block_backend, only: block_backend_t
   use benchio_layer_aligned, only: aligned_t
   use benchio_layer_node, only: node_t
   use benchio_layer_proc, only: proc_t
   use benchio_layer_serial, only: serial_t
   use benchio_layer_strided_posix, only: strided_posix_t
   use benchio_text, only: append, string_t
#ifdef BENCHIO_MPIIO
   use benchio_layer_btio_mpiio, only: btio_mpiio_t
   use benchio_layer_group, only: group_t
   use benchio_layer_mapped, only: mapped_t
   use benchio_layer_mpiio, only: mpiio_t
   use benchio_layer_snapshot, only: snapshot_t
   use benchio_layer_strided, only: strided_mpiio_t
#else
   use benchio_absent, only: btio_mpiio_t => absent_t, group_t => absent_t, mapped_t => absent_t
   use benchio_absent, only: mpiio_t => absent_t, snapshot_t => absent_t, &
                             strided_mpiio_t => absent_t
#endif
#ifdef BENCHIO_HDF5
   use benchio_layer_hdf5, only: hdf5_t
#else
   use benchio_absent, only: hdf5_t => absent_t
#endif
#ifdef BENCHIO_NETCDF
   use benchio_layer_netcdf, only: netcdf_t
#else
   use benchio_absent, only: netcdf_t => absent_t
#endif
#ifdef BENCHIO_PNETCDF
   use benchio_layer_btio_pnetcdf, only: btio_pnetcdf_t
   use benchio_layer_pnetcdf, only: pnetcdf_t
#else
   use benchio_absent, only: btio_pnetcdf_t => absent_t, pnetcdf_t => absent_t
#endif
#ifdef BENCHIO_ADIOS
   use benchio_layer_adios, only: adios_t
#else
   use benchio_absent, only: adios_t => absent_t
#endif
   implicit none(type, external)
   private

   public :: fill_table, layer_names, default_names, absent_names, layer_summary, can_gather
   public :: has_blocks, interface_of, make_layer

   type, extends(identity_t) :: row_t
      !> A description for the help.
      character(len=:), allocatable :: summary
      !> Whether it is one of EPCC's, which run when no layer is named.
      logical :: is_default = .false.
      !> Whether `--writers` applies to it.
      logical :: can_gather = .false.
      !> The object that each run copies, if the layer was compiled in.
      logical :: is_compiled = .false.
      class(backend_t), allocatable :: layer
   end type row_t

   type(row_t), allocatable :: table(:)

contains

   !> Declares all layers, in the order in which they run: name, pattern, interface, object
   !> and description. Rows without a description share the one of the row before. To be called
   !> once, before any other procedure of this module.
   subroutine fill_table()

      allocate (table(0))
      call add("serial", "serial", "posix", serial_t(), &
               "one file; one process gathers the data and writes", epcc=.true.)
      call add("proc", "fpp", "posix", proc_t(), "one file for each process", &
               epcc=.true., gathers=.true.)
      call add("node", "fpn", "posix", node_t(), &
               "one file for each node; one of its processes gathers and writes", epcc=.true.)
      call add("mpiio", "ssf", "mpiio", mpiio_t(), "one shared file, MPI-IO", &
               epcc=.true., gathers=.true.)
      call add("mpiio-independent", "ssf-independent", "mpiio", mpiio_t(collective=.false.), &
               gathers=.true.)
      call add("group", "fpg", "mpiio", group_t(), &
               "one file for each group of processes, MPI-IO")
      call add("hdf5", "ssf", "hdf5", hdf5_t(), "one shared file, parallel HDF5", &
               epcc=.true., gathers=.true.)
      call add("hdf5-independent", "ssf-independent", "hdf5", hdf5_t(collective=.false.), &
               gathers=.true.)
      call add("netcdf", "ssf", "netcdf", netcdf_t(), "one shared file, parallel netCDF-4", &
               epcc=.true., gathers=.true.)
      call add("netcdf-independent", "ssf-independent", "netcdf", netcdf_t(collective=.false.), &
               gathers=.true.)
      call add("pnetcdf", "ssf", "pnetcdf", pnetcdf_t(), "one shared file, PnetCDF", &
               gathers=.true.)
      call add("pnetcdf-nonblocking", "ssf-nonblocking", "pnetcdf", pnetcdf_t(blocking=.false.), &
               gathers=.true.)
      call add("adios", "subfiles", "adios2", adios_t(), "a directory of files, ADIOS2", &
               epcc=.true., gathers=.true.)
      call add("adios-default", "subfiles-default", "adios2", adios_t(file_of="default"))
      call add("adios-process", "subfiles-process", "adios2", adios_t(file_of="process"))
      call add("snapshot", "snapshot", "mpiio", snapshot_t(), &
               "a simulation that appends its array")
      call add("snapshot-nonblocking", "snapshot-nonblocking", "mpiio", &
               snapshot_t(blocking=.false.))
      call add("btio", "btio", "mpiio", btio_mpiio_t(), "time steps of NAS BT")
      call add("btio-independent", "btio-independent", "mpiio", btio_mpiio_t(collective=.false.))
      call add("btio-pnetcdf", "btio", "pnetcdf", btio_pnetcdf_t())
      call add("btio-pnetcdf-nonblocking", "btio-nonblocking", "pnetcdf", &
               btio_pnetcdf_t(blocking=.false.))
      call add("strided", "strided", "mpiio", strided_mpiio_t(), &
               "records round robin, one call each")
      call add("strided-independent", "strided-independent", "mpiio", &
               strided_mpiio_t(collective=.false.))
      call add("strided-posix", "strided", "posix", strided_posix_t())
      call add("mapped", "mapped", "mpiio", mapped_t(), &
               "records placed by a map, one call for all")
      call add("mapped-independent", "mapped-independent", "mpiio", mapped_t(collective=.false.))
      call add("aligned", "aligned", "posix", aligned_t(), &
               "stripes dealt to the processes")
      call add("aligned-single", "aligned-single", "posix", aligned_t(scheme="single"))
      call add("aligned-files", "aligned-files", "posix", aligned_t(scheme="files"))
      call add("aligned-random", "aligned-random", "posix", aligned_t(scheme="random"))
   end subroutine fill_table

   subroutine add(name, pattern, interface_name, layer, summary, epcc, gathers)
      character(len=*), intent(in) :: name, pattern, interface_name
      class(*), intent(in) :: layer
      character(len=*), intent(in), optional :: summary
      logical, intent(in), optional :: epcc, gathers
      type(row_t) :: row

      row%identity_t = identity_t(name, pattern, interface_name)
      if (present(summary)) row%summary = summary
      if (.not. present(summary)) row%summary = table(size(table))%summary
      if (present(epcc)) row%is_default = epcc
      if (present(gathers)) row%can_gather = gathers
      select type (layer)
      class is (backend_t)
         row%is_compiled = .true.
         allocate (row%layer, source=layer)
         row%layer%identity_t = row%identity_t
      end select
      table = [table, row]
   end subroutine add

   !> The layers that were compiled in, in the order in which they run.
   pure function layer_names() result(res)
      type(string_t), allocatable :: res(:)

      allocate (res, source=names_of(table%is_compiled))
   end function layer_names

   !> The compiled layers that run when no layer is named.
   pure function default_names() result(res)
      type(string_t), allocatable :: res(:)

      allocate (res, source=names_of(table%is_compiled .and. table%is_default))
   end function default_names

   !> The layers that were not compiled in.
   pure function absent_names() result(res)
      type(string_t), allocatable :: res(:)

      allocate (res, source=names_of(.not. table%is_compiled))
   end function absent_names

   pure function names_of(chosen) result(res)
      logical, intent(in) :: chosen(:)
      type(string_t), allocatable :: res(:)
      integer :: at

      allocate (res(0))
      do at = 1, size(chosen)
         if (chosen(at)) call append(res, table(at)%name)
      end do
   end function names_of

   !> The description of a layer for the help.
   pure function layer_summary(name) result(res)
      character(len=*), intent(in) :: name
      character(len=:), allocatable :: res

      res = table(row_of(name))%summary
   end function layer_summary

   !> Whether `--writers` applies to a layer.
   pure function can_gather(name) result(res)
      character(len=*), intent(in) :: name
      logical :: res

      res = table(row_of(name))%can_gather
   end function can_gather

   !> Whether each process has a block of the 3-D array in a layer.
   pure function has_blocks(name) result(res)
      character(len=*), intent(in) :: name
      logical :: res

      res = .false.
      select type (layer => table(row_of(name))%layer)
      class is (block_backend_t)
         res = .true.
      end select
   end function has_blocks

   !> The interface of a layer.
   pure function interface_of(name) result(res)
      character(len=*), intent(in) :: name
      character(len=:), allocatable :: res

      res = table(row_of(name))%interface_name
   end function interface_of

   !> A new object of a layer, one of `layer_names`.
   subroutine make_layer(name, res)
      character(len=*), intent(in) :: name
      class(backend_t), allocatable, intent(out) :: res

      allocate (res, source=table(row_of(name))%layer)
   end subroutine make_layer

   pure function row_of(name) result(res)
      character(len=*), intent(in) :: name
      integer :: res

      do res = 1, size(table)
         if (table(res)%name == name) return
      end do
   end function row_of

end module benchio_registry
