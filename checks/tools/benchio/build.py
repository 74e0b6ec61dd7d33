"""Builds the Fortran kernel once: for each commit, programming environment and type of machine.

The build is kept in the site's directory (docs/decisions/0026-canary.md), under a key. Here is the
part of the key that is known before the environment is loaded; `kept.sh` has the rest.
"""

import hashlib
import re
import shlex
from pathlib import Path

import reframe as rfm
from reframe.core.builtins import fixture, run_before, sanity_function, variable
from reframe.core.exceptions import BuildError, SanityError
from reframe.core.logging import getlogger

from ...base.package import PURPOSE, SITE, path_part
from ...base.stage import call, copy_scripts, read_output
from ...preflight.jobs import EnvMpi

SOURCE_DIRECTORY = Path(__file__).resolve().parents[3] / "src" / "benchio"


#: The directory of the kept builds. Only its owner may write there.
BUILDS = SITE / "builds"

KEPT_SCRIPT = Path(__file__).with_name("kept.sh")


def digest_of(directory: Path) -> str:
    """A hash of the names and contents of all files below a directory."""
    found = hashlib.sha256()
    for path in sorted(path for path in directory.rglob("*") if path.is_file()):
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        found.update(f"{path.relative_to(directory)} {content}\n".encode())
    return found.hexdigest()


#: The most characters of an error: CMake's may contain all output of a compiler.
_LONGEST = 300


def first_error(said: str) -> list[str]:
    """The program that a build lacks, or the first error that it printed, if any.

    CMake explains an error in indented lines below its place.
    """
    found = re.search(
        r"\S+: command not found|^CMake Error at .*\n(?P<why>(?: .*\n|\n)+)|^.*\berror\b.*$",
        said,
        re.I | re.M,
    )
    return [" ".join((found["why"] or found[0]).split())[:_LONGEST]] if found else []


class BuildBenchio(rfm.CompileOnlyRegressionTest, special=True):
    """Builds benchio by CMake in its stage directory, or takes a kept build."""

    #: If no MPI program can be built or started, benchio is not built.
    mpi_starts = fixture(EnvMpi, scope="environment")

    #: The program, relative to the stage directory.
    program = variable(str, value="build/benchio")

    build_system = "CMake"
    sourcesdir = str(SOURCE_DIRECTORY)

    @run_before("compile")
    def configure(self) -> None:
        self.build_system.builddir = "build"
        self.build_system.max_concurrency = 4

    # Last, so that it sees what `-S` and other hooks have changed.
    @run_before("compile", always_last=True)
    def take_kept(self) -> None:
        environment, partition = self.current_environ, self.current_partition
        own = [*self.prebuild_cmds, *self.build_system.emit_build_commands(environment)]
        own += self.postbuild_cmds
        around = [
            (each.modules_detailed, each.env_vars, each.prepare_cmds)
            for each in (environment, partition.local_env)
        ]
        around += [(self.modules, self.env_vars, partition.prepare_cmds)]
        source = Path(self.prefix, self.sourcesdir)
        decides = repr((digest_of(source), self.program, own, around))
        key = hashlib.sha256(decides.encode()).hexdigest()
        names = (self.current_system.name, partition.name, environment.name)
        said = (BUILDS, ".".join(map(path_part, names)), PURPOSE, key)
        stage = Path(self.stagedir)
        (stage / "kept-build.txt").write_text("".join(f"{each}\n" for each in said), "utf-8")
        copy_scripts([KEPT_SCRIPT], stage)
        compilers = [shlex.split(each)[0] for each in (environment.cc, environment.ftn) if each]
        self.prebuild_cmds = [
            "source ./kept.sh",
            f"if ! {call('take_kept_build', self.program, *compilers)}; then",
            *self.prebuild_cmds,
        ]
        keep = call("keep_build", self.program, self.build_job.stdout)
        self.postbuild_cmds = [*self.postbuild_cmds, keep, "fi"]

    def compile_wait(self) -> None:
        """Name a missing program or the first error; ReFrame would report only the exit status."""
        try:
            super().compile_wait()
        except BuildError as error:
            output = (str(self.build_job.stderr), str(self.build_job.stdout))
            said = read_output(*(Path(self.stagedir, name) for name in output))
            raise BuildError(": ".join([str(error), *first_error(said)])) from None

    @sanity_function
    def check_program(self) -> bool:
        """The program exists; the compiler's messages are in the stage directory."""
        if not Path(self.stagedir, self.program).is_file():
            raise SanityError(f"{self.program} was not built: see {self.build_job.stderr}")
        said = read_output(Path(self.stagedir, str(self.build_job.stderr)))
        for line in re.findall(r"^iobands: (.*)$", said, re.MULTILINE):
            getlogger().warning(line)
        return True

    def lacks(self, library: str) -> bool:
        """Whether the build found no usable `library`, named as in the build's output."""
        said = read_output(Path(self.stagedir, str(self.build_job.stdout)))
        return f"-- {library}: none that can be used" in said
