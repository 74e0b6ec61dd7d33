"""Series: which samples belong together, and the names of series."""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from operator import attrgetter
from typing import Final, TypeVar

from iobands.model.fields import RATIO_UNIT, SERIES_FIELDS, VARIABLE_UNITS
from iobands.model.files import FileError

# The fields that a label adds to file system, pattern and variable if series differ in them.
_FURTHER: Final = (
    "case", "stripe_count_asked", "transport", "environ", "hints", "interface", "tool", "nodes",
    "tasks", "gib", "partition", "system",
)  # fmt: skip
#: The system of `iobands demo`. Every view says that it was not measured.
MADE_UP: Final = "made-up-site"
#: The stripe count that stands for all targets.
ALL_TARGETS: Final = -1
_Item = TypeVar("_Item")
_Group = TypeVar("_Group", bound=Hashable)
_SLUG_LENGTH: Final = 120  # file systems allow 255
#: A name that is safe as one part of a path: files are found, and site files run, by names.
PATH_PART: Final = r"^[^./\x00-\x20\x7f-][^/\x00-\x1f\x7f]{0,199}$"


@dataclass(frozen=True)
class SeriesKey:
    """One variable at one combination of the series fields; `gib` is in GiB."""

    system: str
    partition: str
    environ: str | None
    tool: str | None
    pattern: str | None
    interface: str | None
    file_system: str | None
    stripe_count_asked: float | None
    transport: str | None
    hints: str | None
    nodes: float | None
    tasks: float | None
    gib: float | None
    variable: str
    case: str | None = None

    def __hash__(self) -> int:
        """Return the hash, which is computed only once: a key is looked up a hundred times."""
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash(tuple(vars(self).values()))

    @property
    def unit(self) -> str:
        """The unit of the values."""
        return VARIABLE_UNITS[self.variable]

    @property
    def symbol(self) -> str:
        """What a text puts after a value: its unit, or × for a ratio."""
        return "×" if self.unit == RATIO_UNIT else self.unit

    def fields(self) -> dict[str, object]:
        """Return the series fields and `variable`, as `Bands.band_for` takes them."""
        return {name: getattr(self, name) for name in (*SERIES_FIELDS, "variable")}

    def sort_key(self) -> tuple[str, ...]:
        """Return a sort key: system, partition, file system, pattern, variable, then the rest."""
        order = ("system", "partition", "file_system", "pattern", "variable", *_FURTHER)
        values = (getattr(self, name) for name in order)
        # numbers by size, and missing values first
        return tuple(f"{v:020.6f}" if isinstance(v, int | float) else str(v or "") for v in values)


def labels(keys: Iterable[SeriesKey]) -> dict[SeriesKey, str]:
    """Return a short name for each series, such as `disk fpp write_bw`.

    It names a further field only if series would otherwise share a name, and a case only for the
    series of a case, so that measuring a case does not rename the daily series.
    """
    words = distinctions(keys)
    return {
        key: " ".join([key.file_system or "none", key.pattern or "none", *words[key], key.variable])
        for key in words
    }


def distinctions(keys: Iterable[SeriesKey]) -> dict[SeriesKey, list[str]]:
    """Return for each series the words that tell it from others of its file system and pattern."""
    alike = grouped_by(keys, lambda key: (key.file_system, key.pattern, key.variable))
    found = {}
    for group in alike.values():
        distinguishing = _distinguishing(group)
        for key in group:
            names = [name for name in distinguishing if name != "case" or key.case]
            found[key] = [_word(name, getattr(key, name)) for name in names]
    return found


def grouped_by(items: Iterable[_Item], of: Callable[[_Item], _Group]) -> dict[_Group, list[_Item]]:
    """Return the items by what `of` returns for them; all are in the order of appearance."""
    found: defaultdict[_Group, list[_Item]] = defaultdict(list)
    for each in items:
        found[of(each)].append(each)
    return dict(found)


def path_part(name: str) -> str:
    """Return the name of a system, partition or check as one part of a path.

    Raises:
        FileError: it leads to another directory, or is not a file name.
    """
    if not re.fullmatch(PATH_PART, name):
        raise FileError(f"{name[:60]!r} cannot be a part of a path")
    return name


def check_name(display_name: str) -> str:
    """Return the name of a check without what ReFrame's --repeat, --distribute and -P add."""
    return re.sub(r" %\.\w+=\S*", "", display_name)


@lru_cache(2**14)
def slug(key: SeriesKey) -> str:
    """Return a file name for the series that does not depend on which other series exist."""
    *values, case = (getattr(key, name) for name in SeriesKey.__dataclass_fields__)
    values += [case] if case else []  # a field that came later: older names stay as they were
    text = "-".join("none" if value is None else _number(value) for value in values)
    readable = re.sub(r"[^A-Za-z0-9._-]", "_", text)
    # only here might another series give the same text; all other names stay as they were
    if "-" in key.partition or "none" in values:
        text = repr(values)
    digest = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
    return f"{readable[:_SLUG_LENGTH]}-{digest[:8]}"


def _distinguishing(group: Sequence[SeriesKey]) -> list[str]:
    """Return the fewest fields that distinguish all series of `group`."""

    def distinct(names: Sequence[str]) -> int:
        return len(set(map(attrgetter(*names), group))) if names else 1

    chosen: list[str] = []
    most = 1
    for name in _FURTHER:
        if (found := distinct([*chosen, name])) > most:
            chosen, most = [*chosen, name], found
    # an environment may imply the transport, which a label then need not repeat
    for name in list(chosen):
        fewer = [other for other in chosen if other != name]
        if distinct(fewer) == most:
            chosen = fewer
    return chosen


def _word(name: str, value: object) -> str:
    if name == "stripe_count_asked":
        if value is None:
            return "unstriped"
        return "stripes=all" if value == ALL_TARGETS else f"stripes={_number(value)}"
    if name in {"transport", "environ", "hints"} and value not in {None, "default"}:
        return str(value)  # a name of its own, which needs no heading
    return f"{name}={'none' if value is None else _number(value)}"


def _number(value: object) -> str:
    # from a million on, the short form has too few digits
    if isinstance(value, float):
        return f"{value:g}" if abs(value) < 10**6 else f"{value:.17g}"
    return str(value)


TARGET: Final = "target"
NODE: Final = "node"

#: The field that groups peers.
FIELD_OF: Final = {TARGET: "file_system", NODE: "partition"}


@dataclass(frozen=True)
class PeerName:
    """A target or a node: `where` is its file system or partition."""

    kind: str
    system: str
    where: str
    name: str
