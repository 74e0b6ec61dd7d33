"""The peak memory of a rank over its share of the data."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from benchmarks import benchio, peak
from benchmarks.benchio import SLAB
from benchmarks.errors import BenchmarkError
from benchmarks.launch import run_ranks
from benchmarks.workload import MIB, Workload

# So small that only the program's own memory counts.
_TINY_SHARE: Final = MIB


def peak_ratio(program: Path, workload: Workload, layer: str, slab: bool, directory: Path) -> float:
    """Return the peak memory of the largest rank, as a multiple of its share of the data.

    The data are written, read and verified. The memory that the program and its libraries take for
    any array size is found by the same run with a tiny array, and subtracted. The memory that
    libraries take only for a large array, such as collective buffers, is included.
    """
    tiny = replace(workload, share=_TINY_SHARE)
    if workload.share <= tiny.share:
        raise BenchmarkError("the volume is too small to tell the memory of the data")
    more = _peak(program, workload, layer, slab, directory) - _peak(
        program, tiny, layer, slab, directory
    )
    return more / (workload.share - tiny.share)


def _peak(program: Path, workload: Workload, layer: str, slab: bool, directory: Path) -> int:
    """Return the largest peak of any rank in bytes."""
    base = benchio.command(program, workload, layer, *([SLAB] if slab else []))
    with TemporaryDirectory(dir=directory) as scratch:
        wrapper = [sys.executable, peak.__file__, scratch]
        run_ranks(workload.ranks, [*wrapper, *base, f"--directory={scratch}", "--verify"])
        peaks = [int(path.read_text()) for path in Path(scratch).glob("*.bytes")]
    if len(peaks) != workload.ranks:
        raise BenchmarkError(f"{len(peaks)} of {workload.ranks} ranks reported their peak memory")
    return max(peaks)
