"""Made-up sites with daily runs, in which it is known which series changed and when."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import product
from pathlib import Path

import numpy as np
import polars as pl

from iobands.bands import Span
from iobands.commands.cli import SiteOptions
from iobands.commands.status import rebuild_log
from iobands.judge.requests import Request, action_of, selected, subjects_of
from iobands.judge.site import JudgedSite, judge
from iobands.model import SeriesKey
from iobands.snapshot import Action, Ledger, Series, Snapshot
from iobands.source.action_log import ALERT_LOG, alert_log, append
from iobands.source.demo import write_demo
from iobands.source.known import read_known
from tests.factory import NOW, daily, days_ago, line, write_perflog

DAY = timedelta(days=1)

#: A site without samples.
NOTHING_KNOWN = Snapshot(
    now=NOW,
    series=(),
    ledger=Ledger((), real=0, false=0, delay=None),
    false_alarms_a_year=1.0,
    threshold=10.5,
    samples=pl.DataFrame(),
    speeds=pl.DataFrame(),
)

#: Two file systems, two patterns and two transports.
EIGHT = tuple(
    {"file_system": fs, "pattern": pattern, "transport": transport}
    for fs, pattern, transport in product(("a", "b"), ("fpp", "ssf"), ("ofi", "ucx"))
)

Factor = Callable[[Mapping[str, str], int], float]


def levels(*parts: tuple[int, float], seed: int = 1, level: float = 1.5) -> list[float]:
    """Return runs with 8 % noise around `level`; each part is a number of runs and their factor."""
    runs, factors = zip(*parts, strict=True)
    noise = np.random.default_rng(seed).normal(0, 0.08, sum(runs))
    return [float(value) for value in level * np.exp(noise) * np.repeat(factors, runs)]


def slow(factor: float = 0.7, since: int = 12, until: int = 0, **fields: str) -> Factor:
    """Return a factor for runs of series with these fields, from `since` to `until` days ago."""

    def of(series: Mapping[str, str], day: int) -> float:
        mine = all(series.get(name) == value for name, value in fields.items())
        return factor if mine and until <= day < since else 1.0

    return of


def whole_demo(root: Path, now: datetime) -> None:
    """Write the made-up site with its log of alerts, as `iobands demo` does."""
    write_demo(root, now)
    rebuild_log(SiteOptions(root=root, as_of=now.isoformat()))


class SiteFiles:
    """The files of a site below `root`, and actions of people on its alerts."""

    def __init__(self, root: Path) -> None:
        self.perflogs = root / "perflogs"
        self.bands = root / "bands"
        self.alerts = root / "alerts"

    def write(self, rows: Sequence[str]) -> SiteFiles:
        """Write the perflog, replacing an earlier one."""
        write_perflog(self.perflogs, rows)
        return self

    def days(
        self,
        factor: Factor,
        *,
        seed: int = 1,
        days: int = 110,
        series: Sequence[Mapping[str, str]] = EIGHT,
        variables: Sequence[str] = ("write_bw",),
    ) -> SiteFiles:
        """Write daily runs of several series, the newest 6 hours before NOW.

        `factor` takes the fields of a series and the age of a run in days. A fifth of the variance
        is common to all series of a day.
        """
        random = np.random.default_rng(seed)
        rows = []
        for day in range(days - 1, -1, -1):
            common = 0.04 * random.standard_normal()
            for fields, variable in product(series, variables):
                value = 2 * np.exp(common + 0.08 * random.standard_normal())
                value *= factor({**fields, "variable": variable}, day)
                rows.append(
                    line(
                        job_completion_time=days_ago(day + 0.25),
                        perf_value=value,
                        perf_var=variable,
                        environ=fields.get("transport", "builtin"),
                        **fields,
                    )
                )
        return self.write(rows)

    def read(self, now: datetime = NOW, **options: object) -> Snapshot:
        """Return the snapshot of the site."""
        return self.judge(now, **options).snapshot

    def judge(
        self, now: datetime = NOW, as_of: bool = False, system: str | None = None, **options: object
    ) -> JudgedSite:
        """Judge the site."""
        return judge(
            read_known(self.perflogs, self.bands, self.alerts, now=now, system=system, as_of=as_of),
            **options,
        )

    def act(
        self,
        kind: str,
        words: str = "disk fpp write_bw",
        *,
        now: datetime = NOW,
        since: datetime | None = None,
        force: bool = False,
        at: Span | None = None,
        reason: str = "a reason",
    ) -> Action:
        """Log jane's action on the alert or series that `words` name; return its first entry."""
        judged = self.judge(now)
        for system, events in judged.news.items():
            ALERT_LOG.append(alert_log(self.perflogs, system), events)
        site = judged.snapshot
        request = Request(kind, "jane", reason, since, force, at=at)
        future: dict[SeriesKey, list[datetime]] = {}
        for sample in site.future:
            future.setdefault(sample.key, []).append(sample.when)
        log, known = site.actions, (*site.series, *site.retired)
        subjects = subjects_of(known, site.alerts, site.past)
        chosen = selected(subjects, words, request, every=False, log=log)
        actions = [action_of(each, request, known, log, now, future) for each in chosen]
        logged = [each for each in actions if each is not None]
        append(self.alerts, chosen[0].system, logged)
        return logged[0]


class Growing(SiteFiles):
    """A site that gains a run of each named series per day; `disk2` is another series of `disk`."""

    def __init__(self, root: Path, **values: list[float]) -> None:
        super().__init__(root)
        self.values = values
        self.now = NOW

    def after(self, days: int) -> Snapshot:
        """Move to the evening after this many runs, and return the site."""
        most = max(len(values) for values in self.values.values())
        self.now = NOW - (most - days) * DAY
        rows = []
        for name, values in self.values.items():
            seen = values[:days]
            fields = {
                "file_system": name.rstrip("2"),
                "pattern": "ssf" if name[-1] == "2" else "fpp",
            }
            rows += daily(seen, last=0.25 + most - len(seen), **fields)
        self.write(rows)
        return self.read(self.now)

    def again(self) -> Snapshot:
        """Read the site again on the same evening."""
        return self.read(self.now)

    def does(self, kind: str, words: str = "disk fpp write_bw", **options: object) -> Action:
        """Log an action by jane on that evening."""
        return self.act(kind, words, now=self.now, **options)


def look(root: Path) -> Snapshot:
    """Return the snapshot of the site below `root`."""
    return SiteFiles(root).read()


def only(site: Snapshot) -> Series:
    """Return the one series of a site."""
    (series,) = site.series
    return series
