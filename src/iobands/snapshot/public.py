"""The snapshot that anybody may see: without paths, people, nodes, jobs and reasons."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

import polars as pl

from iobands.model.fields import FIELDS
from iobands.snapshot.alert import Alert
from iobands.snapshot.peers import NODE
from iobands.snapshot.series import Series
from iobands.snapshot.site import Snapshot

# What names neither people nor nodes: read-back hints may have lists of nodes.
_SHOWN: Final = frozenset(
    {"suite_version", "tool_version", "transport_in_effect", "fsync", "cache"}
)
_PRIVATE: Final = frozenset(
    {
        "jobid",
        "job_nodelist",
        "attempt",
        *(each.name for each in FIELDS if each.role == "speeds"),
        *(
            each.name
            for each in FIELDS
            if each.type == "text" and each.role in {"in_effect", "covariate"}
        ),
    }
    - _SHOWN
)


def public(site: Snapshot) -> Snapshot:
    """Return what of a snapshot anybody may see."""
    private = [name for name in _PRIVATE if name in site.samples.columns]
    last = site.last_session
    return replace(
        site,
        is_public=True,
        series=tuple(map(_series, site.series)),
        retired=tuple(map(_series, site.retired)),
        alerts=tuple(map(_alert, (each for each in site.alerts if not _is_of_node(each)))),
        ledger=replace(
            site.ledger,
            entries=tuple(
                replace(each, who="", reason="")
                for each in site.ledger.entries
                if each.kind != NODE
            ),
        ),
        samples=site.samples.with_columns(
            pl.lit(None, site.samples[name].dtype).alias(name) for name in private
        ),
        speeds=site.speeds.clear(),
        skipped=(),
        maintenance={
            name: tuple(replace(each, reason="") for each in windows)
            for name, windows in site.maintenance.items()
        },
        rejected=(),
        obstacles=(),
        last_session=last and replace(last, host="", reason=None),
        leftovers=(),
        places=tuple(each for each in site.places if each.kind != NODE),
        peer_actions={},
        warnings=(),
        clock=None,
    )


def _is_of_node(alert: Alert) -> bool:
    return alert.peer is not None and alert.peer.name.kind == NODE


def _alert(alert: Alert) -> Alert:
    known = alert.acknowledgement
    members = tuple(replace(each, series=_series(each.series)) for each in alert.members)
    if known:
        known = replace(known, action=replace(known.action, who="", reason=""))
    return replace(alert, members=members, reason="", acknowledgement=known)


def _series(series: Series) -> Series:
    status, history = series.status, series.history
    newest = {name: None if name in _PRIVATE else each for name, each in history.newest.items()}
    newest["hints_in_effect"] = _names(history.newest.get("hints_in_effect"))
    return replace(
        series,
        history=replace(history, newest=newest),
        status=replace(
            status,
            why="",
            missing=status.missing and "no sample",
            left_out=status.left_out.partition(":")[0],
        ),
        epoch=series.epoch and replace(series.epoch, reason="", source=""),
        epochs=tuple(replace(each, reason="", source="") for each in series.epochs),
        missing=tuple(replace(each, what="") for each in series.missing),
        actions=(),
    )


def _names(hints: object) -> str | None:
    """Return the hints in effect without their values."""
    return re.sub(r"=[^,]*", "", hints) if isinstance(hints, str) else None
