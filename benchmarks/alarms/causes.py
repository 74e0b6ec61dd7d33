"""Simulated sites on which one thing breaks, while other columns change by themselves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import numpy as np

from iobands.judge.site import read_site
from iobands.model import NODE, PERFLOG_HEADER, perflog_line
from iobands.snapshot import Alert, CauseKind

#: What breaks; `nothing recorded` is a drop without any other trace.
BROKEN: Final[Mapping[str, CauseKind | None]] = {
    "target out": CauseKind.TARGET_OUT,
    "target slow": CauseKind.TARGET,
    "node slow": CauseKind.NODE,
    "version": CauseKind.VERSION,
    "transport": CauseKind.TRANSPORT,
    "hints": CauseKind.HINTS,
    "fullness": CauseKind.FULLNESS,
    "other load": CauseKind.LOAD,
    "one partition": CauseKind.PARTITION,
    "nothing recorded": None,
}
_FIRST: Final = datetime(2026, 1, 1, 4, tzinfo=timezone.utc)
_NODES: Final = {"compute": [f"nid{each:03d}" for each in range(1, 65)],
                 "highmem": ["mem1", "mem2", "mem3", "mem4"]}  # fmt: skip
_TARGETS: Final = {"scratch": 12, "work": 8}
_RUN_NODES: Final = 4
_BROKEN_TARGET: Final = 5
_HINTS: Final = "cb_nodes=4,romio_cb_write=enable"


@dataclass(frozen=True)
class Check:
    """A check with a write and a read series on a file system."""

    partition: str
    place: str
    pattern: str
    stripes: int
    transport: str
    hints: str

    @property
    def name(self) -> str:
        """The check's display name in ReFrame."""
        return f"{self.pattern} %place={self.place} %stripes={self.stripes} %hints={self.hints}"


CHECKS: Final = tuple(
    Check(partition, place, *rest)
    for place in _TARGETS
    for partition, rest in (
        ("compute", ("fpp", 1, "ofi", "default")),
        ("compute", ("fpp", -1, "ofi", "default")),
        ("compute", ("ssf", -1, "ofi", "default")),
        ("compute", ("ssf", -1, "ucx", "default")),
        ("compute", ("ssf", -1, "ucx", "tuned")),
        ("highmem", ("fpp", 1, "ofi", "default")),
        ("highmem", ("ssf", -1, "ofi", "default")),
    )
)


class Nuisances:
    """Columns that change by themselves, each a few times a year, for days or permanently."""

    def __init__(self, random: np.random.Generator, days: int) -> None:
        """Draw when each of them changes."""
        self.suite = self._steps(random, days, 3)
        self.reframe = self._steps(random, days, 3)
        self.stripe_size = self._steps(random, days, 1)
        self.hints = self._steps(random, days, 1)
        self.transport = self._steps(random, days, 1)
        self.out = {name: self._spells(random, days, 1) for name in _TARGETS}
        self.jobs = {name: 30 + 60 * self._spells(random, days, 3) for name in _NODES}
        self.load = {name: 0.5 + 3 * self._spells(random, days, 3) for name in _NODES}
        self.full = {
            name: np.clip(60 + np.cumsum(random.normal(0, 0.7, days)), 20, 96)
            + 25 * self._spells(random, days, 2)
            for name in _TARGETS
        }

    @staticmethod
    def _steps(random: np.random.Generator, days: int, a_year: float) -> np.ndarray:
        return np.cumsum(random.random(days) < a_year / 365)

    @staticmethod
    def _spells(random: np.random.Generator, days: int, a_year: float) -> np.ndarray:
        found = np.zeros(days, dtype=int)
        for begin in np.flatnonzero(random.random(days) < a_year / 365):
            found[begin : begin + random.integers(1, 20)] = 1
        return found


def is_hit(broken: str, check: Check, variable: str, chosen: int) -> bool:
    """Return whether a series falls; `chosen` selects which ones do if no cause is recorded."""
    write = variable == "write_bw"
    if broken == "nothing recorded":
        return [
            check.place == "scratch" and write,
            check.pattern == "ssf" and check.place == "work",
            check.stripes == 1 and check.partition == "compute",
            check == CHECKS[2] and write,
        ][chosen % 4]
    return {
        "target out": check.place == "scratch" and write,
        "target slow": check.place == "scratch" and check.pattern == "fpp",
        "node slow": check.partition == "highmem",
        "version": check.transport == "ucx",
        "transport": check.transport == "ucx",
        "hints": check.hints == "tuned",
        "fullness": check.place == "scratch" and write,
        "other load": check.partition == "compute",
        "one partition": check.partition == "highmem",
    }[broken]


def lines(broken: str, seed: int, days: int, since: int, factor: float) -> Iterator[str]:
    """Yield the lines of a perflog in which `broken` is broken from day `since` on."""
    random = np.random.default_rng(seed)
    beside, chosen = Nuisances(random, days), int(random.integers(4))
    offsets = random.uniform(0, 6, days)
    for day in range(days):
        is_broken = day >= since
        shared = {place: 0.04 * random.standard_normal() for place in _TARGETS}
        for number, check in enumerate(CHECKS):
            when = _FIRST + timedelta(days=day, minutes=4 * number + offsets[day])
            run = _run(check, day, broken if is_broken else "", beside, random)
            run |= {"job_completion_time": when.isoformat(), "session": f"s{day}"}
            for place, variable in enumerate(("write_bw", "read_bw")):
                value = (
                    (10 + number)
                    * (1 + place)
                    * np.exp(0.07 * random.standard_normal() + shared[check.place])
                )
                if random.random() < 0.01:  # noqa: PLR2004
                    value *= random.uniform(0.3, 0.7)
                if is_broken and is_hit(broken, check, variable, chosen):
                    value *= factor
                yield perflog_line(
                    run | {"perf_var": variable, "perf_value": f"{value:.5g}", "perf_unit": "GiB/s"}
                )


