from spack.package import *
from spack_repo.builtin.build_systems.python import PythonPackage


class PyPolars(PythonPackage):
    """Data frames: the part in Python, as Polars is in two packages since 1.35. It replaces
    Spack's package, which ends before."""

    homepage = "https://www.pola.rs/"
    pypi = "polars/polars-1.44.2.tar.gz"

    license("MIT")

    version("1.44.2", sha256="86c8e26b6c2de8c8d344bb910b74dfc47b118ac3fe0f19b44909467990a0b281")

    depends_on("python@3.10:", type=("build", "run"))
    depends_on("py-setuptools@61:", type="build")
    depends_on("py-polars-runtime-32@1.44.2", type="run")
