"""A directory of the run's own on the file system: made, guarded, and removed on every exit.

All of it happens in the job script, on the compute node. ReFrame's own clean-up hooks do not run
after a failure, so a trap of the script removes the directory. The script removes nothing but
the directory that it made itself. Where the script was killed, the session does it afterwards.
"""

from pathlib import Path

import reframe as rfm
from reframe.core.builtins import run_before, variable
from reframe.core.logging import getlogger

from ..leftovers import sweep
from ..refusal import refuse
from ..striping import require_commands

KIB_PER_GIB = 1024 * 1024

PERFLOGS = Path(__file__).resolve().parents[2] / "perflogs"


def remove_at_the_end() -> list[str]:
    """Shell commands that see to it that `$run_directory` goes, however the script ends.

    A trap, for which a script that is killed has no time: ReFrame kills the processes of a local
    job two seconds after it asked them to end. So there is also a process in a session of its own,
    which is not killed with them, and which reads until none of them is left to write to it.
    """
    return [
        """trap 'rm -rf -- "$run_directory"' EXIT""",
        'exec {guard}> >(exec setsid sh -c \'cat; rm -rf -- "$1"\' sh "$run_directory"'
        " > /dev/null 2>&1)",
    ]


def require_inodes(files: int) -> list[str]:
    """Shell commands that end the job where the file system has no room for so many files.

    Where it does not tell, there is room: df shows 0 of 0 inodes where they are made as needed, and
    on CephFS `-` for those that are free, of some number.
    """
    return [
        'free_inodes=$(df -Pi "$run_directory" | '
        "awk 'NR == 2 && $2 > 0 && $4 ~ /^[0-9]+$/ { print $4 }')",
        f'[ -z "$free_inodes" ] || [ "$free_inodes" -ge {files} ] || '
        + refuse(f"$free_inodes inodes are free, this run needs {files}"),
    ]


class RunDirectoryMixin(rfm.RegressionTestPlugin):
    """Gives the job script `$run_directory`, and `$exit_status` of the program after it ran."""

    #: How full the file system was before the run, in percent.
    fullness_percent = variable(int, type(None), value=None, loggable=True)

    #: Where the script leaves the name of its run directory, in the stage directory.
    run_directory_file = variable(str, value="run_directory.txt")

    #: Where the script leaves what df said, in the stage directory.
    df_file = variable(str, value="df.txt")

    #: Where the script leaves size and name of each file of the run directory.
    files_file = variable(str, value="files.txt")

    #: Where the script leaves the program's exit status.
    exit_status_file = variable(str, value="exit_status.txt")

    def make_run_directory(self, volume_gib: float) -> list[str]:
        """The shell commands before the program, which writes `volume_gib` at the most.

        They end the job before anything is written where the file system is not fit for it.
        """
        path = self.file_system_settings["path"]
        needed_gib = volume_gib + self.file_system_settings.get("min_free_gib", 0)
        return [
            f'file_system="{path}"',
            *require_commands(self.file_system_settings, self.striping),
            f'run_directory=$(mktemp -d "$file_system/iobands-{type(self).__name__}-XXXXXXXXXX")'
            f" || {refuse('no directory can be made there: does it exist, may you write?')}",
            *remove_at_the_end(),
            f'echo "$run_directory" > {self.run_directory_file}',
            "trap 'exit 143' TERM",
            "trap 'exit 130' INT",
            f'df -Pk "$run_directory" > {self.df_file}',
            f"free_kib=$(awk 'NR == 2 {{ print $4 }}' {self.df_file})",
            f'[ "$free_kib" -ge {int(needed_gib * KIB_PER_GIB)} ] || '
            + refuse(
                f"$free_kib KiB are free, this run needs {needed_gib:g} GiB: "
                f"{volume_gib:g} to write, the rest to leave free"
            ),
        ]

    def inspect_run_directory(self) -> list[str]:
        """The shell commands straight after the program."""
        return [
            "exit_status=$?",
            f'echo "$exit_status" > {self.exit_status_file}',
            f"find \"$run_directory\" -type f -printf '%s %f\\n' > {self.files_file}",
        ]

    def leave_run_directory(self) -> list[str]:
        """The last shell command: the trap cleans up, and the job ends as the program did."""
        return ['exit "$exit_status"']

    @run_before("sanity")
    def see_to_what_is_left(self) -> None:
        file = Path(self.stagedir, self.run_directory_file)
        own = Path(file.read_text(encoding="utf-8").strip()) if file.exists() else None
        sweep_after_run(self.current_system.name, own)

    @run_before("sanity")
    def read_fullness(self) -> None:
        try:
            df = Path(self.stagedir, self.df_file).read_text(encoding="utf-8")
            self.fullness_percent = int(df.splitlines()[1].split()[4].rstrip("%"))
        except (OSError, IndexError, ValueError):
            # A covariate: the run may still prove its rates without it.
            self.fullness_percent = None


def sweep_after_run(system: str, own: Path | None) -> None:
    """Remove the directory of a run on `system` that is over, and what earlier ones left there."""
    notes = PERFLOGS / system / "leftovers"
    try:
        for directory in sweep(notes, own):
            getlogger().warning(f"{directory} could not be removed: the next run tries again")
    except OSError as error:
        getlogger().warning(f"{notes}: {error.strerror}")
