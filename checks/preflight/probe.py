"""The arguments of probe.sh, which examines file systems from a node, and the files it leaves."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from ..base.package import REMOVE_SCRIPT
from ..base.run_directory import JOB_SCRIPTS
from ..base.stage import read_output
from ..filesystems import BACKENDS, mount_names

FILE_SYSTEM_SCRIPTS = Path(__file__).parents[1].joinpath("filesystems").glob("*.sh")

#: The probe, and the scripts that it sources.
SCRIPTS = (Path(__file__).with_suffix(".sh"), JOB_SCRIPTS[0], REMOVE_SCRIPT, *FILE_SYSTEM_SCRIPTS)

#: How long the probe waits for a file system, in seconds.
PATIENCE_SECONDS = 60

#: The least room in a stage directory, in bytes.
_ROOM = 2**16


#: What the script writes last: a line `silent N` for each file system that it no longer waits for.
_END_FILE, _END = "probed.txt", "end"


class StageError(OSError):
    """The job left no output in its stage directory."""


def read_answers(stage: Path, number: int) -> list[tuple[str, bool]]:
    """The output about each of `number` file systems, and whether it was complete in time.

    Raises:
        StageError: the job could not write in its stage directory, or did not run to its end.
    """
    said = read_output(stage / _END_FILE).splitlines()
    answers = []
    for each in range(number):
        whole = stage / f"file_system_{each}.txt"
        if not whole.exists() and (said[-1:] != [_END] or f"silent {each}" not in said):
            require_room(stage)
            raise StageError(
                f"the job could not write in its stage directory {stage}, or was ended"
            )
        part = whole.with_name(f"{whole.name}.part")
        answers.append((read_output(whole if whole.exists() else part), whole.exists()))
    return answers


def require_room(stage: Path) -> None:
    """Raise a StageError if nothing can be written in the stage directory."""
    file = stage / "room.txt"
    try:
        file.write_bytes(bytes(_ROOM))
    except OSError as error:
        why = f"the stage directory {stage} cannot be written to: {error.strerror}"
        raise StageError(why) from error
    finally:
        file.unlink(missing_ok=True)


def orphans_file(number: int) -> str:
    """The file with the arguments of remove.sh, ended by null bytes, if there are orphans."""
    return f"orphans_{number}.txt"


def removed_file(number: int) -> str:
    """The file with the output of remove.sh."""
    return f"removed_{number}.txt"


def arguments(
    file_systems: Sequence[Mapping],
    directories: Sequence[Path],
    seconds: int = PATIENCE_SECONDS,
) -> list[str]:
    """The arguments of probe.sh, for entries of file systems in the site configuration.

    The probe makes and removes one of `directories` on each file system.
    """
    words = [str(seconds)]
    for settings, directory in zip(file_systems, directories, strict=True):
        names = mount_names(settings, BACKENDS[settings["type"]])
        pool = settings.get("striping", {}).get("pool", "")
        words += [settings["type"], settings["path"], ",".join(names), str(directory), pool]
    return words
