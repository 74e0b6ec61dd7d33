"""Stand-ins for mpirun and lfs, which make runs on some file systems go wrong."""

import os
import shutil
import subprocess
from pathlib import Path

from tests.checks.captures import lustre_said

#: For each file system: the fault, the expected outcome, and what mpirun does instead of a launch.
FAULTS = {
    "killed": ("job is killed (SIGKILL)", "no rate; nothing left", "kill -KILL $PPID"),
    "cut": ("result file is cut off", "no rate", '"$real" "$@"; truncate -s -9 result.jsonl'),
    "old": (
        "result file of an older schema",
        "no rate; both schemas",
        '"$real" "$@"; sed -i s,benchio/.\\",benchio/1\\", result.jsonl',
    ),
    "striped": ("stripe not as asked", "no rate; both stripe counts", '"$real" "$@"'),
}

MPIRUN = """\
#!/bin/sh
real={real}
[ ! -e {lifted} ] || exec "$real" "$@"
case "$*" in
{faults}
esac
exec "$real" "$@"
"""

#: Answers like Lustre 2.17; while the fault is there, a run's files have one stripe.
LFS = """\
#!/bin/sh
case "$*" in
"osts "*) cat {answers}/osts ;;
"df "*) cat {answers}/df ;;
"check osts") cat {answers}/check ;;
"setstripe "* | "getstripe -p "*) ;;
"getstripe -c "*) echo 4 ;;
"getstripe "*/all-targets) cat {answers}/four ;;
"getstripe "*) if [ -e {lifted} ]; then cat {answers}/four; else cat {answers}/one; fi ;;
*) exit 1 ;;
esac
"""


ANSWERS = {
    "osts": "lfs osts /mnt/lustre",
    "df": "lfs df /mnt/lustre",
    "check": "lfs check osts",
    "one": "lfs getstripe /mnt/lustre/dc1/f",
    "four": "lfs getstripe /mnt/lustre/dc4S1mi2/f",
}


class StandIns:
    """The programs, below `root`, for file systems below `disks`, until the faults are lifted."""

    def __init__(self, root: Path, disks: Path) -> None:
        """Write the programs."""
        self._lifted, self._programs = root / "lifted", root / "bin"
        self._programs.mkdir()
        strikes = [
            f"*{disks}/{name}/*) {strike}; exit ;;" for name, (_, _, strike) in FAULTS.items()
        ]
        self._write(
            "mpirun",
            MPIRUN.format(
                real=shutil.which("mpirun"), lifted=self._lifted, faults="\n".join(strikes)
            ),
        )
        self._write("lfs", LFS.format(answers=root, lifted=self._lifted))
        for name, command in ANSWERS.items():
            (root / name).write_text(lustre_said(command), encoding="utf-8")

    def _write(self, name: str, script: str) -> None:
        path = self._programs / name
        path.write_text(script, encoding="utf-8")
        path.chmod(0o755)

    @property
    def environment(self) -> dict[str, str]:
        """The environment whose PATH finds the stand-ins first."""
        return {**os.environ, "PATH": f"{self._programs}:{os.environ['PATH']}"}

    def lift(self) -> None:
        """Lift the faults: every run succeeds from now on."""
        self._lifted.touch()


def lustre(where: Path) -> dict[str, object]:
    """Return a site file's settings that declare `where` to be on Lustre, with four stripes."""
    df = ["df", "--output=fstype", where]
    (kind,) = subprocess.run(df, capture_output=True, text=True, check=True).stdout.split()[1:]
    return {"type": "lustre", "mounted_as": kind, "stripe_counts": [4]}
