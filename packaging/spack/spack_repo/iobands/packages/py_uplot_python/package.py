from spack.package import *
from spack_repo.builtin.build_systems.python import PythonPackage


class PyUplotPython(PythonPackage):
    """Plots of time series in a browser, with uPlot."""

    homepage = "https://codeberg.org/stephane-caron/uplot-python"
    pypi = "uplot-python/uplot_python-1.1.1.tar.gz"

    license("LGPL-3.0-only")

    version("1.1.1", sha256="baa996be76451fdebfa17128db1d4ef87b523e951a1e8d2bd3e8413e517cf6e0")

    depends_on("python@3.10:", type=("build", "run"))
    depends_on("py-flit-core@2:3", type="build")

    with default_args(type="run"):
        depends_on("py-ipython@8.0.1:")
        depends_on("py-msgpack@1.0.4:")
        depends_on("py-numpy@1.15.4:")
