"""The run directory: noted by the session, made by the job script, and removed on every exit.

The note is on disk before the job is submitted, so that the directory is known even if the session
is killed or its machine goes down. The job script makes and removes the directory, with functions
of job.sh. Later sessions and `iobands clean` remove what it could not.
"""

import shlex
from collections.abc import Sequence
from pathlib import Path

import reframe as rfm
from reframe.core.builtins import run_before
from reframe.core.exceptions import ReframeError
from reframe.core.logging import getlogger

from ..filesystems import BACKENDS, mount_asked, mount_names
from .job import when_submitted
from .package import PERFLOGS, Note, new_note, notes_of, sweep
from .stage import call

#: The functions that job scripts source, and the script that runs on each node of a job.
JOB_SCRIPTS = (Path(__file__).with_name("job.sh"), Path(__file__).with_name("covariates.sh"))


class NotedDirectories(rfm.RegressionTestPlugin):
    """Notes the directories that a job makes, and removes what is left of them."""

    _noted: tuple[Note, ...] = ()

    def note_directory(self, root: str, mounted: str | None = None) -> Path:
        """Note a directory below `root` that the job will make, and return its path.

        `mounted` is the type and mount point of its file system as seen by a compute node.
        """
        scheduler = self.current_partition.scheduler.registered_name
        note = new_note(Path(root), type(self).__name__, scheduler, mounted)
        if not self.is_dry_run():
            try:
                note.write(self.notes)
            except OSError as error:
                raise ReframeError(
                    f"cannot write a note to {self.notes}: {error.strerror}"
                ) from None  # ReFrame would add the cause to the text
            self._noted = (*self._noted, note)
        return note.path

    @run_before("run")
    def note_job_when_submitted(self) -> None:
        when_submitted(self.job, self.note_job)

    def note_job(self) -> None:
        """Add the number of the job to the notes."""
        self._noted = tuple(note.submitted(str(self.job.jobid)) for note in self._noted)
        for note in self._noted:
            note.write(self.notes)

    def sweep_own(self) -> None:
        """Remove what is left of the directories after the job has ended."""
        # The script's trap records what it removed, as this node may lack the file system.
        said = Path(self.stagedir, "removed_directories.txt")
        removed = said.read_text(encoding="utf-8").splitlines() if said.exists() else []
        for note in self._noted:
            if str(note.path) in removed:
                (self.notes / note.name).unlink(missing_ok=True)
        self.sweep_notes({note.name for note in self._noted if str(note.path) not in removed})

    def sweep_notes(self, own: set[str] | None = None) -> None:
        """Remove the directories `own`, or all orphans of the system; warn of what stays."""
        if own is not None and not own:
            return
        try:
            for each in sweep(self.notes, self.roots, own=own or ()):
                if each.state == "away":
                    getlogger().info(f"{each.note.path}: {each.why}")
                elif each.state != "gone":
                    getlogger().warning(f"{each.note.path} stays: {each.why}")
        except OSError as error:
            getlogger().warning(f"{self.notes}: {error.strerror}")

    @property
    def notes(self) -> Path:
        """The directory with the notes of the system."""
        return notes_of(PERFLOGS, self.current_system.name)

    @property
    def roots(self) -> dict[Path, Sequence[str]]:
        """The paths of the system's run directories, and df's names of their file systems."""
        return {
            Path(settings["path"]): mount_names(settings, BACKENDS[settings["type"]])
            for partition in self.current_system.partitions
            for settings in partition.extras.get("filesystems", {}).values()
        }


class RunDirectoryMixin(NotedDirectories):
    """Gives the job script `$run_directory`, and `$exit_status` of the program after it ran."""

    def make_run_directory(self, volume_gib: float) -> list[str]:
        """The shell commands before the program, which writes at most `volume_gib`.

        They end the job before anything is written if the file system is not fit for it.
        """
        settings = self.file_system_settings
        kind, names = settings["type"], mount_names(settings, self.striping)
        needed_gib = volume_gib + settings.get("min_free_gib", 0)
        path = self.note_directory(settings["path"], self.probe.mounted.get(self.file_system))
        Path(self.stagedir, "run_directory.txt").write_text(f"{path}\n", encoding="utf-8")
        return [
            f"file_system={shlex.quote(settings['path'])}",
            *([call("require_mounted", mount_asked(settings), *names)] if names else []),
            *([call("require_commands", kind)] if self.striping.script else []),
            "make_run_directory",
            call("require_space", f"{needed_gib:g}", f"{volume_gib:g}"),
        ]
