"""Adding an epoch to a bands file as people keep it: comments, order and old epochs stay.

May know: ruamel.yaml, contract 3 and its reader; nothing of how a band was found.
"""

from __future__ import annotations

import difflib
import io
import os
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any, Final

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.error import YAMLError

from iobands.bands import Band, Epoch
from iobands.bands_file import SCHEMA, BandsError, parse_bands
from iobands.vocabulary import canonical

_NEW: Final = """\
# The bands of {system}, as docs/contracts.md has them. `iobands calibrate` adds to this file.
schema: {schema}
system: {system}
epochs: []
"""
_READABLE: Final = 0o666


@dataclass(frozen=True)
class Change:
    """What shall become of the bands file at `path`; `before` is None where there is no file."""

    path: Path
    before: bytes | None
    after: bytes

    def diff(self) -> str:
        """Return the change as a unified diff."""
        old = (self.before or b"").decode("utf-8-sig").splitlines(keepends=True)
        new = self.after.decode("utf-8-sig").splitlines(keepends=True)
        name = str(self.path)
        lines = difflib.unified_diff(old, new, name if self.before else "/dev/null", name)
        return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)

    def write(self) -> None:
        """Put the new file in the place of the old one, whole or not at all.

        Raises:
            BandsError: the file was changed by somebody else meanwhile, or cannot be written.
        """
        path = self.path.resolve()  # of a link the file is written, and the link stays
        try:
            if _content(path) != self.before:
                raise BandsError(f"{self.path}: was changed meanwhile; try again")
            path.parent.mkdir(parents=True, exist_ok=True)
            mode = (
                path.stat().st_mode & 0o7777 if self.before is not None else _READABLE & ~_umask()
            )
            with NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as new:
                try:
                    new.write(self.after)
                    new.flush()
                    os.fsync(new.fileno())
                    Path(new.name).chmod(mode)
                    Path(new.name).replace(path)
                except BaseException:
                    Path(new.name).unlink(missing_ok=True)
                    raise
        except OSError as error:
            raise BandsError(f"{self.path}: cannot be written: {error.strerror}") from error


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
        BandsError: the file cannot be read, or what it would become breaks contract 3.
    """
    try:
        before = _content(path)
    except OSError as error:
        raise BandsError(f"{path}: cannot be read: {error.strerror}") from error
    text = _NEW.format(system=system, schema=SCHEMA) if before is None else _text(before, path)
    yaml = _yaml(text)
    document = yaml.load(text)
    document["schema"] = SCHEMA
    epochs = document["epochs"]
    if not epochs:  # `[]` is written in the flow style, and so would be all that is added
        document["epochs"] = epochs = CommentedSeq()
    own = {_identity(band.match) for band in epoch.bands}
    carried = [_carried(document, band) for band in kept if _identity(band.match) not in own]
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
    after = _dumped(yaml, document).encode()
    if before is not None and before.startswith(b"\xef\xbb\xbf"):
        after = b"\xef\xbb\xbf" + after
    parse_bands(after, path)
    return Change(path, before, after)


def free_name(wanted: str, taken: Iterable[str]) -> str:
    """Return `wanted`, or with the first number from 2 behind it that makes it a new name."""
    names = set(taken)
    name, number = wanted, 1
    while name in names:
        number += 1
        name = f"{wanted}-{number}"
    return name


def _content(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def _text(content: bytes, path: Path) -> str:
    parse_bands(content, path)  # says what is wrong far better than ruamel.yaml would
    return content.decode("utf-8-sig")


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _yaml(text: str) -> YAML:
    """Return the round trip, out of the usual ways to indent, that changes `text` least."""
    lines = text.splitlines()

    def changed(yaml: YAML) -> int:
        try:
            again = _dumped(yaml, yaml.load(text)).splitlines()
        except YAMLError as error:
            raise BandsError(f"cannot be kept as it is written: {error}") from error
        return sum(line[0] in "+-" for line in difflib.unified_diff(lines, again, n=0))

    return min((_round_trip(4, 2), _round_trip(2, 0), _round_trip(6, 4)), key=changed)


def _round_trip(sequence: int, offset: int) -> YAML:
    yaml = YAML()
    yaml.preserve_quotes = True
    yaml.width = 2**20  # no line is wrapped that was not
    yaml.indent(mapping=2, sequence=sequence, offset=offset)
    # the contract's own spelling; ruamel.yaml writes nothing at all
    yaml.representer.add_representer(
        type(None), lambda out, _: out.represent_scalar("tag:yaml.org,2002:null", "null")
    )
    return yaml


def _dumped(yaml: YAML, document: object) -> str:
    out = io.StringIO()
    yaml.dump(document, out)
    return out.getvalue()


def _identity(match: Mapping[str, object]) -> frozenset[tuple[str, object]]:
    return frozenset((name, canonical(value)) for name, value in match.items())


def _carried(document: Mapping[str, Any], band: Band) -> CommentedMap:
    """Return a copy of `band` as the file has it, which tells its source itself."""
    epoch = next(one for one in document["epochs"] if one["name"] == band.epoch)
    wanted = _identity(band.match)
    node = deepcopy(next(one for one in epoch["bands"] if _identity(one["match"]) == wanted))
    if "source" not in node:  # not at the end, where a comment on what follows would come before it
        node.insert(list(node).index("unit") + 1, "source", band.source)
    return node


def _written(band: Band) -> CommentedMap:
    fields: dict[str, Any] = {
        "match": CommentedMap({name: _plain(value) for name, value in band.match.items()}),
        "unit": band.unit,
        "lower_quartile": _plain(band.lower_quartile),
        "median": _plain(band.median),
        "upper_quartile": _plain(band.upper_quartile),
        "maximum": _plain(band.maximum),
        "floor": _plain(band.floor),
        "runs": band.runs,
    }
    if band.state:
        fields["state"] = band.state
    if band.intervals:
        fields["intervals"] = CommentedMap(
            {name: _flow([_plain(end) for end in pair]) for name, pair in band.intervals.items()}
        )
    return CommentedMap(fields)


def _flow(values: Sequence[object]) -> CommentedSeq:
    found = CommentedSeq(values)
    found.fa.set_flow_style()
    return found


def _plain(value: object) -> object:
    """Return whole numbers without a fraction, as people write them."""
    return int(value) if isinstance(value, float) and value.is_integer() else value
