"""Adding an act to a file of alarms as people keep it: comments, order and old acts stay.

May know: contract 5, its reader, and how YAML files are changed; nothing of surveys.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from ruamel.yaml.comments import CommentedMap, CommentedSeq

from iobands.alerts.acts import Act
from iobands.alerts.alarms_file import SCHEMA, load_acts, parse_acts
from iobands.yaml_change import Change, Document, Overtaken, plain

_NEW: Final = """\
# What people did about alarms, as docs/contracts.md has it. `iobands acknowledge`, `close`,
# `new-normal` and `reopen` add to this file; keep it in git.
schema: {schema}
system: {system}
acts: []
"""
_TRIES: Final = 20


def added(path: Path, system: str, act: Act) -> Change:
    """Return the change that adds `act` to the file at `path`, which need not exist.

    An act is known by its time, so that one of the same second gets the next that is free.

    Raises:
        FileError: the file cannot be read, or what it would become breaks contract 5.
    """
    document = Document(path, _NEW.format(system=system, schema=SCHEMA), parse_acts)
    taken = {one.when for one in load_acts(path.parent, system).every}
    while act.when in taken:
        act = replace(act, when=act.when + timedelta(seconds=1))
    document.content["schema"] = SCHEMA
    document.items("acts").append(_written(act))
    return document.change()


def add(path: Path, system: str, act: Act) -> None:
    """Add `act` to the file at `path`, which need not exist.

    Raises:
        FileError: as of `added`, or the file cannot be written.
    """
    for _ in range(_TRIES):
        try:
            added(path, system, act).write()
        except Overtaken:  # somebody else's act came first, and stays
            continue
        return
    raise Overtaken(f"{path}: is being changed all the time; try again")


def _written(act: Act) -> CommentedMap:
    times = {"of": act.of, "since": act.since, "until": act.until}
    fields: dict[str, Any] = {
        "act": act.kind,
        "when": act.when.isoformat(),
        "who": act.who,
        "reason": act.reason,
        **{name: time.isoformat() for name, time in times.items() if time},
    }
    if act.direction:
        fields["direction"] = act.direction
    if act.ratio is not None:
        fields["ratio"] = float(f"{act.ratio:.3g}")
    if act.on_nodes:
        fields["on_nodes"] = CommentedSeq(act.on_nodes)
        fields["on_nodes"].fa.set_flow_style()
    series = CommentedSeq()
    for wanted in act.series:
        line = CommentedMap({name: plain(value) for name, value in wanted.items()})
        line.fa.set_flow_style()
        series.append(line)
    return CommentedMap({**fields, "series": series})
