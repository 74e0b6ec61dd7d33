import os

from spack.package import *
from spack_repo.builtin.build_systems.python import PythonPackage


class Iobands(PythonPackage):
    """Watches the I/O performance of an HPC site: ReFrame checks measure its file systems, and a
    digest says what is healthy, what has degraded and since when."""

    pypi = "iobands/iobands-1.0.0.tar.gz"

    license("BSD-3-Clause")

    # spack.tar.gz of the release has this recipe with the checksum
    version("1.0.0")

    variant("report", default=True, description="Dashboard, figures, tables and notebooks")

    depends_on("python@3.10:", type=("build", "run"))
    depends_on("py-setuptools@64:", type="build")
    # the man pages are written from the commands; it is needed to run, too
    depends_on("py-typer@0.19:0.28", type=("build", "run"))

    depends_on("py-reframe-hpc@4.10", type="run")
    depends_on("py-filelock@3.12:4", type="run")
    depends_on("py-jsonschema@4.26:4", type="run")
    depends_on("py-msgspec@0.19:0", type="run")
    depends_on("py-numpy@1.26:2", type="run")
    depends_on("py-polars@1.39:1", type="run")
    depends_on("py-pyyaml@6.0:6", type="run")
    depends_on("py-python-dateutil@2.9:4", type="run")
    depends_on("py-requests@2.33:2", type="run")
    depends_on("py-rich@13:15", type="run")
    depends_on("py-tzdata@2024.1:", type="run")
    with when("+report"):
        depends_on("py-jinja2@3.1:3", type="run")
        depends_on("py-matplotlib@3.8:3", type="run")
        depends_on("py-pandas@2.2:3", type="run")
        depends_on("py-scipy@1.12:1", type="run")
        depends_on("py-uplot-python@1.1.1:1", type="run")

    @run_after("install")
    def find_packages_without_load(self):
        # cron and systemd run the program without what `spack load` sets
        folders = []
        for each in self.spec.traverse(deptype="run"):
            for python in each.dependencies("python-venv") or each.dependencies("python"):
                for folder in (python.package.platlib, python.package.purelib):
                    folders.append(join_path(each.prefix, folder))
        found = ":".join(each for each in dict.fromkeys(folders) if os.path.isdir(each))
        program, script = self.prefix.bin.iobands, self.prefix.libexec.iobands
        mkdirp(self.prefix.libexec)
        os.rename(program, script)
        with open(program, "w") as file:
            file.write(f"""#!/bin/sh
export PYTHONPATH="{found}${{PYTHONPATH:+:$PYTHONPATH}}"
exec {script} "$@"
""")
        set_executable(program)
