"""The arguments of probe.sh, which looks at file systems from a node, and the files it leaves."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from ..base.package import REMOVE_SCRIPT
from ..base.run_directory import JOB_SCRIPTS
from ..filesystems import BACKENDS, mount_names

FILE_SYSTEM_SCRIPTS = Path(__file__).parents[1].joinpath("filesystems").glob("*.sh")

#: The probe, and what it sources.
SCRIPTS = (Path(__file__).with_suffix(".sh"), JOB_SCRIPTS[0], REMOVE_SCRIPT, *FILE_SYSTEM_SCRIPTS)

#: How long a file system has to answer, in seconds. None is waited for after that.
PATIENCE_SECONDS = 60


def answer_file(number: int) -> str:
    """The file with the whole answer of the file system at this place in the list."""
    return f"file_system_{number}.txt"


def unfinished_file(number: int) -> str:
    """The file with what it has answered so far."""
    return f"{answer_file(number)}.part"


def orphans_file(number: int) -> str:
    """The file with the arguments of remove.sh, ended by null bytes, where there are orphans."""
    return f"orphans_{number}.txt"


def removed_file(number: int) -> str:
    """The file with what remove.sh said."""
    return f"removed_{number}.txt"


def arguments(
    file_systems: Sequence[Mapping],
    directories: Sequence[Path],
    seconds: int = PATIENCE_SECONDS,
) -> list[str]:
    """The arguments of probe.sh, for file systems as the site configuration has them.

    It makes the one of `directories` on each, and removes it.
    """
    words = [str(seconds)]
    for settings, directory in zip(file_systems, directories, strict=True):
        names = mount_names(settings, BACKENDS[settings["type"]])
        pool = settings.get("striping", {}).get("pool", "")
        words += [settings["type"], settings["path"], ",".join(names), str(directory), pool]
    return words
