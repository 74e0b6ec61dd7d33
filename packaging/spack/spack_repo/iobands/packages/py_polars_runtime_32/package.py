import platform

from spack.package import *
from spack_repo.builtin.build_systems.python import PythonPackage

#: The wheels of 1.44.2 for Linux: the folder in PyPI's files, and the checksum.
_WHEELS = {
    "aarch64": (
        "4e/4f/076626ce93ddd622203c4b27be2a96d034cf5b24110c52e96e6029f0ea33",
        "bbf9b45040291dc1c6c588c837019c33557bde25ec536562a9cca9e1f6dfcc45",
    ),
    "x86_64": (
        "e9/24/ed9982657c446dd5491b089370eea196725673570cfc61f7225a9fdd7ef0",
        "a1bafb441e99199a62c63bf1bbdc0ea09ee9776dbac2bf31452b5000fb1df2f7",
    ),
}
_MACHINE = platform.machine()


class PyPolarsRuntime32(PythonPackage):
    """The compiled part of Polars, as a wheel: its source needs a nightly Rust."""

    homepage = "https://www.pola.rs/"
    pypi = "polars-runtime-32/polars_runtime_32-1.44.2.tar.gz"

    license("MIT")

    if _MACHINE in _WHEELS:
        version("1.44.2", sha256=_WHEELS[_MACHINE][1], expand=False, extension="whl")

    depends_on("python@3.10:", type=("build", "run"))

    def url_for_version(self, version):
        files = self.url.partition("/source/")[0]
        tags = f"manylinux_2_17_{_MACHINE}.manylinux2014_{_MACHINE}"
        return f"{files}/{_WHEELS[_MACHINE][0]}/polars_runtime_32-{version}-cp310-abi3-{tags}.whl"
