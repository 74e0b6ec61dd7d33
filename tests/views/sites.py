"""Made-up sites in which it is known which series changed and when."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from iobands.snapshot import ACKNOWLEDGE, Action, Snapshot
from iobands.source.action_log import append
from tests.factory import (
    NOW,
    case,
    daily,
    line,
    write_bands,
    write_perflog,
    write_report,
)
from tests.sites import levels, look

RUNS = 120
SLOW = 15


def healthy(runs: int = RUNS, seed: int = 1, level: float = 1.5) -> list[float]:
    return levels((runs, 1.0), seed=seed, level=level)


def dropped(factor: float = 0.7, seed: int = 1, after: int = SLOW, runs: int = RUNS) -> list[float]:
    """Return healthy values, the last `after` of them times `factor`."""
    return levels((runs - after, 1.0), (after, factor), seed=seed)


def site(root: Path, *names: str, factors: dict[str, float], **since: object) -> Snapshot:
    """Return a site with a series for each of `names`, such as `a fpp`.

    Those with a factor changed by it 15 runs ago, and have the fields `since` from then on.
    """
    rows = []
    for seed, name in enumerate(names):
        file_system, pattern = name.split()
        fields = {"file_system": file_system, "pattern": pattern}
        values = dropped(factors.get(name, 1.0), seed)
        rows += daily(values[:-SLOW], last=0.25 + SLOW, **fields)
        rows += daily(values[-SLOW:], **fields, **since)
    write_perflog(root / "perflogs", rows)
    return look(root)


def everything(root: Path) -> Snapshot:
    """Return a site with an alert of each kind, and with rejected lines."""
    rows = []
    for seed, (name, pattern, factor, after) in enumerate(
        (
            ("scratch", "fpp", 0.4, SLOW),
            ("scratch", "ssf", 0.5, SLOW),
            ("scratch", "fpn", 1.0, SLOW),
            ("home", "fpp", 0.7, 30),
            ("fast", "fpp", 1.6, SLOW),
        )
    ):
        rows += daily(dropped(factor, seed, after), file_system=name, pattern=pattern)
    rows += daily([1.0, 1.2, 1.4, 1.6, 1.8, 2.0, 2.2, 1.5])
    rows += daily([1.5, 0.123], pattern="ssf")
    rows += daily([2.5, None], perf_var="read_bw")
    rows += daily([2.5] * 4, last=9, file_system="old", medium="tape", perf_var="read_bw")
    rows += daily([7.5] * 4, last=400, pattern="ssf", perf_var="read_bw", stripe_count_asked=-1)
    rows += daily([7.5], pattern="ssf", perf_var="read_bw", stripe_count_asked=4)
    rows += [line(perf_value="x")] * 7
    write_perflog(root / "perflogs", rows)
    write_bands(root / "bands", variable="write_bw", file_system="disk")
    without = {
        "fail_phase": None,
        "fail_reason": None,
        "skip_reason": "not installed: ior: find it",
    }
    write_report(
        root / "perflogs",
        [
            case(display_name="Ior \x1b[31m%x=1 %hints=null", file_system="x"),
            case(display_name="IorFPP %api=posix", tool="ior", result="skip", **without),
        ],
    )
    acknowledge(root, file_system="home")
    return look(root)


def acknowledge(root: Path, **match: object) -> None:
    """Log jane's acknowledgement of a drop in the last weeks."""
    times = {"since": NOW - timedelta(days=35), "until": NOW}
    action = Action(ACKNOWLEDGE, NOW, "jane", "ticket 4711", (match,), direction="down", **times)
    append(root / "alerts", "here", [action])
