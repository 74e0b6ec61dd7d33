from spack.package import *
from spack_repo.builtin.build_systems.cmake import CMakePackage

#: The option of CMake for each variant.
_LAYERS = {"HDF5": "hdf5", "NETCDF": "netcdf", "PNETCDF": "pnetcdf", "ADIOS": "adios2"}


class Benchio(CMakePackage):
    """Measures the write and read rates of an array that is distributed over MPI processes, and
    proves them. It takes the arguments of EPCC's benchio."""

    homepage = "https://pypi.org/project/iobands/"
    # Spack knows pypi = for Python packages alone
    url = "https://pypi.python.org/packages/source/i/iobands/iobands-1.0.0.tar.gz"
    root_cmakelists_dir = "src/benchio"

    license("BSD-3-Clause")

    # spack.tar.gz of the release has this recipe with the checksum
    version("1.0.0")

    variant("hdf5", default=True, description="The layers hdf5")
    variant("netcdf", default=True, description="The layers netcdf")
    variant("pnetcdf", default=True, description="The layers pnetcdf and btio-pnetcdf")
    variant("adios2", default=False, description="The layers adios")

    depends_on("c", type="build")
    depends_on("fortran", type="build")
    depends_on("cmake@3.20:", type="build")
    depends_on("mpi")
    depends_on("hdf5+mpi+fortran", when="+hdf5")
    depends_on("netcdf-c+mpi", when="+netcdf")
    depends_on("parallel-netcdf+fortran", when="+pnetcdf")
    depends_on("adios2+mpi+fortran", when="+adios2")

    def cmake_args(self):
        return [
            self.define(f"BENCHIO_{option}", "ON" if f"+{name}" in self.spec else "OFF")
            for option, name in _LAYERS.items()
        ]
