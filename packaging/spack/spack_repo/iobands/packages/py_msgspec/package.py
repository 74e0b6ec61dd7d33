from spack.package import *
from spack_repo.builtin.build_systems.python import PythonPackage


class PyMsgspec(PythonPackage):
    """Serialization and validation with types, in JSON, MessagePack, YAML and TOML."""

    homepage = "https://msgspec.dev"
    pypi = "msgspec/msgspec-0.23.0.tar.gz"

    license("BSD-3-Clause")

    version("0.23.0", sha256="a0d57d3ca7734542eb6861e72d974ab051e6cf73ea6b01b263f77170593362be")

    depends_on("c", type="build")
    depends_on("python@3.10:", type=("build", "link", "run"))
    depends_on("py-setuptools@80:", type="build")
    depends_on("py-setuptools-scm@8:", type="build")
