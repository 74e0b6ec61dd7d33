"""Why a check was not run: found in a run report by what it depends on.

ReFrame says of such a check that dependencies failed, and no more. The checks of the environment
name what they examine; what depends on one that failed lacks just that. May know: the form of the
reports, and nothing that reads them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

#: The results of a case that was not run.
NOT_RUN: Final = frozenset({"skip", "fail_deps"})
#: Where an entry has the name of what it examines, by what kind of thing it is.
_NAMED_IN: Final = {
    "file system": "file_system",
    "environment": "environ",
    "partition": "partition",
}

_Entry = Mapping[str, Any]
_Key = tuple[str, ...]  # name, system with partition, and environment


@dataclass(frozen=True)
class Lack:
    """What was not fit for use, and why: the file system, environment or partition of this name."""

    subject: str
    why: str


def examined(entry: _Entry) -> str | None:
    """Return the name of what an entry examines, if it is a check of the environment."""
    name = entry.get(_NAMED_IN.get(str(entry.get("examines")), ""))
    return name if isinstance(name, str) else None


class Lacks:
    """The entries of one run of a report, by what others depend on."""

    def __init__(self, entries: Iterable[_Entry]) -> None:
        """Take the entries."""
        self._entries: dict[_Key, _Entry] = {_key(entry): entry for entry in entries}

    def of(self, entry: _Entry, seen: frozenset[_Key] = frozenset()) -> Lack | None:
        """Return what `entry` found unfit, or could not be run without; None if nothing is known.

        `seen` are the entries that led here: a damaged report may go in circles.
        """
        subject, not_run = examined(entry), entry.get("not_run")
        result = str(entry.get("result"))
        if subject and result == "fail":
            said = str(entry.get("fail_reason")).splitlines() or [""]
            return Lack(subject, said[0].removeprefix("sanity error: "))
        if result not in NOT_RUN:
            return None
        if isinstance(not_run, str) and isinstance(entry.get("file_system"), str):
            return Lack(entry["file_system"], not_run)
        needed = entry.get("dependencies_actual")
        for names in needed if isinstance(needed, list) else ():
            key = tuple(map(str, names)) if isinstance(names, list) else ()
            lack = None
            if key in self._entries and key not in seen:
                lack = self.of(self._entries[key], seen | {key})
            if lack:
                return lack
        return None


def _key(entry: _Entry) -> _Key:
    where = f"{entry.get('system')}:{entry.get('partition')}"
    return str(entry.get("unique_name")), where, str(entry.get("environ"))
