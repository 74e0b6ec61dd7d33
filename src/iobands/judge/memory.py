"""The judge's memory: the part of each series' chart that later runs cannot change.

The next judgement continues from it, so it costs a day and not all years before. It is a cache and
may be deleted at any time: a series whose entry does not match its runs, band, monthly thresholds
and priors, or this version of the judge, is judged from its first run.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np

from iobands.judge.detect import (
    Array,
    Baseline,
    Chart,
    Detector,
    Month,
    Quartiles,
    Settled,
    Spacing,
)
from iobands.model import SeriesKey, grouped_by, path_part
from iobands.source.kept import read_sealed, write_sealed

_NAME: Final = "judged.memory"
_DIGEST: Final = 32  # bytes


@dataclass(frozen=True)
class Remembered:
    """The settled part of a series' chart, and the `identity` (a digest) of its inputs."""

    identity: bytes
    settled: Settled


@dataclass(frozen=True)
class Basis:
    """The inputs of a chart: runs, band, threshold and prior of each month, and least change."""

    values: Array
    spacing: Spacing
    band: Quartiles | None
    months: Sequence[Month]
    least: float

    def chart(self, kept: Remembered | None = None) -> Chart:
        """Return the chart, continued from `kept` if that has the same inputs."""
        values, baseline = np.log(self.values), Baseline(band=self.band)
        settled = self.settled(kept)
        return Detector(values, self.spacing, baseline, self.months, self.least, settled).chart()

    def settled(self, kept: Remembered | None) -> Settled | None:
        """Return the kept state if it has the same inputs up to its last run, else None."""
        if kept is None or kept.settled.at > len(self.values):
            return None
        return kept.settled if kept.identity == self.identity(kept.settled.at) else None

    def identity(self, runs: int) -> bytes:
        """Return the digest of the inputs up to the first `runs` runs."""
        known = [each for each in self.months if each.first < runs]
        found = hashlib.blake2b(_encoded((self.band, known, self.least)), digest_size=_DIGEST)
        for each in (self.values, self.spacing.hours, self.spacing.asked):
            found.update(each[:runs].tobytes())
        return found.digest()


def read_memory(perflogs: Path) -> dict[SeriesKey, Remembered]:
    """Return the memory of all systems, without files that cannot be used."""
    found: dict[SeriesKey, Remembered] = {}
    for path in perflogs.glob(f"*/{_NAME}"):
        found.update(read_sealed(path, _decoded) or ())
    return found


def write_memory(perflogs: Path, memory: Mapping[SeriesKey, Remembered]) -> None:
    """Write the memory, one file for each system.

    Raises:
        OSError: a file cannot be written.
    """
    for system, found in grouped_by(memory.items(), lambda each: each[0].system).items():
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
