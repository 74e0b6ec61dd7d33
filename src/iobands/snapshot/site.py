"""The snapshot: the state of a site at one time, and the part of it that is public."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any, Final

import polars as pl

from iobands import model
from iobands.bands.band import Band, Epoch, Window
from iobands.model import Ask, LastSession, Leftover, PeerName, Rejected, SeriesKey
from iobands.snapshot.alert import (
    Alert,
    Cause,
    CauseKind,
    Certainty,
    Incident,
    Ledger,
    LedgerEntry,
    Member,
)
from iobands.snapshot.columns import Columns
from iobands.snapshot.history import DOWN, UNCERTAIN, Doubt, Evidence, History, State
from iobands.snapshot.peers import Place
from iobands.snapshot.series import Action, Finding, MissingRun, Obstacle, Outliers, Series, Status


@dataclass(frozen=True)
class FutureSample:
    """A sample that is dated in the future; it joins its series when that time has come."""

    key: SeriesKey
    label: str
    when: datetime


#: How far a date may be ahead of the clock that gave `now`.
CLOCK_OFF: Final = timedelta(minutes=15)

#: The subject of an alert about a clock.
CLOCK: Final = "clock"


@dataclass(frozen=True)
class FileSystem:
    """A file system: the outliers of all its series, and its size, None if unknown."""

    system: str
    name: str
    outliers: Outliers = Outliers()  # noqa: RUF009 (frozen)
    size_gib: float | None = None


@dataclass(frozen=True)
class Snapshot:
    """The state of a site, or of one of its systems, at `now`.

    `alerts` are the open alerts, the worst first, `past` the ended ones, and `ledger` lists both.
    An alert needs the evidence `threshold`, in nats (natural logarithms of a likelihood ratio); it
    is chosen so that all series of a system together raise `false_alarms_a_year`, and is the
    largest one if there are several systems. `skipped` are checks that never gave a sample and were
    skipped for a reason, such as a program that is not installed. `superseded` names series whose
    check now runs at another scale. `retired` are series that a person retired, and `future` are
    samples dated in the future; neither is judged. `maintenance` lists the windows of each system.
    `leftovers` are run directories that could not be removed. `places` are the groups of targets or
    nodes that are compared, and `peer_actions` the actions on them. `warnings` are about the bands
    files. `clock` says how far the clock that gave `now` is off; while it is, nothing becomes over
    or due by that clock. `planned` is what is measured again, and when. `unpushed` says for how
    long, if for more than a day, and why the site's store lacks new data.

    The history is in tables: `samples` has a row for each sample, with all fields of contract 2,
    and `speeds` a row for each target and node of a run.
    """

    now: datetime
    series: tuple[Series, ...]
    ledger: Ledger
    false_alarms_a_year: float
    threshold: float
    samples: Columns = field(repr=False, compare=False)
    speeds: pl.DataFrame = field(repr=False, compare=False)
    alerts: tuple[Alert, ...] = ()
    past: tuple[Alert, ...] = ()
    skipped: tuple[Finding, ...] = ()
    superseded: tuple[str, ...] = ()
    retired: tuple[Series, ...] = ()
    future: tuple[FutureSample, ...] = ()
    maintenance: Mapping[str, tuple[Window, ...]] = field(default_factory=dict)
    rejected: tuple[Rejected, ...] = ()
    obstacles: tuple[Obstacle, ...] = ()
    incidents: tuple[Incident, ...] = ()
    file_systems: tuple[FileSystem, ...] = ()
    last_session: LastSession | None = None
    leftovers: tuple[Leftover, ...] = ()
    places: tuple[Place, ...] = ()
    peer_actions: tuple[tuple[PeerName, tuple[Action, ...]], ...] = ()
    warnings: tuple[str, ...] = ()
    clock: str | None = None
    planned: tuple[Ask, ...] = ()
    unpushed: str | None = None
    is_public: bool = False
    # Options of the reader, so no part of the typed state: a single system, a time in the past.
    only: str | None = field(default=None, compare=False)
    is_past: bool = field(default=False, compare=False)

    @property
    def exit_status(self) -> int:
        """The exit status of a monitoring plug-in: 0 OK, 1 warning, 2 critical, 3 unknown."""
        statuses = [alert.exit_status for alert in self.alerts]
        left = model.OK if all(each.is_closed for each in self.leftovers) else model.WARNING
        return model.worst([*statuses, left, model.OK if self.series else model.UNKNOWN])

    @property
    def rejected_lines(self) -> int:
        """The number of rejected lines; `rejected` lists only the first ones singly."""
        return sum(each.lines for each in self.rejected)

    @cached_property
    def systems(self) -> frozenset[str]:
        """The systems of its series, retired ones included."""
        return frozenset(each.key.system for each in (*self.series, *self.retired))

    @property
    def is_made_up(self) -> bool:
        """Whether this is the site of `iobands demo`, where nothing was measured."""
        return model.MADE_UP in self.systems

    def counts(self) -> dict[State, int]:
        """Return how many series are in each state that occurs, the worst first."""
        found = Counter(series.status.state for series in self.series)
        return {state: found[state] for state in State if found[state]}

    @property
    def actions(self) -> dict[SeriesKey | PeerName, tuple[Action, ...]]:
        """All actions on each series, target or node, including undone ones."""
        found: dict[SeriesKey | PeerName, tuple[Action, ...]] = {
            each.key: each.actions for each in (*self.series, *self.retired)
        }
        found.update(self.peer_actions)
        return found

    def file_system(self, system: str, name: str | None) -> FileSystem:
        """Return the file system of a name; `none` stands for series without one."""
        wanted = (system, name or "none")
        known = (each for each in self.file_systems if (each.system, each.name) == wanted)
        return next(known, FileSystem(*wanted))

    def alerts_on(self, key: SeriesKey) -> tuple[Alert, ...]:
        """Return the alerts that have the series as a member."""
        return self._alerts_by_series.get(key, ())

    @property
    def doubts(self) -> dict[SeriesKey, Doubt]:
        """The question that one more run of a series may decide now, by series.

        Alerts that are certain or acknowledged raise no question.
        """
        found = {}
        for each in self.series:
            doubt = each.status.evidence and each.status.evidence.doubt
            drops = [
                Doubt(UNCERTAIN, alert.since, alert.score)
                for alert in self.alerts_on(each.key)
                if alert.number is not None and alert.direction == DOWN and alert.since
                if alert.certainty not in {None, Certainty.CERTAIN} and not alert.is_quiet
            ]
            if doubt and doubt.kind != UNCERTAIN:
                found[each.key] = doubt
            elif drops:
                found[each.key] = doubt or drops[0]
        return found

    @cached_property
    def _alerts_by_series(self) -> Mapping[SeriesKey, tuple[Alert, ...]]:
        found: defaultdict[SeriesKey, tuple[Alert, ...]] = defaultdict(tuple)
        for alert in self.alerts:
            for key in alert.keys:
                found[key] += (alert,)
        return found


# Texts of runs that the public may see: others, such as read-back hints, may name people or nodes.
_SHOWN: Final = frozenset(
    {"suite_version", "tool_version", "transport_in_effect", "fsync", "cache"}
)

_PRIVATE: Final = frozenset(
    each.name
    for each in model.FIELDS
    if each.name in {"jobid", "job_nodelist", "attempt"}
    or each.role == "speeds"
    or (each.type == "text" and each.role in {"in_effect", "covariate"} and each.name not in _SHOWN)
)

_PRIVATE_CAUSES: Final = (CauseKind.NODE, CauseKind.NODES, CauseKind.HINTS, CauseKind.LAYOUT)


def _public_sample(sample: Mapping[str, object]) -> dict[str, object]:
    shown = {name: None if name in _PRIVATE else each for name, each in sample.items()}
    if isinstance(hints := sample.get("hints_in_effect"), str):
        shown["hints_in_effect"] = re.sub(r"=.*?(?=,\w+=|$)", "", hints)  # without their values
    return shown


#: What replaces a field that may name people, nodes or paths for the public, by class and field: a
#: value, or a function of the original.
_INSTEAD: Final[Mapping[type, Mapping[str, Any]]] = {
    Action: {"who": "", "reason": "", "owner": None, "ticket": None},
    Alert: {"reason": ""},
    Ask: {
        "why": lambda text: "a node may be slow" if text.startswith(f"{model.NODE} ") else text,
        "node": "",
    },
    Epoch: {"reason": "", "source": ""},
    History: {"newest": _public_sample},
    LastSession: {"host": "", "reason": None},
    LedgerEntry: {"who": "", "reason": ""},
    MissingRun: {"what": ""},
    Series: {"actions": ()},
    Snapshot: {
        # some of these name series, which may be pinned to a node
        **dict.fromkeys(("skipped", "superseded", "future", "rejected", "obstacles"), ()),
        **dict.fromkeys(("leftovers", "warnings", "peer_actions"), ()),
        "speeds": pl.DataFrame.clear,
        "clock": None,
        "unpushed": None,
        "is_public": True,
    },
    Status: {
        "why": "",
        "missing": lambda text: text and "no sample",
        "left_out": lambda text: text.partition(":")[0],
    },
    Window: {"reason": ""},
}


def public(site: Snapshot) -> Snapshot:
    """Return the public part of a snapshot."""
    schema, rows = site.samples.schema, len(site.samples)
    nothing = [pl.Series(name, dtype=schema[name]).clear(rows) for name in _PRIVATE & schema.keys()]
    return replace(_public(site), samples=site.samples.with_columns(*nothing))


def _names_node(value: object) -> bool:
    """Return whether a value is about one node or runs pinned to it, or is a cause naming nodes."""
    if isinstance(value, Alert):
        parts = [value.peer.name] if value.peer else value.members
        return bool(parts) and all(map(_names_node, parts))
    if isinstance(value, Member | Series):
        key = (value.series if isinstance(value, Member) else value).key
        return (key.case or "").startswith(f"{model.NODE} ")
    if isinstance(value, Cause):
        return value.kind in _PRIVATE_CAUSES
    is_pinned = isinstance(value, LedgerEntry) and f"case={model.NODE} " in value.subject
    is_peer = isinstance(value, PeerName | LedgerEntry | Place) and value.kind == model.NODE
    return is_pinned or is_peer


def _public(value: Any) -> Any:  # noqa: ANN401 (any part of a snapshot)
    """Return the public part of a value, None if it may name nodes."""
    if type(value) is tuple:
        pairs = [(each, _public(each)) for each in value]
        return tuple(shown for each, shown in pairs if each is None or shown is not None)
    if isinstance(value, Mapping):
        return {key: _public(each) for key, each in value.items()}
    if _names_node(value):
        return None
    if not is_dataclass(value) or isinstance(value, Band | Evidence | SeriesKey):
        return value  # there is nothing to hide in it
    shown = {each.name: _public(getattr(value, each.name)) for each in fields(value)}
    for name, new in _INSTEAD.get(type(value), {}).items():
        shown[name] = new(shown[name]) if callable(new) else new
    if isinstance(value, Alert) and not value.members:  # a file is named without its directory
        shown["subject"] = re.sub(r"\S*/(.*/)?", "", value.subject)
    return replace(value, **shown)
