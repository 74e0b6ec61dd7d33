"""benchio, built once with warnings as errors, and a way to run it on several ranks."""

import atexit
import contextlib
import functools
import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from filelock import FileLock

SOURCES = Path(__file__).resolve().parents[2] / "src" / "benchio"

# Settings that the user's environment must not change.
MPI_SETTINGS = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "OMPI_MCA_btl_base_warn_component_unused": "0",
    # A waiting process yields its core, which the others need; see patient.c.
    "OMPI_MCA_mpi_yield_when_idle": "1",
    # All processes are on one node, and to start them costs less without other components.
    "OMPI_MCA_pml": "ob1",
    "PMIX_MCA_gds": "hash",
    # Without its semaphores, which are named after the file: concurrent runs would share them,
    # and a killed run leaves them locked.
    "OMPI_MCA_sharedfp": "^sm",
    # Without mpirun no daemon is started, which no test needs. Once a run crashed in MPI_Finalize,
    # at an address that fits the handler for the daemon's end in a component already unloaded.
    "OMPI_MCA_ess_singleton_isolated": "1",
}
#: Settings of additional builds; the one that most tests use is optimised as for users.
QUICKLY = "-DCMAKE_BUILD_TYPE=Debug"
# Generous: it only ends a test that hangs, and the machine may be busy.
_LONGEST_RUN_S = 300
# One for each pytest worker: concurrent runs of Open MPI in one directory remove the files of one
# another.
_SESSIONS = tempfile.mkdtemp(prefix="mpi")
atexit.register(shutil.rmtree, _SESSIONS, ignore_errors=True)


