"""Changes in the real year that a person marked by eye, without seeing the alerts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any, Final

import yaml

from benchmarks.alarms.real import Replay, Said
from iobands.model import SeriesKey, slug
from iobands.snapshot import FELL, GREW

#: The marks in the year of Edison; the file says how they were made.
MARKS: Final = Path(__file__).parent / "marks" / "edison-2017.yaml"
# How much too early an alert may date a change (at most by the change's length), how long after
# its last run the alert may come, and how late an alert may date a lasting change.
_EARLY, LATE, _LASTING = (timedelta(days=days) for days in (14, 7, 45))


@dataclass(frozen=True)
class Mark:
    """A change, a gap or a healthy stretch of some series, from its first to its last run."""

    file_system: str
    kind: str
    is_must: bool
    first: date
    last: date
    series: frozenset[str]

    @property
    def is_change(self) -> bool:
        """Whether it is neither a gap nor healthy."""
        return self.kind not in ("gap", "healthy")

    @property
    def latest(self) -> date:
        """The last day to which an alert may date the change."""
        return min(self.last, self.first + _LASTING)

    @property
    def is_short_fall(self) -> bool:
        """Whether it is a fall that lasts for some weeks at the most."""
        return self.is_change and self.kind != "rise" and self.last - self.first <= _LASTING

    def of(self, said: Said) -> frozenset[SeriesKey]:
        """Return the series of an alert that are among the mark's."""
        return frozenset(
            key
            for key in said.keys
            if key.file_system == self.file_system and name_of(key) in self.series
        )

    def explains(self, said: Said) -> bool:
        """Return whether an alert is about the change: its series, direction and date."""
        early = min(_EARLY, self.last - self.first + timedelta(days=1))
        is_same_way = (self.kind == "rise") == (said.direction == "up")
        is_then = self.first - early <= said.since <= self.latest
        return is_same_way and is_then and bool(self.of(said))

    def tells(self, said: Said) -> frozenset[SeriesKey]:
        """Return the mark's series that an alert covers, by its date or by a later event of it."""
        if self.explains(said):
            return self.of(said)
        is_same_way = (self.kind == "rise") == (said.direction == "up")
        names = {
            name
            for each in said.happened
            if each.kind in (GREW, FELL) and self.first <= each.when.date() <= self.latest + LATE
            for name in each.names
        }
        return frozenset(key for key in self.of(said) if is_same_way and slug(key) in names)

    def denies(self, said: Said) -> bool:
        """Return whether an alert dates a change into a stretch marked as healthy."""
        is_within = self.first <= said.since <= self.last and self.of(said) == said.keys
        return self.kind == "healthy" and is_within


def name_of(key: SeriesKey) -> str:
    """Return what the marks call a series of a file system."""
    return f"{key.tool} {key.pattern} {key.variable.removesuffix('_bw')}"


def read_marks(path: Path, replay: Replay) -> list[Mark]:
    """Return the marks about series that occur in the replay."""
    known: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    names = {(each.key.file_system, name_of(each.key)) for each in replay.series}

    def marks(each: Mapping[str, Any], kind: str) -> Iterator[Mark]:
        for place in each.get("file_systems") or [each["file_system"]]:
            every = {name for own, name in names if own == place}
            chosen = {name for name in every if name.endswith(each.get("operation", ""))}
            if series := frozenset(chosen.intersection(each.get("series", every))):
                is_must = each.get("tell") == "must"
                yield Mark(place, kind, is_must, each["first"], each["last"], series)

    kinds = {"marks": "", "dips": "dip", "gaps": "gap", "healthy": "healthy"}
    return [
        mark
        for part, kind in kinds.items()
        for each in known[part]
        for mark in marks(each, kind or each["kind"])
    ]
