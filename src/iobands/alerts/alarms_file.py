"""Reading `config/alarms/<system>.yaml` (contract 5), and saying what is wrong with it.

May know: how such files are read, acts and the contracts' vocabulary; nothing of perflogs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Final

from iobands.alerts.acts import (
    ACKNOWLEDGE,
    ACKNOWLEDGE_COLLAPSES,
    CLOSE,
    KINDS,
    NEW_NORMAL,
    REOPEN,
    Act,
    Acts,
)
from iobands.bands_file import parse_match
from iobands.detection import DOWN, UP
from iobands.vocabulary import SERIES_FIELDS
from iobands.yaml_file import Place, content_of, parse

#: What is written; files of every schema in `SCHEMAS` are read.
SCHEMA: Final = 2
SCHEMAS: Final = (1, 2)

_FILE_KEYS: Final = ("schema", "system", "acts")
_ACT_KEYS: Final = ("act", "when", "who", "reason", "series")
_SPAN: Final = ("since", "until", "direction")
_FURTHER_KEYS: Final = {
    ACKNOWLEDGE: _SPAN,
    ACKNOWLEDGE_COLLAPSES: ("since", "until"),
    CLOSE: _SPAN,
    NEW_NORMAL: ("since",),
    REOPEN: ("of",),
}
_OPTIONS: Final = {
    ACKNOWLEDGE: ("ratio", "on_nodes"),
    CLOSE: ("ratio", "on_nodes"),
    NEW_NORMAL: ("direction", "ratio"),
    REOPEN: (),
}


def load_acts(directory: Path, system: str) -> Acts:
    """Return the acts of `system`, of which there are none where there is no file.

    Raises:
        FileError: the file cannot be read, or breaks contract 5 in any way.
    """
    path = directory / f"{system}.yaml"
    return parse_acts(content_of(path), path) if path.exists() else Acts(system)


def parse_acts(content: bytes, path: Path) -> Acts:
    """Return the acts that `content` says, which stands or shall stand in the file at `path`.

    Raises:
        FileError: as of `load_acts`.
    """
    at = Place(str(path))
    top = at.mapping(parse(content, path), _FILE_KEYS)
    schema = at.schema(top, SCHEMAS)
    system = at.system(top, path)
    acts = [
        _act(item, at.inside(f"act {number}"), system, schema)
        for number, item in enumerate(at.items(top, "acts"), 1)
    ]
    for number, act in enumerate(acts, 1):
        if act.kind == REOPEN and not any(act.of == one.when for one in acts if one is not act):
            raise at.inside(f"act {number}").error("of", "there is no act of that time")
    return Acts(system, tuple(sorted(acts, key=lambda act: act.when)))


def _act(item: object, at: Place, system: str, schema: int) -> Act:
    kind = item.get("act") if isinstance(item, dict) else None
    known = [each for each in KINDS if schema > 1 or each != ACKNOWLEDGE_COLLAPSES]
    if isinstance(item, dict) and kind not in known:
        raise at.error("act", f"is {kind!r}; known are {', '.join(known)}")
    further: Sequence[str] = _FURTHER_KEYS.get(str(kind), ())
    fields = at.mapping(item, (*_ACT_KEYS, *further), _OPTIONS.get(str(kind), ()))
    series = at.items(fields, "series")
    if not series:
        raise at.error("series", "names none")
    times = {
        name: at.time(fields, name).astimezone(timezone.utc) if name in fields else None
        for name in ("when", "since", "until", "of")
    }
    when, since, until = times["when"], times["since"], times["until"]
    assert when is not None
    if since and until and since > until:
        raise at.error("since", f"is after until, {until.isoformat()}")
    direction = fields.get("direction")
    if direction not in {None, DOWN, UP}:
        raise at.error("direction", f"is {direction!r}; known are {DOWN}, {UP}")
    return Act(
        kind=str(kind),
        when=when,
        who=at.text(fields, "who"),
        reason=at.text(fields, "reason"),
        series=tuple(
            parse_match(one, at.inside(f"series {number}"), system, (*SERIES_FIELDS, "variable"))
            for number, one in enumerate(series, 1)
        ),
        since=since,
        until=until,
        direction=None if direction is None else str(direction),
        ratio=at.optional_positive(fields, "ratio"),
        of=times["of"],
        on_nodes=_nodes(fields, at),
    )


def _nodes(fields: Mapping[str, object], at: Place) -> tuple[str, ...]:
    if "on_nodes" not in fields:
        return ()
    named = at.items(fields, "on_nodes")
    if not named:
        raise at.error("on_nodes", "names none; leave it out where it is about all runs")
    return tuple(at.inside("on_nodes").text({"node": name}, "node") for name in named)


def future_text(act: Act, now: datetime) -> str:
    """Return why `act` does not hold, which is of the future."""
    return (
        f"the act of {act.when.isoformat()} ({act.kind}, by {act.who}) is of the future and does "
        f"not hold yet: it is {now.isoformat()} now; correct the time or the clock"
    )