def _run(
    check: Check, day: int, broken: str, beside: Nuisances, random: np.random.Generator
) -> dict[str, object]:
    place, partition = check.place, check.partition
    on_scratch = place == "scratch"
    out = int(beside.out[place][day]) + (broken == "target out" and on_scratch)
    gone = [_BROKEN_TARGET] if broken == "target out" and on_scratch else []
    gone += [0] if beside.out[place][day] else []
    targets = [each for each in range(_TARGETS[place]) if each not in gone]
    nodes = sorted(random.choice(_NODES[partition], _RUN_NODES, replace=False).tolist())
    tuned = check.hints == "tuned"
    hints = _HINTS.replace("=4", f"={4 + beside.hints[day]}")
    if broken == "hints":
        hints = hints.replace("enable", "disable")
    transport = check.transport
    if beside.transport[day] % 2 and transport == "ofi":
        transport = "ofi;verbs"
    if broken == "transport" and transport == "ucx":
        transport = "tcp"
    suite = f"0.{1 + beside.suite[day]}.{int(broken == 'version' and check.transport == 'ucx')}"
    full = 95.0 if broken == "fullness" and on_scratch else min(beside.full[place][day], 97.0)
    many = 4 if broken == "other load" and partition == "compute" else 1
    speeds: dict[str, object] = {}
    if check.pattern == "fpp":
        slow = {str(_BROKEN_TARGET)} if broken == "target slow" and on_scratch else set()
        slow |= {"mem2"} if broken == "node slow" else set()
        speeds["node_speeds"] = _speeds(nodes, slow, random)
        if check.stripes == 1:
            speeds["target_bandwidths"] = _speeds([str(each) for each in targets], slow, random)
    return {
        "result": "pass",
        "display_name": check.name,
        "hashcode": f"{CHECKS.index(check):08x}",
        "system": "site",
        "partition": partition,
        "environ": f"gnu-{check.transport}",
        "job_nodelist": ",".join(nodes),
        "version": f"4.{beside.reframe[day]}",
        "suite_version": suite,
        "tool": "benchio",
        "tool_version": "1.0",
        "pattern": check.pattern,
        "interface": "mpiio" if check.pattern == "ssf" else "posix",
        "file_system": place,
        "medium": "hdd" if on_scratch else "nvme",
        "file_system_type": "lustre",
        "stripe_count_asked": check.stripes,
        "stripe_count": check.stripes if check.stripes > 0 else len(targets),
        "stripe_size": 2 ** (20 + beside.stripe_size[day]),
        "transport": check.transport,
        "transport_in_effect": transport,
        "hints": check.hints,
        "hints_in_effect": hints if tuned else "null",
        "fsync": "true",
        "cache": "dropped",
        "nodes": _RUN_NODES,
        "tasks": 64,
        "gib": 16,
        "fullness_percent": f"{full + random.normal(0, 0.2):.1f}",
        "targets_active": len(targets),
        "targets_inactive": out,
        "load_per_node": f"{many * beside.load[partition][day] * random.uniform(0.7, 1.3):.2f}",
        "other_jobs": many * int(random.poisson(beside.jobs[partition][day])),
        **speeds,
    }


def _speeds(names: list[str], slow: set[str], random: np.random.Generator) -> str:
    def one(name: str) -> str:
        return f"{name}:{(0.5 if name in slow else 1.0) * np.exp(0.05 * random.normal()):.3g}"

    return ";".join(f"{each}={','.join(map(one, names))}" for each in ("write_bw", "read_bw"))


def alerts(
    broken: str, seed: int, days: int = 240, after: int = 12, factor: float = 0.65
) -> list[Alert]:
    """Return the alerts that date from when something broke, as they stand `after` days later."""
    since = days - after
    with TemporaryDirectory() as made:
        root = Path(made)
        (root / "perflogs" / "site" / "compute").mkdir(parents=True)
        text = "\n".join([PERFLOG_HEADER, *lines(broken, seed, days, since, factor)])
        (root / "perflogs" / "site" / "compute" / "x.log").write_text(f"{text}\n")
        now = _FIRST + timedelta(days=days)
        site = read_site(root / "perflogs", root / "bands", root / "alerts", now=now)
    begun = _FIRST + timedelta(days=since - 5)
    return [each for each in site.alerts if each.number and each.since and each.since >= begun]


def verdict(broken: str, alert: Alert) -> str:
    """Return whether the cause of an alert is `right`, `unknown` or `wrong`."""
    wanted = {BROKEN[broken]}
    if broken in ("node slow", "one partition"):
        wanted |= {CauseKind.PARTITION}  # the slow node is one of four, all of them used
    known = alert.cause.kind if alert.cause else None
    if alert.peer:
        known = CauseKind.NODE if alert.peer.name.kind == NODE else CauseKind.TARGET
    if known is None:
        return "unknown"
    return "right" if known in wanted else "wrong"


def counted(broken: str, seed: int) -> Counter[str]:
    """Return how many alerts of one site have each verdict."""
    return Counter(verdict(broken, each) for each in alerts(broken, seed))
