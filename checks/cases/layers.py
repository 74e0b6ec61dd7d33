"""The layers of benchio (contract 1): what a record of each must contain."""

from dataclasses import dataclass

#: The overhead of a library's file: headers and their alignment.
LIBRARY_OVERHEAD_BYTES = 32 * 2**20


@dataclass(frozen=True)
class Layer:
    """The pattern and interface of a layer, and the units that have their own files."""

    pattern: str
    interface: str
    file_per: str = "job"
    #: The library that it needs, as named by the build.
    library: str | None = None
    #: The beginning of the names of its data files, if there are other files.
    data_files: str = ""

    @property
    def overhead_bytes(self) -> int:
        """How much larger than its data a file may be."""
        return LIBRARY_OVERHEAD_BYTES if self.library else 0


LAYERS = {
    "serial": Layer("serial", "posix"),
    "proc": Layer("fpp", "posix", "process"),
    "node": Layer("fpn", "posix", "node"),
    "mpiio": Layer("ssf", "mpiio"),
    "mpiio-independent": Layer("ssf-independent", "mpiio"),
    "group": Layer("fpg", "mpiio", "group"),
    "hdf5": Layer("ssf", "hdf5", library="Parallel HDF5"),
    "hdf5-independent": Layer("ssf-independent", "hdf5", library="Parallel HDF5"),
    "netcdf": Layer("ssf", "netcdf", library="Parallel netCDF-4"),
    "netcdf-independent": Layer("ssf-independent", "netcdf", library="Parallel netCDF-4"),
    "adios-default": Layer("subfiles-default", "adios2", "node", "ADIOS2", "data."),
    "adios-process": Layer("subfiles-process", "adios2", "process", "ADIOS2", "data."),
    "snapshot": Layer("snapshot", "mpiio"),
    "snapshot-nonblocking": Layer("snapshot-nonblocking", "mpiio"),
    "btio-pnetcdf": Layer("btio", "pnetcdf", library="PnetCDF"),
    "btio-pnetcdf-nonblocking": Layer("btio-nonblocking", "pnetcdf", library="PnetCDF"),
    "strided": Layer("strided", "mpiio"),
    "mapped": Layer("mapped", "mpiio"),
    "mapped-independent": Layer("mapped-independent", "mpiio"),
    "aligned": Layer("aligned", "posix"),
    "aligned-single": Layer("aligned-single", "posix"),
    "aligned-files": Layer("aligned-files", "posix"),
    "aligned-random": Layer("aligned-random", "posix"),
    # Not layers of benchio but scripts/, with result files of the same form.
    "untar": Layer("untar", "posix"),
    "listing": Layer("listing", "posix"),
    "reopening": Layer("reopening", "posix"),
}
