"""A copy of the suite in a separate directory, as a site would have it, run by a real ReFrame."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

#: Checks to load, for `copy_suite`: from all, ReFrame would make hundreds before it selects any.
BENCHIO = ("checks/tools/benchio/check.py", "checks/preflight/checks.py")
OTHER_TOOLS = tuple(f"checks/tools/{tool}/check.py" for tool in ("ior", "mdtest", "io500"))

#: For tests of sessions, the speed of benchio does not matter, but the speed of its build does.
QUICKLY_BUILT = {"CMAKE_BUILD_TYPE": "Debug"}


_LOCAL_SYSTEM = """
import runpy
from pathlib import Path

environments = {environments!r} or (
    runpy.run_path(str(Path(__file__).with_name('local.py')))['environments']
)
system = {{
    'name': {name!r},
    'hostnames': ['no host is called so'],
    'partitions': [
        {{
            'name': 'node',
            'scheduler': 'local',
            'launcher': 'mpirun',
            'environs': [environment['name'] for environment in environments],
            'max_jobs': 1,
            'features': ['io'],
            'extras': {extras!r},
        }}
    ],
}}
"""


@dataclass(frozen=True)
class SiteCopy:
    """The root of the copy; its perflogs, stage directories and reports lie below it."""

    root: Path
    #: Where the checks are.
    checks: tuple[str, ...] = ("checks",)
    #: Whether each session builds benchio by CMake; otherwise tests/programs/cmake builds it once.
    builds_itself: bool = False

    def add_local_system(
        self,
        name: str,
        file_systems: dict,
        scale: dict,
        environments: list[dict] | None = None,
        **extras: object,
    ) -> None:
        """Add config/systems/<name>.py: this machine, with these file systems and one scale.

        Unless given, its environments are those of config/systems/local.py.
        """
        extras |= {"filesystems": file_systems, "scales": {"test": scale}}
        path = self.root / "config" / "systems" / f"{name}.py"
        text = _LOCAL_SYSTEM.format(name=name, extras=extras, environments=environments or [])
        path.write_text(text, encoding="utf-8")

    def reframe(
        self, *arguments: str, reframe: Path | None = None, env: dict[str, str] | None = None
    ) -> subprocess.CompletedProcess:
        """Run `reframe -C config/site.py -R -c checks` with these arguments, in the copy."""
        return subprocess.run(
            **self._call(arguments, reframe, env), capture_output=True, check=False
        )

    def begin_reframe(self, *arguments: str, env: dict[str, str] | None = None) -> subprocess.Popen:
        """The same, without waiting for its end; both outputs come as one."""
        return subprocess.Popen(
            **self._call(arguments, None, env),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )

    def iobands(self, *arguments: str, env: dict[str, str]) -> subprocess.CompletedProcess:
        """Run `iobands` with these arguments, in the copy."""
        return subprocess.run(
            [Path(sys.executable).parent / "iobands", *arguments],
            cwd=self.root,
            env=self._environment(env),
            capture_output=True,
            text=True,
            check=False,
        )

    def begin_iobands(self, *arguments: str, env: dict[str, str]) -> subprocess.Popen:
        """The same, without waiting for its end."""
        return subprocess.Popen(
            [Path(sys.executable).parent / "iobands", *arguments],
            cwd=self.root,
            env=self._environment(env),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def _call(
        self, arguments: tuple[str, ...], reframe: Path | None, env: dict[str, str] | None
    ) -> dict:
        return {
            "args": [
                *(reframe or Path(sys.executable).parent / "reframe", "-C", "config/site.py", "-R"),
                *(word for path in self.checks for word in ("-c", path)),
                *arguments,
            ],
            "cwd": self.root,
            "env": self._environment(env),
            "text": True,
        }

    def _environment(self, env: dict[str, str] | None) -> dict[str, str]:
        # The checks must not import modules from the tests' path.
        environment = {
            name: text for name, text in (env or os.environ).items() if name != "PYTHONPATH"
        }
        if not self.builds_itself:
            environment = with_one_build(environment)
        return {
            **QUICKLY_BUILT,
            **environment,
            "RFM_COLORIZE": "no",
            "HOME": str(self.root),
        }

    def scripts(self, kind: str) -> dict[str, str]:
        """The generated scripts rfm_<kind>.sh by the name of their stage directory.

        Leaves out those of the preflight checks, which every check depends on.
        """
        found = sorted((self.root / "stage").rglob(f"[!E]*/rfm_{kind}.sh"))
        return {path.parent.name: path.read_text(encoding="utf-8") for path in found}

    def rows(self, system: str) -> list[dict[str, str]]:
        """The lines of all perflogs of a system, by column."""
        rows = []
        for path in sorted((self.root / "perflogs" / system).glob("*/*.log")):
            header, *lines = path.read_text(encoding="utf-8").splitlines()
            rows += [dict(zip(header.split("|"), line.split("|"), strict=True)) for line in lines]
        return rows

    def test_cases(self, system: str) -> list[dict]:
        """The test cases of the newest run report of a system."""
        reports = self.root / "perflogs" / system / "reports"
        newest = max(reports.glob("run-report-*.json"), key=lambda path: path.stat().st_mtime)
        report = json.loads(newest.read_text(encoding="utf-8"))
        return [case for run in report["runs"] for case in run["testcases"]]


def with_one_build(environment: dict[str, str]) -> dict[str, str]:
    """Return the environment in which tests/programs/cmake builds benchio once for all tests."""
    return {
        **QUICKLY_BUILT,
        **environment,
        "PATH": f"{ROOT / 'tests' / 'programs'}:{environment['PATH']}",
        "BENCHIO_TEST_CMAKE": shutil.which("cmake") or "cmake",
        "BENCHIO_TEST_BUILDS": os.environ["BENCHIO_TEST_BUILDS"],
    }


def copy_suite(root: Path, *checks: str) -> SiteCopy:
    """Copy what a site changes (config, checks), and link what it does not (src).

    If `checks`, paths in the copy, are given, ReFrame loads only these.
    """
    for name in ("config", "checks"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / name, root / name, ignore=ignored)
    (root / "src").symlink_to(ROOT / "src")
    return SiteCopy(root, checks or ("checks",))
