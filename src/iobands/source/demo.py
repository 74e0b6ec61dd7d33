"""A made-up site for a first look: a year of two file systems, with an epoch, alerts and gaps.

Everything is drawn at random with a fixed seed; the dates end today.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta, timezone
from functools import partial
from itertools import product
from pathlib import Path
from typing import Final, NamedTuple
from zlib import crc32

import numpy as np

from iobands.model import (
    MADE_UP,
    PERFLOG_HEADER,
    VARIABLE_UNITS,
    __version__,
    perflog_line,
    replace_file,
)
from iobands.snapshot import ACKNOWLEDGE, DOWN, REAL, RESOLVE, Action
from iobands.source.action_log import ACTION_LOG

DAYS: Final = 365

_SEED: Final = 21
_HINTS: Final = {"romio_cb_write": "enable", "cb_config_list": "*:2"}
_PRESET: Final = "more-aggregators"
_SIZE_KIB: Final = 1024
_NODES: Final = 16
_PER_NODE: Final = 128
_MIB: Final = 32
_SCALE: Final = {"nodes": _NODES, "tasks_per_node": _PER_NODE, "mib_per_task": _MIB}
_TARGETS: Final = {"scratch": 12, "fast": 20}
_MEDIUM: Final = {"scratch": "hdd", "fast": "nvme"}
_FULLNESS: Final = {"scratch": (58, 83), "fast": (40, 44)}  # in percent, at the beginning and now
_NOISE: Final = {"scratch": 0.11, "fast": 0.06}  # standard deviation of the logarithm of a rate
_SHARED_NOISE: Final = 0.05  # the same, for all rates of a file system on one day
_OUTLIERS: Final = 0.008
_FAILED: Final = 0.01

# Events, in days before today.
_GAP: Final = (268, 263)
_UPGRADE: Final = 200
_INCIDENT: Final = (131, 128)
_MAINTENANCE: Final = (97, 95)
_REPAIRED: Final = (72, 54)  # a drop that was acknowledged and resolved
_REPAIRED_ALERT: Final = 2  # its number
_DROP: Final = 11  # a target of scratch is lost, and another nearly full
_SLOW: Final = 5  # since then a target of fast is slow
_EXPANDED: Final = 1  # since last night scratch has new targets

_LOST_TARGET: Final = 11
_FULL_TARGET: Final = 3
_FULL_PERCENT: Final = 97.0
_NEW_TARGETS: Final = (12, 13, 14, 15)
_NEW_PERCENT: Final = 0.1
_WEIGHTED_PERCENT: Final = 17  # difference in free space from which emptier targets get more files
_ALIKE: Final = 1.1  # targets are compared if their numbers of files differ by at most a tenth
_SLOW_TARGET: Final = 7
_SLOWNESS: Final = 0.5
_PEER_NOISE: Final = 0.04  # of the logarithm of the speed of a target or a node
_RECORDED: Final = 100  # days with speeds of targets and nodes
_FILES: Final = _NODES * _PER_NODE


class _Check(NamedTuple):
    """A check that runs daily, with the level of each variable on both file systems."""

    name: str
    pattern: str
    stripe_count: int
    transport: str
    hints: str
    scratch: tuple[float, float]
    fast: tuple[float, float]
    variables: tuple[str, str] = ("write_bw", "read_bw")
    tool: str = "benchio"
    first_day: int = DAYS  # days ago


_CHECKS: Final = (
    _Check("BenchioFPP", "fpp", 1, "ofi", "default", (42, 35), (88, 96)),
    _Check("BenchioFPP", "fpp", -1, "ofi", "default", (42, 35), (88, 96)),
    _Check("BenchioSSF", "ssf", 1, "ofi", "default", (0.9, 1.2), (1.6, 2.0)),
    _Check("BenchioSSF", "ssf", -1, "ofi", "default", (6.1, 6.3), (6.4, 9.2)),
    _Check("BenchioSSF", "ssf", -1, "ucx", "default", (6.1, 6.4), (6.4, 9.3)),
    _Check("BenchioSSF", "ssf", -1, "ucx", _PRESET, (9.8, 6.4), (10.1, 9.2)),
    _Check("BenchioSSF", "ssf", -1, "ofi", _PRESET, (9.7, 6.4), (10.2, 9.3), first_day=9),
    _Check("Mdtest", "metadata-easy", 1, "ofi", "default", (31e3, 95e3), (82e3, 240e3),
           ("create_rate", "stat_rate"), "mdtest"),
)  # fmt: skip


def write_demo(directory: Path, now: datetime) -> None:
    """Write perflogs, bands, actions and site file below `directory`, as a site has them.

    The actions name alerts, so the log of alerts must be made before the site is judged.

    Raises:
        OSError: the directory cannot be written.
    """
    end = now.astimezone(timezone.utc).replace(hour=3, minute=30, second=0, microsecond=0)
    end -= timedelta(days=1) if end + timedelta(hours=2) > now else timedelta()
    files = {
        f"config/bands/{MADE_UP}.yaml": _bands_file(end),
        f"config/alerts/{MADE_UP}.jsonl": "".join(f"{ACTION_LOG.line(a)}\n" for a in _actions(end)),
        f"config/systems/{MADE_UP}.py": _SITE_FILE,
    }
    logs: dict[str, list[str]] = {}
    for name, line in _lines(end):
        logs.setdefault(name, [PERFLOG_HEADER]).append(f"\n{line}")
    for name, lines in logs.items():
        files[f"perflogs/{MADE_UP}/compute/{name}.log"] = "".join([*lines, "\n"])
    for name, text in files.items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        replace_file(directory / name, text.encode())


def _lines(end: datetime) -> Iterator[tuple[str, str]]:
    """Yield (name of the check, line of its perflog) in the order of time."""
    draw, draw_peers = (np.random.default_rng(_SEED) for _ in range(2))
    jobid = 1_000_000
    for ago in range(DAYS - 1, -1, -1):
        when = end - timedelta(days=ago)
        session = f"{when:%Y%m%dT%H%M%SZ}-{ago}"
        shared = {name: _SHARED_NOISE * draw.standard_normal() for name in _TARGETS}
        for check, place in product(_CHECKS, _TARGETS):
            when += timedelta(minutes=4, seconds=int(draw.integers(60)))
            jobid += int(draw.integers(1, 40))
            node = 1000 + _NODES * (int(draw.integers(1000, 4000)) % 5)
            noise = _NOISE[place] * draw.standard_normal(2) + shared[place]
            odd = draw.random() if ago else 1.0  # not in the last session
            outlier = draw.uniform(0.3, 0.6) if odd < _OUTLIERS else 1.0
            failed = 0.5 < odd < 0.5 + _FAILED  # noqa: PLR2004
            load, other_jobs = draw.uniform(0, 2), int(draw.poisson(30))
            if ago >= check.first_day or any(b >= ago > e for b, e in (_GAP, _MAINTENANCE)):
                continue
            run = {
                "job_completion_time": when.isoformat(),
                "session": session,
                "jobid": jobid,
                "job_nodelist": f"nid[{node:06d}-{node + _NODES - 1:06d}]",
                "load_per_node": f"{load:.2f}",
                "other_jobs": other_jobs,
                **_settings(check, place, ago),
            }
            if check.pattern == "fpp" and ago < _RECORDED and not failed:
                run |= _speeds(check, place, ago, node, draw_peers)
            if failed:
                run |= {"result": "fail", "fail_phase": "sanity"}
            levels = check.scratch if place == "scratch" else check.fast
            for variable, level, deviation in zip(check.variables, levels, noise, strict=True):
                rate = level * _factor(check, place, variable, ago) * outlier * np.exp(deviation)
                run |= {"perf_var": variable, "perf_unit": VARIABLE_UNITS[variable]}
                run["perf_value"] = "null" if failed else f"{rate:.5g}"
                yield check.name, perflog_line(run)


def _settings(check: _Check, place: str, ago: int) -> dict[str, object]:
    full, count, environ = _targets(place, ago), check.stripe_count, f"gnu-{check.transport}"
    fullest, targets = max(full, key=full.__getitem__), len(full)
    tuned = check.hints == _PRESET
    return {
        "result": "pass",
        "display_name": f"{check.name} %file_system={place} %stripe_count={count} "
        f"%hints={check.hints}",
        "hashcode": f"{crc32(f'{check.name} {place} {count} {environ} {tuned}'.encode()):08x}",
        "system": MADE_UP,
        "partition": "compute",
        "environ": environ,
        "version": "4.10.4",
        "suite_version": __version__,
        "tool": check.tool,
        "tool_version": __version__,
        "pattern": check.pattern,
        "interface": "mpiio" if check.pattern == "ssf" else "posix",
        "file_system": place,
        "medium": _MEDIUM[place],
        "file_system_type": "lustre",
        "stripe_count_asked": count,
        "stripe_count": targets if count < 0 else count,
        "stripe_size": _SIZE_KIB * 1024,
        "striping_command": f"lfs setstripe -c {count} -S {_SIZE_KIB}k",
        "transport": check.transport,
        "transport_in_effect": check.transport,
        "hints": check.hints,
        "hints_in_effect": ",".join(f"{k}={v}" for k, v in _HINTS.items()) if tuned else "null",
        "fsync": "true",
        "cache": "dropped",
        "nodes": _NODES,
        "tasks": _NODES * _PER_NODE,
        "gib": _NODES * _PER_NODE * _MIB // 1024,
        "fullness_percent": f"{sum(full.values()) / targets:.1f}",
        "targets_active": targets,
        "targets_inactive": int(place == "scratch" and ago < _DROP),
        "busiest_target": _busiest(check, full),
        "free_spread_percent": round(_free_spread(full)),
        "fullest_target_percent": round(full[fullest]),
        "fullest_target": f"OST{fullest:04x}",
    }


def _targets(place: str, ago: int) -> dict[int, float]:
    """Return how full each target in service is, in percent."""
    low, high = _FULLNESS[place]
    level = high + (low - high) * ago / DAYS
    full = {number: level + number % 3 - 1 for number in range(_TARGETS[place])}
    if place == "scratch" and ago < _DROP:
        del full[_LOST_TARGET]
        full[_FULL_TARGET] = _FULL_PERCENT
    if place == "scratch" and ago < _EXPANDED:
        full |= dict.fromkeys(_NEW_TARGETS, _NEW_PERCENT)
    return full


def _free_spread(full: Mapping[int, float]) -> float:
    return 100 * (1 - (100 - max(full.values())) / (100 - min(full.values())))


def _files(full: Mapping[int, float]) -> dict[int, int]:
    """Return how many files each target gets: round-robin, or by weight if free space differs."""
    weighted = _free_spread(full) >= _WEIGHTED_PERCENT
    weights = np.array([100 - percent if weighted else 1.0 for percent in full.values()])
    files = (_FILES * weights / weights.sum()).astype(int)
    files[: _FILES - files.sum()] += 1
    return dict(zip(full, files.tolist(), strict=True))


def _busiest(check: _Check, full: Mapping[int, float]) -> object:
    if check.tool != "benchio":
        return "null"
    if (check.pattern, check.stripe_count) != ("fpp", 1):
        return 1.0  # all targets, or one file on one target
    return round(max(_files(full).values()) / -(-_FILES // len(full)), 2)


def _speeds(
    check: _Check, place: str, ago: int, node: int, draw: np.random.Generator
) -> dict[str, str]:
    """Return what a run with a file per process records of targets and nodes."""
    nodes = [f"nid{number:06d}" for number in range(node, node + _NODES)]
    found = {"node_speeds": _text(check, dict.fromkeys(nodes, 1.0), draw)}
    full = _targets(place, ago)
    if check.stripe_count != 1:
        return found | {"targets": _placed(dict.fromkeys(full, _FILES))}
    files = _files(full)
    speeds = {str(number): 1.0 for number in files}
    if place == "fast" and ago < _SLOW:
        speeds[str(_SLOW_TARGET)] = _SLOWNESS
    for number, own in files.items():
        if sum(own / _ALIKE <= each <= own * _ALIKE for each in files.values()) == 1:
            speeds[str(number)] = np.nan  # no other target to compare it with
    return found | {"targets": _placed(files), "target_bandwidths": _text(check, speeds, draw)}


def _placed(files: Mapping[int, int]) -> str:
    """Return how many files lie on each target."""
    return ",".join(f"{number}:{count}" for number, count in files.items())


def _text(check: _Check, speeds: Mapping[str, float], draw: np.random.Generator) -> str:
    """Return the speeds as text, by variable, with the noise of a run."""
    parts = []
    for variable in check.variables:
        noise = np.exp(_PEER_NOISE * draw.standard_normal(len(speeds)))
        listed = (
            f"{name}:{speed * factor:.3g}"
            for (name, speed), factor in zip(speeds.items(), noise, strict=True)
        )
        parts.append(f"{variable}={','.join(listed)}")
    return ";".join(parts)


def _factor(check: _Check, place: str, variable: str, ago: int) -> float:
    """Return the factor by which the events of a day change a rate."""
    is_fpp, is_write = check.pattern == "fpp", variable == "write_bw"
    scratch, fast, stripes = place == "scratch", place == "fast", check.stripe_count
    events = [
        (scratch and ago > _UPGRADE, 0.8),
        # in the first epoch one stripe was better
        (is_fpp and stripes < 0 and is_write and ago > _UPGRADE, 0.85),
        (scratch and _INCIDENT[0] >= ago > _INCIDENT[1], 0.25),
        (fast and variable == "read_bw" and _REPAIRED[0] >= ago > _REPAIRED[1], 0.74),
        (scratch and is_write and ago < _DROP, 0.69),
        (fast and is_fpp and ago < _SLOW, _SLOWNESS),  # a run lasts as long as its slowest rank
    ]
    if is_fpp and stripes == 1 and ago < _EXPANDED:
        before, now = (max(_files(_targets(place, day)).values()) for day in (_EXPANDED, ago))
        events.append((True, before / now))  # as long as its busiest target
    return math.prod(factor for applies, factor in events if applies)


def _bands_file(end: datetime) -> str:
    def at(days: float, hours: float = 0) -> str:
        return (end + timedelta(days=days, hours=hours)).isoformat()

    return f"""\
