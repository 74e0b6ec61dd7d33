"""A made-up site for a first look: a year of two file systems, with an epoch, alerts and gaps.

Everything is drawn at random with a fixed seed; the dates end today.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Final
from zlib import crc32

import numpy as np

from iobands.model import MADE_UP, PERFLOG_HEADER, VARIABLE_UNITS, perflog_line
from iobands.snapshot import ACKNOWLEDGE, DOWN, REAL, RESOLVE, Action
from iobands.source.action_log import as_line

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
_NOISE: Final = {"scratch": 0.11, "fast": 0.06}  # of the logarithm of a rate
_SHARED_NOISE: Final = 0.05  # of all rates of a file system on one day
_OUTLIERS: Final = 0.008
_FAILED: Final = 0.01

# Events, in days before today.
_GAP: Final = (268, 263)
_UPGRADE: Final = 200
_INCIDENT: Final = (131, 128)
_MAINTENANCE: Final = (97, 95)
_REPAIRED: Final = (72, 54)  # a drop that was acknowledged and resolved
_DROP: Final = 11  # a target of scratch is lost, and another nearly full
_SLOW: Final = 5  # since then a target of fast is slow
_EXPANDED: Final = 1  # since last night scratch has new targets

_LOST_TARGET: Final = 11
_FULL_TARGET: Final = 3
_FULL_PERCENT: Final = 97.0
_NEW_TARGETS: Final = (12, 13, 14, 15)
_NEW_PERCENT: Final = 0.1
_WEIGHTED_PERCENT: Final = 17  # of difference in free space: emptier targets get more files
_ALIKE: Final = 1.1  # targets are compared if their numbers of files differ by at most a tenth
_SLOW_TARGET: Final = 7
_SLOWNESS: Final = 0.5
_PEER_NOISE: Final = 0.04  # of the logarithm of the speed of a target or a node
_RECORDED: Final = 100  # days ago
_FILES: Final = _NODES * _PER_NODE


@dataclass(frozen=True)
class _Check:
    """A check that runs daily; `rates` has the level of each variable by file system."""

    name: str
    pattern: str
    interface: str
    stripe_count: int
    transport: str
    hints: str
    rates: Mapping[str, Mapping[str, float]]
    tool: str = "benchio"
    first_day: int = DAYS  # days ago


def _rates(scratch: tuple[float, float], fast: tuple[float, float]) -> dict[str, dict[str, float]]:
    """Return the write and read rates of two file systems in GiB/s."""
    return {
        "write_bw": {"scratch": scratch[0], "fast": fast[0]},
        "read_bw": {"scratch": scratch[1], "fast": fast[1]},
    }


# fmt: off
_CHECKS: Final = (
    _Check("BenchioFPP", "fpp", "posix", 1, "ofi", "default", _rates((42, 35), (88, 96))),
    _Check("BenchioFPP", "fpp", "posix", -1, "ofi", "default", _rates((42, 35), (88, 96))),
    _Check("BenchioSSF", "ssf", "mpiio", 1, "ofi", "default", _rates((0.9, 1.2), (1.6, 2.0))),
    _Check("BenchioSSF", "ssf", "mpiio", -1, "ofi", "default", _rates((6.1, 6.3), (6.4, 9.2))),
    _Check("BenchioSSF", "ssf", "mpiio", -1, "ucx", "default", _rates((6.1, 6.4), (6.4, 9.3))),
    _Check("BenchioSSF", "ssf", "mpiio", -1, "ucx", _PRESET, _rates((9.8, 6.4), (10.1, 9.2))),
    _Check("BenchioSSF", "ssf", "mpiio", -1, "ofi", _PRESET, _rates((9.7, 6.4), (10.2, 9.3)),
           first_day=9),
    _Check("Mdtest", "metadata-easy", "posix", 1, "ofi", "default", {
        "create_rate": {"scratch": 31_000, "fast": 82_000},
        "stat_rate": {"scratch": 95_000, "fast": 240_000},
    }, tool="mdtest"),
)
# fmt: on


def write_demo(directory: Path, now: datetime) -> None:
    """Write perflogs, bands, actions and site file below `directory`, as a site has them.

    Raises:
        OSError: the directory cannot be written.
    """
    config = directory / "config"
    perflogs = directory / "perflogs" / MADE_UP / "compute"
    for path in (perflogs, *(config / name for name in ("bands", "alerts", "systems"))):
        path.mkdir(parents=True, exist_ok=True)
    end = now.astimezone(timezone.utc).replace(hour=3, minute=30, second=0, microsecond=0)
    end -= timedelta(days=1) if end + timedelta(hours=2) > now else timedelta()
    lines: dict[str, list[str]] = {check.name: [] for check in _CHECKS}
    for name, line in _lines(end):
        lines[name].append(line)
    for name, found in lines.items():
        text = "\n".join([PERFLOG_HEADER, *found])
        (perflogs / f"{name}.log").write_text(f"{text}\n", encoding="utf-8")
    (config / "bands" / f"{MADE_UP}.yaml").write_text(_bands_file(end), encoding="utf-8")
    actions = "".join(f"{as_line(action)}\n" for action in _actions(end))
    (config / "alerts" / f"{MADE_UP}.jsonl").write_text(actions, encoding="utf-8")
    (config / "systems" / f"{MADE_UP}.py").write_text(_SITE_FILE, encoding="utf-8")


def _lines(end: datetime) -> Iterator[tuple[str, str]]:
    """Yield the lines of each check in the order of time."""
    draw = np.random.default_rng(_SEED)
    draw_peers = np.random.default_rng(_SEED)
    jobid = 1_000_000
    for ago in range(DAYS - 1, -1, -1):
        when = end - timedelta(days=ago)
        shared = {name: _SHARED_NOISE * draw.standard_normal() for name in _TARGETS}
        for check in _CHECKS:
            for place in _TARGETS:
                when += timedelta(minutes=4, seconds=int(draw.integers(60)))
                jobid += int(draw.integers(1, 40))
                node = 1000 + _NODES * (int(draw.integers(1000, 4000)) % 5)
                noise = _NOISE[place] * draw.standard_normal(len(check.rates)) + shared[place]
                odd = draw.random() if ago else 1.0  # not in the last session
                outlier = draw.uniform(0.3, 0.6) if odd < _OUTLIERS else 1.0
                failed = 0.5 < odd < 0.5 + _FAILED  # noqa: PLR2004
                beside = (draw.uniform(0, 2), int(draw.poisson(30)))
                if ago >= check.first_day or any(
                    begin >= ago > after for begin, after in (_GAP, _MAINTENANCE)
                ):
                    continue
                run = {
                    "job_completion_time": when.isoformat(),
                    "session": f"{end - timedelta(days=ago):%Y%m%dT%H%M%SZ}-{ago}",
                    "jobid": jobid,
                    "job_nodelist": f"nid[{node:06d}-{node + _NODES - 1:06d}]",
                    "load_per_node": f"{beside[0]:.2f}",
                    "other_jobs": beside[1],
                    **_settings(check, place, ago),
                }
                if check.pattern == "fpp" and ago < _RECORDED and not failed:
                    run |= _speeds(check, place, ago, node, draw_peers)
                if failed:
                    run |= {"result": "fail", "fail_phase": "sanity"}
                for (variable, levels), deviation in zip(check.rates.items(), noise, strict=True):
                    rate = levels[place] * _factor(check, place, variable, ago) * outlier
                    value = "null" if failed else f"{rate * np.exp(deviation):.5g}"
                    unit = VARIABLE_UNITS[variable]
                    named = {"perf_var": variable, "perf_value": value, "perf_unit": unit}
                    yield check.name, perflog_line(run | named)


def _settings(check: _Check, place: str, ago: int) -> dict[str, object]:
    full = _targets(place, ago)
    fullest = max(full, key=full.__getitem__)
    targets = len(full)
    tuned = check.hints == _PRESET
    environ, count = f"gnu-{check.transport}", check.stripe_count
    return {
        "result": "pass",
        "display_name": f"{check.name} %file_system={place} %stripe_count={count} "
        f"%hints={check.hints}",
        "hashcode": f"{crc32(f'{check.name} {place} {count} {environ} {tuned}'.encode()):08x}",
        "system": MADE_UP,
        "partition": "compute",
        "environ": environ,
        "version": "4.10.4",
        "suite_version": "0.1.0",
        "tool": check.tool,
        "tool_version": "1.0",
        "pattern": check.pattern,
        "interface": check.interface,
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
    """Return how much less is free on the fullest target than on the emptiest one, in percent."""
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
        return found | {"targets": _spans(dict.fromkeys(full, _FILES))}
    files = _files(full)
    speeds = {str(number): 1.0 for number in files}
    if place == "fast" and ago < _SLOW:
        speeds[str(_SLOW_TARGET)] = _SLOWNESS
    for number, own in files.items():
        if sum(own / _ALIKE <= each <= own * _ALIKE for each in files.values()) == 1:
            speeds[str(number)] = np.nan  # there is no other one to compare it with
    return found | {"targets": _spans(files), "target_bandwidths": _text(check, speeds, draw)}


def _spans(files: Mapping[int, int]) -> str:
    """Return how many files lie on each target; equal neighbours are written as one range."""
    spans: list[tuple[int, int, int]] = []
    for number, count in files.items():
        first = number
        if spans and spans[-1][1:] == (number - 1, count):
            first = spans.pop()[0]
        spans.append((first, number, count))
    return ",".join(
        f"{first}-{last}:{count}" if first < last else f"{first}:{count}"
        for first, last, count in spans
    )


def _text(check: _Check, speeds: Mapping[str, float], draw: np.random.Generator) -> str:
    """Return the speeds by variable, with the noise of a run."""
    parts = []
    for variable in check.rates:
        noise = np.exp(_PEER_NOISE * draw.standard_normal(len(speeds)))
        listed = (
            f"{name}:{speed * factor:.3g}"
            for (name, speed), factor in zip(speeds.items(), noise, strict=True)
        )
        parts.append(f"{variable}={','.join(listed)}")
    return ";".join(parts)


def _factor(check: _Check, place: str, variable: str, ago: int) -> float:
    """Return the factor on a rate by the events of a day."""
    factor = 1.0
    is_write = variable == "write_bw"
    if ago > _UPGRADE:
        if place == "scratch":
            factor *= 0.8
        if check.pattern == "fpp" and check.stripe_count < 0 and is_write:
            factor *= 0.85  # in the first epoch one stripe was better
    if place == "scratch" and _INCIDENT[0] >= ago > _INCIDENT[1]:
        factor *= 0.25
    if place == "fast" and variable == "read_bw" and _REPAIRED[0] >= ago > _REPAIRED[1]:
        factor *= 0.74
    if place == "scratch" and is_write and ago < _DROP:
        factor *= 0.69
    if place == "fast" and check.pattern == "fpp" and ago < _SLOW:
        factor *= _SLOWNESS  # the slowest rank ends a run
    if check.pattern == "fpp" and check.stripe_count == 1 and ago < _EXPANDED:
        before, now = (max(_files(_targets(place, day)).values()) for day in (_EXPANDED, ago))
        factor *= before / now  # the busiest target ends a run
    return factor


def _bands_file(end: datetime) -> str:
    """Return a bands file (contract 3) with the upgrade, a past and a coming maintenance."""

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
    """Yield the actions on the drop that was repaired."""
    since, until = (end - timedelta(days=days, hours=1) for days in _REPAIRED)
    found = end - timedelta(days=_REPAIRED[0] - 6)
    series = ({"file_system": "fast", "variable": "read_bw"},)
    reason = "made up: a switch of fast has lost a link, a spare part is ordered"
    when, by = found + timedelta(hours=4), "nobody"
    yield Action(ACKNOWLEDGE, when, by, reason, series, since=since, until=found, direction=DOWN)
    reason, when = "made up: the switch was repaired", until + timedelta(hours=9)
    yield Action(RESOLVE, when, by, reason, series, since=since, until=until, verdict=REAL)


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
