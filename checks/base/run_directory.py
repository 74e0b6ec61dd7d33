"""The run directory: made by the job script, guarded, and removed on every exit.

All of it happens in the job script, by the functions of job.sh: ReFrame's own clean-up hooks do
not run after a failure. The script removes nothing but the directory that it made itself. Where
the script was killed, the session removes it afterwards.
"""

import shlex
from pathlib import Path

import reframe as rfm
from reframe.core.logging import getlogger

from ..filesystems import mount_names
from .leftovers import sweep
from .package import PERFLOGS
from .stage import call, read_output

#: The functions that job scripts source, and what runs on each node of a job.
JOB_SCRIPTS = (Path(__file__).with_name("job.sh"), Path(__file__).with_name("covariates.sh"))


class RunDirectoryMixin(rfm.RegressionTestPlugin):
    """Gives the job script `$run_directory`, and `$exit_status` of the program after it ran."""

    def make_run_directory(self, volume_gib: float) -> list[str]:
        """The shell commands before the program, which writes `volume_gib` at the most.

        They end the job before anything is written where the file system is not fit for it.
        """
        settings = self.file_system_settings
        kind, names = settings["type"], mount_names(settings, self.striping)
        asked = f"{kind}, mounted as {names[0]}" if "mounted_as" in settings else kind
        needed_gib = volume_gib + settings.get("min_free_gib", 0)
        return [
            f"file_system={shlex.quote(settings['path'])}",
            *([call("require_mounted", asked, *names)] if names else []),
            *([call("require_commands", kind)] if self.striping.script else []),
            call("make_run_directory", type(self).__name__),
            call("require_space", f"{needed_gib:g}", f"{volume_gib:g}"),
        ]

    def sweep_run_directory(self, stage: Path) -> None:
        """Remove the directory of a run that was killed, and what earlier ones left."""
        name = read_output(stage / "run_directory.txt").strip()
        sweep_after_run(self.current_system.name, Path(name) if name else None)


def sweep_after_run(system: str, own: Path | None) -> None:
    """Remove the directory of a run on `system` that is over, and what earlier ones left there."""
    notes = PERFLOGS / system / "leftovers"
    try:
        for directory in sweep(notes, own):
            getlogger().warning(f"{directory} could not be removed: the next run tries again")
    except OSError as error:
        getlogger().warning(f"{notes}: {error.strerror}")
