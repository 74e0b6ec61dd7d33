from spack.package import *
from spack_repo.builtin.build_systems.python import PythonPackage


class PyReframeHpc(PythonPackage):
    """ReFrame, a framework for regression tests of HPC systems, as PyPI has it. The package reframe
    of Spack ends at 4.9, and its way to install does not suit later versions."""

    homepage = "https://reframe-hpc.readthedocs.io"
    pypi = "reframe-hpc/reframe_hpc-4.10.4.tar.gz"

    license("BSD-3-Clause")

    version("4.10.4", sha256="0d3b0246664fa5b98dc50deed239282300fd74684c607f6b23b5484b924e988b")

    depends_on("python@3.10:", type=("build", "run"))
    depends_on("py-hatchling@1.29:", type="build")

    with default_args(type="run"):
        depends_on("py-archspec@0.2.4:")
        depends_on("py-argcomplete@3.6:3")
        depends_on("py-clustershell@1.9:1")
        depends_on("py-fasteners@0.20:0")
        depends_on("py-jinja2@3.1:3")
        depends_on("py-jsonschema@4.26:4")
        depends_on("py-lxml@6")
        depends_on("py-polars@1.39:1")
        depends_on("py-pyyaml@6")
        depends_on("py-requests@2.33:2")
        depends_on("py-semver@3")
        # ReFrame names 0.10, but Spack has 0.9, which suffices
        depends_on("py-tabulate@0.9:0")