schema: 5
system: {MADE_UP}
maintenance:
- from: '{at(-_MAINTENANCE[0], -2)}'
  to: '{at(-_MAINTENANCE[1], -18)}'
  reason: 'made up: cooling water'
- from: '{at(9, 4)}'
  to: '{at(9, 14)}'
  reason: 'made up: new disks'
epochs:
- name: upgrade
  since: '{at(-_UPGRADE, -12)}'
  source: made up
  reason: 'made up: new servers and system software on scratch'
  bands: []
"""


def _actions(end: datetime) -> Iterator[Action]:
    since, until = (end - timedelta(days=days, hours=1) for days in _REPAIRED)
    found = end - timedelta(days=_REPAIRED[0] - 6)
    series = ({"file_system": "fast", "variable": "read_bw"},)
    known = partial(Action, who="demo", series=series, since=since, alert=_REPAIRED_ALERT)
    reason = "made up: a switch of fast has lost a link, a spare part is ordered"
    when = found + timedelta(hours=4)
    yield known(ACKNOWLEDGE, when, reason=reason, until=found, direction=DOWN)
    reason, when = "made up: the switch was repaired", until + timedelta(hours=9)
    yield known(RESOLVE, when, reason=reason, until=until, verdict=REAL)


#: A site file (contract 4) that matches no host.
_SITE_FILE: Final = f'''\
"""A made-up site, written by `iobands demo`."""

schema = 4  # of contract 4

HINTS = {_HINTS}


def file_system(name, medium):
    return {{
        "path": f"/lustre/{{name}}",
        "type": "lustre",
        "medium": medium,
        "stripe_counts": [1, -1],
        "striping": {{"size_kib": {_SIZE_KIB}}},
        "min_free_gib": 1024,
    }}


def environment(transport, pml):
    return {{
        "name": f"gnu-{{transport}}",
        "features": [transport],
        "extras": {{"mpi": "openmpi"}},
        "env_vars": [["OMPI_MCA_pml", pml]],
        "prepare_cmds": ["module load gcc openmpi"],
    }}


partition = {{
    "name": "compute",
    "scheduler": "slurm",
    "launcher": "srun",
    "environs": ["gnu-ofi", "gnu-ucx"],
    "features": ["io"],
    "extras": {{
        "filesystems": {{name: file_system(name, medium) for name, medium in {_MEDIUM}.items()}},
        "scales": {{"standard": {_SCALE}}},
        "hint_presets": {{
            "{_PRESET}": {{
                "env_vars": {{"OMPI_MCA_io": "^ompio"}},
                "romio_hints": HINTS,
                "hints": HINTS,
            }}
        }},
        "recommended": [
            {{"pattern": "fpp", "stripe_count": 1, "transport": "ofi", "hints": "default"}},
            {{"pattern": "ssf", "stripe_count": -1, "transport": "ucx", "hints": "{_PRESET}"}},
        ],
    }},
}}
system = {{
    "name": "{MADE_UP}",
    "descr": "A made-up site",
    "hostnames": ["^no host is called so$"],
    "modules_system": "nomod",
    "partitions": [partition],
}}
environments = [environment("ofi", "cm"), environment("ucx", "ucx")]
'''
