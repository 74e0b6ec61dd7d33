"""Adding an epoch to a bands file as people keep it: comments, order and old epochs stay.

May know: ruamel.yaml, contract 3 and its reader; nothing of how a band was found.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any, Final

from ruamel.yaml.comments import CommentedMap, CommentedSeq

from iobands.bands import Band, Epoch, parse_bands
from iobands.bands.file import SCHEMA
from iobands.vocabulary import canonical
from iobands.yaml_change import Change, Document, plain

_NEW: Final = """\
# The bands of {system}, as docs/contracts.md has them. `iobands calibrate` adds to this file.
schema: {schema}
system: {system}
epochs: []
"""


def added(
    path: Path,
    system: str,
    epoch: Epoch,
    *,
    kept: Sequence[Band] = (),
) -> Change:
    """Return the change that adds `epoch` to the bands file at `path`, which need not exist.

    `kept` are bands of the file that hold in the new epoch too, as far as none of its own has
    the same `match`; they stay as they are written, with the source that they had.

    Raises:
        FileError: the file cannot be read, or what it would become breaks contract 3.
    """
    document = Document(path, _NEW.format(system=system, schema=SCHEMA), parse_bands)
    document.content["schema"] = max(document.content["schema"], SCHEMA)
    epochs = document.items("epochs")
    own = {_identity(band.match) for band in epoch.bands}
    carried = [_carried(epochs, band) for band in kept if _identity(band.match) not in own]
    fields: dict[str, Any] = {
        "name": epoch.name,
        "since": epoch.since.isoformat(),
        "source": epoch.source,
    }
    if epoch.reason:
        fields["reason"] = epoch.reason
    if epoch.continues:
        fields["continues"] = True
    bands = CommentedSeq([*carried, *(_written(band) for band in epoch.bands)])
    if not bands:
        bands.fa.set_flow_style()
    epochs.append(CommentedMap({**fields, "bands": bands}))
    return document.change()


def free_name(wanted: str, taken: Iterable[str]) -> str:
    """Return `wanted`, or with the first number from 2 behind it that makes it a new name."""
    names = set(taken)
    name, number = wanted, 1
    while name in names:
        number += 1
        name = f"{wanted}-{number}"
    return name


def _identity(match: Mapping[str, object]) -> frozenset[tuple[str, object]]:
    return frozenset((name, canonical(value)) for name, value in match.items())


def _carried(epochs: Iterable[Mapping[str, Any]], band: Band) -> CommentedMap:
    """Return a copy of `band` as the file has it, which tells its source itself."""
    epoch = next(one for one in epochs if one["name"] == band.epoch)
    wanted = _identity(band.match)
    node = deepcopy(next(one for one in epoch["bands"] if _identity(one["match"]) == wanted))
    if "source" not in node:  # not at the end, where a comment on what follows would come before it
        node.insert(list(node).index("unit") + 1, "source", band.source)
    return node


def _written(band: Band) -> CommentedMap:
    fields: dict[str, Any] = {
        "match": CommentedMap({name: plain(value) for name, value in band.match.items()}),
        "unit": band.unit,
        "lower_quartile": plain(band.lower_quartile),
        "median": plain(band.median),
        "upper_quartile": plain(band.upper_quartile),
        "maximum": plain(band.maximum),
        "floor": plain(band.floor),
        "runs": band.runs,
    }
    if band.state:
        fields["state"] = band.state
    if band.intervals:
        fields["intervals"] = CommentedMap(
            {name: _flow([plain(end) for end in pair]) for name, pair in band.intervals.items()}
        )
    return CommentedMap(fields)


def _flow(values: Sequence[object]) -> CommentedSeq:
    found = CommentedSeq(values)
    found.fa.set_flow_style()
    return found
