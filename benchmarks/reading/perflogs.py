"""Perflogs as a site has them after years: made up, but with the sizes and repeats of real ones.

May know: contract 2.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Final

import numpy as np

from iobands.model import PERFLOG_HEADER, perflog_line

#: What the site measures: file systems, patterns with their interface, transports, operations.
_FILE_SYSTEMS: Final = (
    ("work1", "hdd"),
    ("work2", "hdd"),
    ("work3", "hdd"),
    ("work4", "hdd"),
    ("nvme", "nvme"),
)
_PATTERNS: Final = (
    ("BenchioFPP", "fpp", "posix"),
    ("BenchioSSF", "ssf", "mpiio"),
    ("BenchioHDF5", "ssf", "hdf5"),
    ("BenchioIndependent", "ssf-independent", "mpiio"),
    ("BenchioNodes", "fpn", "posix"),
)
_TRANSPORTS: Final = (("gnu-ofi", "ofi"), ("gnu-ucx", "ucx"))
_PRESETS: Final = ("default", "site-ssf", "cb-off", "cb-large", "ds-off")
#: The series that one hint preset makes.
PER_PRESET: Final = 100
_VARIABLES: Final = ("write_bw", "read_bw")
#: The day of the newest run.
END: Final = datetime(2026, 11, 20, tzinfo=timezone.utc)
_COLLAPSED: Final = 0.02  # of the runs
#: Each series falls to this factor, for this many days, once in this many days.
_LOSS: Final = 0.7
_LOST_DAYS: Final = 40
_LOST_EVERY: Final = 800


def write_perflogs(directory: Path, series: int, days: int) -> int:
    """Write one run per day of each series, and return the number of rows.

    `series` is rounded down to a multiple of `PER_PRESET`; beyond 500, more file systems are added
    in steps of 500 series.
    """
    draw = np.random.default_rng(1)
    presets = _PRESETS[: series // PER_PRESET]
    times = max(1, series // (PER_PRESET * len(_PRESETS)))
    more = range(len(_FILE_SYSTEMS), times * len(_FILE_SYSTEMS))
    file_systems = (*_FILE_SYSTEMS, *((f"work{number}", "hdd") for number in more))
    written = 0
    for check, pattern, interface in _PATTERNS:
        path = directory / "bench" / "compute" / f"{check}.log"
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("w", encoding="ascii") as log:
            log.write(f"{PERFLOG_HEADER}\n")
            for day in range(1 - days, 1):
                lines = _day(draw, check, pattern, interface, day, file_systems, presets)
                log.write("".join(lines))
                written += len(lines)
    return written


def _day(
    draw: np.random.Generator,
    check: str,
    pattern: str,
    interface: str,
    day: int,
    file_systems: Sequence[tuple[str, str]],
    presets: Sequence[str],
) -> list[str]:
    lines = []
    when = END + timedelta(days=day)
    number = 0
    count = len(file_systems) * len(_TRANSPORTS) * len(presets) * len(_VARIABLES)
    rates = 10 * np.exp(0.15 * draw.standard_normal(count))
    rates[draw.random(count) < _COLLAPSED] /= 5
    rates[(day + _LOST_EVERY // 8 * np.arange(count)) % _LOST_EVERY < _LOST_DAYS] *= _LOSS
    fullness = draw.uniform(40, 80, count)
    load = draw.uniform(0, 2, count)
    first_node = draw.integers(1000, 5000, count)
    for name, medium in file_systems:
        for environ, transport in _TRANSPORTS:
            for preset in presets:
                when += timedelta(seconds=97)
                jobid = 10_000_000 + 1000 * day + number
                node = first_node[number]
                run = {
                    "job_completion_time": f"{when:%Y-%m-%dT%H:%M:%S}+00:00",
                    "result": "pass",
                    "display_name": f"{check} %file_system={name} %environ={environ} "
                    f"%hints={preset}",
                    "hashcode": hash_of(check, name, environ, preset),
                    "system": "bench",
                    "partition": "compute",
                    "environ": environ,
                    "jobid": jobid,
                    "job_nodelist": f"nid[{node:06d}-{node + 15:06d}]",
                    "version": "4.10.4",
                    "suite_version": "0.1.0",
                    "tool": "benchio",
                    "tool_version": "1.0",
                    "pattern": pattern,
                    "interface": interface,
                    "file_system": name,
                    "medium": medium,
                    "file_system_type": "lustre",
                    "stripe_count_asked": -1,
                    "stripe_count": 12,
                    "stripe_size": 1048576,
                    "transport": transport,
                    "transport_in_effect": transport,
                    "hints": preset,
                    "hints_in_effect": "romio_cb_write=enable,cb_nodes=16",
                    "fsync": "true",
                    "cache": "dropped",
                    "nodes": 16,
                    "tasks": 2048,
                    "gib": 64,
                    "fullness_percent": f"{fullness[number]:.1f}",
                    "targets_active": 12,
                    "targets_inactive": 0,
                    "load_per_node": f"{load[number]:.2f}",
                    "other_jobs": 31,
                    "client_written_gib": 64.1,
                    "client_read_gib": 64.2,
                    "band_verdict": "write_bw=within,read_bw=within",
                    "perf_unit": "GiB/s",
                    "perf_ref": 9.5,
                    "perf_lower_thres": -0.5,
                    "perf_result": "pass",
                }
                for variable in _VARIABLES:
                    named = {"perf_var": variable, "perf_value": rates[number % count]}
                    lines.append(f"{perflog_line(run | named)}\n")
                    number += 1
    return lines


def hash_of(*words: str) -> str:
    """Return eight hexadecimal digits, as ReFrame gives each check."""
    value = 0
    for character in "".join(words):
        value = (value * 131 + ord(character)) % 2**32
    return f"{value:08x}"
