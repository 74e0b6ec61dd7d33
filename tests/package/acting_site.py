"""A site whose runs come in day by day, and people who act on its alarms."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
from iobands.alerts.acting import act_of
from iobands.alerts.acts import Act
from iobands.alerts.alarms_writer import add
from iobands.alerts.targets import Request, chosen
from iobands.status.survey import Survey, take_survey

from tests.package.factory import NOW, daily, write_perflog
from tests.package.test_states import healthy

DAY = timedelta(days=1)


def levels(*parts: tuple[int, float], seed: int = 1) -> list[float]:
    """Return so many runs at each factor of the healthy level, one part after the other."""
    values = healthy(sum(runs for runs, _ in parts), seed)
    factors = np.repeat([factor for _, factor in parts], [runs for runs, _ in parts])
    return [float(value * factor) for value, factor in zip(values, factors, strict=True)]


class Site:
    """A site whose runs come in day by day, and what people do there."""

    def __init__(self, root: Path, **values: list[float]) -> None:
        self.root = root
        self.values = values or {}
        self.days = 0

    def survey(self, days: int | None = None) -> Survey:
        """Survey the site on the evening of the day after so many runs."""
        self.days = days or self.days
        rows = []
        for name, values in self.values.items():
            seen = values[: self.days]
            last = 0.25 + len(values) - len(seen)
            fields = {
                "file_system": name.rstrip("2"),
                "pattern": "ssf" if name[-1] == "2" else "fpp",
            }
            rows += daily(seen, last=last, **fields)
        write_perflog(self.root / "perflogs", rows)
        return self.look(self.now)

    def look(self, now: datetime) -> Survey:
        """Survey the site as it is."""
        return take_survey(
            self.root / "perflogs", self.root / "bands", now=now, alarms=self.root / "alarms"
        )

    @property
    def now(self) -> datetime:
        most = max(len(values) for values in self.values.values())
        return NOW - (most - self.days) * DAY

    def act(self, kind: str, name: str = "disk fpp", since: datetime | None = None) -> Act:
        """Have somebody act, at a minute after the survey."""
        survey = self.look(self.now)
        request = Request(kind, "jane", "a reason", since)
        (target,) = chosen(survey, name, request, every=False)
        act = act_of(target, request, survey)
        assert act is not None
        add(self.root / "alarms" / "here.yaml", "here", act)
        return act
