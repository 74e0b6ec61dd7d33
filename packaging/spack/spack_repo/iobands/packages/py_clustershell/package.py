from spack.package import *
from spack_repo.builtin.packages.py_clustershell.package import PyClustershell as Builtin


class PyClustershell(Builtin):
    """Spack's package, which fails to build with Python 3.12 and later."""

    def patch(self):
        # byte-compiling in a process of its own needs distutils, which Python 3.12 removed
        filter_file(r"^optimize.*", "", "setup.cfg")