@functools.cache
def compiled(name: str) -> str:
    """Compile a C file of this folder to a library that can be preloaded; return its path."""
    source, library = Path(__file__).with_name(f"{name}.c"), f"{_SESSIONS}/{name}.so"
    # Also for programs of another MPI library, where it calls none.
    command = ["mpicc", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
    subprocess.run([*command, "-Wl,--as-needed", "-o", library, source], check=True)
    return library


def patient() -> dict[str, str]:
    """Return the environment in which processes of Open MPI wait without using a processor."""
    return {} if shutil.which("mpicc") is None else {"LD_PRELOAD": compiled("patient")}


def strace(calls: str, *options: str) -> list[str]:
    """Return an strace command that stops a process only at these system calls, not at MPI's."""
    if shutil.which("strace") is None:
        pytest.skip("strace is not installed")
    return ["strace", "-f", "--seccomp-bpf", *options, "-e", f"trace={calls}"]


def tracing(calls: str) -> list[str]:
    """Return a command that logs these system calls to trace.<process>, with the files' paths."""
    return strace(calls, "-y", "-ff", "-o", "trace")


def injecting(calls: str, fault: str, *options: str) -> list[str]:
    """Return a command that injects a fault into these system calls."""
    return [*strace(calls, "-o", "/dev/null", *options), "-e", f"inject={calls}:{fault}"]


@dataclass(frozen=True)
class Run:
    """The result of a run of benchio."""

    status: int
    out: str
    err: str

    @property
    def messages(self) -> list[str]:
        """benchio's own messages on standard error."""
        lines = self.err.splitlines()
        return [line.removeprefix("benchio: ") for line in lines if line.startswith("benchio: ")]

    @property
    def notes(self) -> list[str]:
        """The notes that it prints next to its figures."""
        return [line.strip() for line in self.out.splitlines() if "Note: " in line]


@dataclass(frozen=True)
class Difference:
    """What the message of a failed verification says about the first element that differs."""

    rank: int
    path: str
    #: Unknown in the files of ADIOS2.
    byte: int
    element: int
    expected: int
    found: int
    differing: int

    @classmethod
    def of(cls, message: str) -> "Difference":
        """Parse a message."""
        found = re.fullmatch(
            r"rank (\d+) on host \S+ verification of (.+) failed: at (?:byte (\d+), )?"
            r"element (\d+) of the whole array, expected (-?\d+) and found (-?\d+); "
            r"elements that differ, over all ranks: (\d+)",
            message,
        )
        assert found, message
        numbers = [int(number or -1) for number in found.groups()[2:]]
        return cls(int(found[1]), found[2], *numbers)


@dataclass(frozen=True)
class Benchio:
    """A built benchio, to run in a directory."""

    build: Path
    cwd: Path
    launcher: str = "mpirun"

    @property
    def program(self) -> Path:
        return self.build / "benchio"

    def run(
        self,
        *arguments: object,
        ranks: int = 1,
        env: dict[str, str] | None = None,
        wrapper: Sequence[str] = (),
    ) -> Run:
        """Runs it on `ranks` processes, each under the command `wrapper`."""
        command = [
            self.launcher,
            "-n",
            str(ranks),
            *wrapper,
            str(self.program),
            *map(str, arguments),
        ]
        return self._started(command, env)

    def run_alone(self, *arguments: object) -> Run:
        """Runs it without mpirun."""
        return self._started([str(self.program), *map(str, arguments)], None)

    def layers(self) -> list[str]:
        """The layers that its help lists, in the order in which they run."""
        lines = re.findall(r"^  (\S.*?)(?:  |$)", self.run_alone("--help").out, re.MULTILINE)
        return " ".join(lines).split()

    def records(self, name: str = "result.jsonl") -> list[dict]:
        """The objects of a result file."""
        lines = (self.cwd / name).read_text(encoding="utf-8").splitlines()
        return [json.loads(line) for line in lines]

    def _started(self, command: list[str], env: dict[str, str] | None) -> Run:
        done = subprocess.run(
            command,
            cwd=self.cwd,
            env={**os.environ, **MPI_SETTINGS, **patient(), "TMPDIR": _SESSIONS, **(env or {})},
            capture_output=True,
            text=True,
            timeout=_LONGEST_RUN_S,
            check=False,
        )
        return Run(done.returncode, done.stdout, done.stderr)


def build_kernel(where: Path, *settings: str) -> Path:
    """Builds benchio with warnings as errors; fails with the compiler's output."""
    for command in (
        ["cmake", "-S", SOURCES, "-B", where, "-DBENCHIO_WERROR=ON", *settings],
        ["cmake", "--build", where, "--parallel", "2"],
    ):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.fail(f"{done.stdout}\n{done.stderr}", pytrace=False)
    return where


def shared_build(tmp_path_factory, name: str, *settings: str) -> Path:
    """Builds benchio once for all pytest workers: the first worker that asks builds it."""
    above = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        above = above.parent
    where, whole = above / name, above / f"{name}.whole"
    with FileLock(above / f"{name}.lock"):
        if not whole.exists():
            build_kernel(where, *settings)
            whole.touch()
    return where


def plain_build(tmp_path_factory) -> Path:
    """The build that most tests use."""
    # Without ADIOS2, so that the layers are the same on all machines. See test_adios.py.
    return shared_build(tmp_path_factory, "benchio", "-DBENCHIO_ADIOS=OFF")


@pytest.fixture(scope="session", autouse=True)
def needs_tools() -> None:
    for tool in ("cmake", "mpirun"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed")


@pytest.fixture(scope="session")
def kernel_build(needs_tools, tmp_path_factory) -> Path:
    return plain_build(tmp_path_factory)


@pytest.fixture(scope="session")
def mpich_build(needs_tools, tmp_path_factory) -> Path:
    """A second build, where Debian's MPICH is installed next to Open MPI."""
    for tool in ("mpifort.mpich", "mpiexec.mpich"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed")
    settings = ("-DMPI_Fortran_COMPILER=mpifort.mpich", "-DBENCHIO_ADIOS=OFF", QUICKLY)
    return shared_build(tmp_path_factory, "benchio-mpich", *settings)


@pytest.fixture(scope="session")
def preloaded(needs_tools) -> Callable[[str], tuple[str, str]]:
    """Compiles a C file of this folder; returns the command that preloads it."""
    if shutil.which("mpicc") is None:
        pytest.skip("mpicc is not installed")
    return lambda name: ("env", f"LD_PRELOAD={compiled(name)}:{compiled('patient')}")


@pytest.fixture(scope="session")
def roomy(preloaded) -> tuple[str, str]:
    """The command under which a full file system reports free space, as with a quota."""
    return preloaded("roomy")


@pytest.fixture
def benchio_mpich(mpich_build, tmp_path) -> Benchio:
    (tmp_path / "unstriped").mkdir()
    return Benchio(mpich_build, tmp_path, "mpiexec.mpich")


@pytest.fixture
def benchio(kernel_build, tmp_path) -> Benchio:
    """benchio in an empty directory that has EPCC's three directories."""
    for name in ("unstriped", "striped", "fullstriped"):
        (tmp_path / name).mkdir()
    return Benchio(kernel_build, tmp_path)


@pytest.fixture
def says(request, tmp_path) -> Iterator[Callable[[Run], None]]:
    """Compares the messages and notes of runs with this test's entry in a golden file.

    `…` stands for the test's directory, HOST for the machine, and N for the rank that reports.
    """
    golden = request.path.with_name("golden") / f"{request.path.stem}.json"
    stored = json.loads(golden.read_text(encoding="utf-8")) if golden.exists() else {}
    said: list[str] = []
    runs: list[Run] = []

    def hold(done: Run) -> None:
        runs.append(done)
        for message in [*done.messages, *done.notes]:
            text = message.replace(str(tmp_path), "…").replace(os.uname().nodename, "HOST")
            text = re.sub(r"(?<=^rank )\d+(?= on )|\d+(?= bytes free)", "N", text)
            # The compiler's run-time library has the reason.
            said.append(re.sub(r"(?<= cannot be read: ).*", "…", text))
        if request.config.getoption("--store-golden"):
            stored[request.node.name] = said
            text = json.dumps(stored, indent=1, sort_keys=True, ensure_ascii=False)
            golden.write_text(f"{text}\n", encoding="utf-8")
        assert said == stored[request.node.name][: len(said)]

    yield hold
    if runs:
        assert said == stored[request.node.name]


@contextlib.contextmanager
def mounted(where: Path, settings: str) -> Iterator[Path]:
    where.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", settings, "tmpfs", str(where)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"cannot mount: {done.stderr.strip()}")
    try:
        yield where
    finally:
        # Processes of a run that was aborted may end a moment later.
        subprocess.run(["umount", "--lazy", str(where)], check=True)


@pytest.fixture
def tiny_file_system(tmp_path) -> Iterator[Path]:
    """A file system of 1 MiB in memory."""
    with mounted(tmp_path / "tiny", "size=1m") as where:
        yield where


@pytest.fixture
def full_file_system(tiny_file_system) -> Path:
    """The same file system, filled completely."""
    (tiny_file_system / "filling").write_bytes(bytes(2**20))
    return tiny_file_system


@pytest.fixture
def read_only_file_system(tmp_path) -> Iterator[Path]:
    with mounted(tmp_path / "readonly", "size=1m,ro") as where:
        yield where
