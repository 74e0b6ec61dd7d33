"""The judge's memory: what it found in each series that more runs do not change.

A new day is judged from there, so that it costs a day and not all years before it. The memory may
be deleted at any time, as everything in it follows from the runs: what does not fit the runs, the
bands, what was known or this version of the judge is judged anew.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np

from iobands.judge.detect import Array, Chart, Month, Quartiles, Settled, Spacing, follow
from iobands.model import SeriesKey, path_part
from iobands.source.kept import read_sealed, write_sealed

_NAME: Final = "judged.memory"
_DIGEST: Final = 32  # bytes


@dataclass(frozen=True)
class Remembered:
    """The settled part of a series' chart, and the `identity` of what it follows from."""

    identity: bytes
    settled: Settled


@dataclass(frozen=True)
class Basis:
    """What a chart follows from: its runs, its band, what was known each month, and `least`."""

    values: Array
    spacing: Spacing
    band: Quartiles | None
    months: Sequence[Month]
    least: float

    def chart(self, kept: Remembered | None = None) -> Chart:
        """Return the chart; it goes on from what was kept, if that fits."""
        return follow(
            self.values,
            self.band,
            least=self.least,
            months=self.months,
            spacing=self.spacing,
            settled=self.settled(kept),
        )

    def settled(self, kept: Remembered | None) -> Settled | None:
        """Return what was kept if it follows from the first of these runs, else None."""
        if kept is None or kept.settled.at > len(self.values):
            return None
        return kept.settled if kept.identity == self.identity(kept.settled.at) else None

    def identity(self, runs: int) -> bytes:
        """Return the digest of what was known of the first `runs` runs."""
        known = [each for each in self.months if each.first < runs]
        found = hashlib.blake2b(_encoded((self.band, known, self.least)), digest_size=_DIGEST)
        for each in (self.values, self.spacing.hours, self.spacing.asked):
            found.update(each[:runs].tobytes())
        return found.digest()


def read_memory(perflogs: Path) -> dict[SeriesKey, Remembered]:
    """Return what the judge remembers of all systems; nothing of what cannot be used."""
    found: dict[SeriesKey, Remembered] = {}
    for path in perflogs.glob(f"*/{_NAME}"):
        found.update(read_sealed(path, _decoded) or ())
    return found


def write_memory(perflogs: Path, memory: Mapping[SeriesKey, Remembered]) -> None:
    """Write what the judge remembers, in a file a system.

    Raises:
        OSError: it cannot be written.
    """
    systems: defaultdict[str, list[tuple[SeriesKey, Remembered]]] = defaultdict(list)
    for key, each in memory.items():
        systems[key.system].append((key, each))
    for system, found in systems.items():
        write_sealed(perflogs / path_part(system) / _NAME, _encoded(found))


def _encoded(value: object) -> bytes:
    return msgspec.msgpack.encode(value, enc_hook=_of_array)


def _decoded(body: bytes) -> list[tuple[SeriesKey, Remembered]]:
    kept = list[tuple[SeriesKey, Remembered]]
    return msgspec.msgpack.decode(body, type=kept, dec_hook=_restored)


def _of_array(value: object) -> tuple[str, Sequence[int], bytes]:
    assert isinstance(value, np.ndarray)
    return value.dtype.str, value.shape, value.tobytes()


def _restored(type_: Any, value: Any) -> object:  # noqa: ANN401 (as msgspec calls it)
    kind, shape, content = value
    return np.frombuffer(content, kind).reshape(shape)
