"""What is measured, where and for whom: the selection, the site's directory and the suite.

The suite is what a release brings: checks, the general configuration, benchio's source. A site is
what its staff keep: site files, bands, actions, perflogs. In a clone both are the clone.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

from iobands.model import MANUAL, SCHEDULED

#: The environment variable that says why the runs are made, which the sample keeps.
PURPOSE_ENV: Final = "IOBANDS_PURPOSE"
#: The environment variable with the number of the attempt, which the sample keeps.
ATTEMPT_ENV: Final = "IOBANDS_ATTEMPT"
#: The message about a job that was given up because Slurm does not report its state.
SILENT: Final = "Slurm does not say whether job"


@dataclass(frozen=True)
class Selection:
    """What to measure: the checks with `tag`, on `system` or where ReFrame finds itself to be.

    `extra` are further arguments for ReFrame. `why` is the purpose if it is measured again.
    """

    tag: str | None
    system: str | None = None
    extra: tuple[str, ...] = ()
    why: str | None = None

    def arguments(self) -> list[str]:
        """Return the selection as arguments of ReFrame."""
        tag = ["-t", self.tag] if self.tag else []
        system = [f"--system={self.system}"] if self.system else []
        return [*tag, *system, *self.extra]

    @property
    def purpose(self) -> str:
        """Why it is measured: further arguments, which no schedule has, are of a person.

        `IOBANDS_PURPOSE` says otherwise, except of what is measured again.
        """
        by_hand = MANUAL if self.extra else SCHEDULED
        return self.why or os.environ.get(PURPOSE_ENV) or by_hand


def exactly(name: str) -> str:
    """Return the pattern of `reframe -n` for one check; ReFrame matches names without blanks."""
    return f"^{re.escape(name.replace(' ', ''))}$"


def selection_of(
    names: Iterable[str], place: str, environ: str, why: str, more: Sequence[str] = ()
) -> Selection:
    """Return the checks with these names on a partition, `system:partition`, in an environment."""
    named = (word for name in dict.fromkeys(names) for word in ("-n", exactly(name)))
    return Selection(None, place, (*named, "-p", f"^{re.escape(environ)}$", *more), why)


@dataclass(frozen=True)
class Listener:
    """Who follows a session: `line` gets each line of ReFrame, `step` a short text at each step."""

    line: Callable[[str], None]
    step: Callable[[str], None]


class DeclaredPartitions(Protocol):
    """The partitions of a system by name, with what its site file says of each."""

    @property
    def partitions(self) -> Mapping[str, Mapping[str, Any]]:
        """The extras by the name of the partition."""


#: Reads the site file of a system; raises FileError.
ReadSiteFile = Callable[[str], DeclaredPartitions]


@dataclass(frozen=True)
class Workplace:
    """Where a session measures: the site's directory, its site files, and who follows it."""

    root: Path
    read_site_file: ReadSiteFile
    listener: Listener

    @property
    def perflogs(self) -> Path:
        """The directory of the perflogs."""
        return self.root / "perflogs"


#: Names the site's directory to ReFrame and its checks.
SITE_ENV: Final = "IOBANDS_SITE"
_PACKAGE: Final = Path(__file__).resolve().parents[1]
_INSTALLED: Final = _PACKAGE / "suite"
_CLONE: Final = _PACKAGE.parents[1]


def suite_of(site: Path) -> Path:
    """Return the suite for a site: its own in a clone, else the one of this installation."""
    return site if (site / "checks").is_dir() else installed_suite()


def installed_suite() -> Path:
    """Return the suite of this installation."""
    return _INSTALLED if _INSTALLED.is_dir() else _CLONE


def site_of_suite(suite: Path) -> Path:
    """Return the site that `suite` measures: the one in the environment, else a clone itself."""
    return Path(os.environ.get(SITE_ENV) or suite).resolve()
