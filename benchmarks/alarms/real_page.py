"""The page of the real year: each alert as the digest words it, its judgement, and pictures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import yaml
from numpy.typing import NDArray

from benchmarks.alarms import marked, peers, score
from benchmarks.alarms.figures import Rate, table, verdict
from benchmarks.alarms.real import Event, Replay
from benchmarks.pages import TEMPLATES, rendered
from iobands.snapshot import Series, Severity

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: The judgement of each alert by its picture, and the stretches that were seen by eye.
JUDGED: Final = TEMPLATES / "real-data-judged.yaml"
_ALARMS: Final = (Severity.INCIDENT.value, Severity.DEGRADED.value, Severity.IMPROVED.value)
_COLOURS: Final = {"incident": "#d55e00", "degraded": "#b3123e", "improved": "#0072b2"}


@dataclass(frozen=True)
class Stretch:
    """Days on which series of a file system look low in the pictures; `aim` is in sessions."""

    what: str
    file_system: str
    variable: str
    begin: date
    end: date
    aim: int

    def has(self, series: Series) -> bool:
        """Return whether the stretch is about a series."""
        return (series.key.file_system, series.key.variable) == (self.file_system, self.variable)

    def sessions(self, replay: Replay, until: date) -> int:
        """Return the number of days with runs, from the beginning to `until`."""
        times = [each.history.times for each in replay.series if self.has(each)]
        days = np.unique(np.concatenate(times).astype("datetime64[D]"))
        within = (days >= np.datetime64(self.begin)) & (days <= np.datetime64(until))
        return int(np.count_nonzero(within))

    def events(self, replay: Replay) -> list[Event]:
        """Return the alerts of a worsening of its series that were raised within the stretch."""
        keys = {each.key for each in replay.series if self.has(each)}
        return [
            event
            for event in replay.events
            if event.first.severity != Severity.IMPROVED.value
            and keys & event.first.keys
            and self.begin <= event.first.day <= self.end
        ]


def judged() -> dict[str, Any]:
    """Return the judgements of alerts, by name, and the stretches."""
    found: dict[str, Any] = yaml.safe_load(JUDGED.read_text(encoding="utf-8"))
    return found


def stretches() -> list[Stretch]:
    """Return the stretches that were seen by eye."""
    return [Stretch(**each) for each in judged()["stretches"]]


def numbered(replay: Replay) -> dict[int, Event]:
    """Return the alerts by their number on the page."""
    alarms = [event for event in replay.events if event.first.severity in _ALARMS]
    return dict(enumerate(alarms, 1))


def page(replay: Replay, source: Path, date: str) -> str:
    """Return the page."""
    said = judged()["alerts"]
    by_marks = score.Score(replay, marked.read_marks(marked.MARKS, replay))
    names = [event.name for event in numbered(replay).values()]
    return rendered(
        "real-data.md",
        date=date,
        source=source.name,
        replay=replay,
        score=score.summary(by_marks),
        must_tell=score.must_tell(by_marks),
        unexplained=score.unexplained(by_marks),
        counts=Counter(event.first.severity for event in replay.events),
        runs=sum(len(each.history.times) for each in replay.series),
        stretches=_stretches(replay),
        alerts=_alerts(numbered(replay), said, replay),
        watches=_watches(replay),
        verdicts=Counter(_verdict(said.get(name, "")) for name in names),
        pictures=sorted({each.key.file_system or "none" for each in replay.series}),
    )  # fmt: skip


def unjudged(replay: Replay) -> list[str]:
    """Return the alerts that are not judged."""
    said = judged()["alerts"]
    return [each.name for each in numbered(replay).values() if each.name not in said]


def _verdict(text: str) -> str:
    return text.partition(":")[0].lower() or "not judged"


def _alerts(events: Mapping[int, Event], said: Mapping[str, str], replay: Replay) -> str:
    rows = []
    for number, event in events.items():
        first, last = event.first, event.last
        ratio = f"{first.ratio:.2f}"
        if f"{last.ratio:.2f}" != ratio:
            ratio += f", then {last.ratio:.2f}"
        sure = first.certainty or "–"
        if last.certainty != first.certainty:
            sure += f", then {last.certainty}"
        raised = f"{first.day} ({replay.sessions(event)})"
        what = said.get(event.name, "not judged")
        rows.append([number, f"`{first.line}`", first.since, raised, last.day, ratio, sure, what])
    head = ["", "first reported", "began", "raised (runs)", "last reported", "×", "certainty"]
    return table([*head, "judged"], rows)


def _watches(replay: Replay) -> str:
    rows = [
        [f"`{event.first.line}`", event.first.day, event.last.day]
        for event in replay.events
        if event.first.severity == Severity.WATCH.value
    ]
    return table(["first reported", "raised", "last reported"], rows)


def _stretches(replay: Replay) -> str:
    rows = []
    for number, stretch in enumerate(stretches(), 1):
        found = stretch.events(replay)
        raised = [event for event in found if event.first.severity in _ALARMS]
        watched = [event for event in found if event.first.severity not in _ALARMS]
        late = _raised(stretch, replay)
        words = "<br>".join(f"`{each.first.line}`" for each in raised or watched) or "nothing"
        rows.append(
            [
                number,
                f"{stretch.file_system} {stretch.variable}, {stretch.begin} to {stretch.end}: "
                + stretch.what,
                "never" if late is None else f"after {late} sessions",
                f"≤ {stretch.aim}",
                verdict(late is not None and late <= stretch.aim),
                words,
            ]
        )
    return table(["", "by eye", "raised", "aim", "", "reported as"], rows)


def peers_of_values(values: NDArray[np.float64]) -> dict[str, list[peers.Alarm]]:
    """Return the alarms of each detector on a series, run day by day."""
    return {name: list(peer(values, peers.FIRST)) for name, peer in peers.PEERS.items()}


def peer_table(replay: Replay, found: Sequence[dict[str, list[peers.Alarm]]]) -> str:
    """Return a table of each detector's alarms per series-year, and of its runs to each stretch."""
    ours = [event for event in replay.events if event.first.severity in _ALARMS]
    late = [_raised(stretch, replay) for stretch in stretches()]
    rows = [["iobands", Rate(len(ours), replay.years), *map(_runs, late)]]
    for name in peers.PEERS:
        rate = Rate(sum(len(each[name]) for each in found), replay.years)
        late = [_first(stretch, replay, [each[name] for each in found]) for stretch in stretches()]
        rows.append([name, rate, *map(_runs, late)])
    head = ["", "alarms a series-year", *(str(number) for number in range(1, len(late) + 1))]
    return table(head, rows)


def _raised(stretch: Stretch, replay: Replay) -> int | None:
    days = [event.first.day for event in stretch.events(replay) if event.first.severity in _ALARMS]
    return stretch.sessions(replay, min(days)) if days else None


def _runs(found: int | None) -> str:
    return "never" if found is None else str(found)


def _first(stretch: Stretch, replay: Replay, alarms: Sequence[Sequence[peers.Alarm]]) -> int | None:
    days = []
    for series, every in zip(replay.series, alarms, strict=True):
        if stretch.has(series):
            dates = series.history.times.astype("datetime64[D]")
            days += [
                dates[each.raised].item()
                for each in every
                if each.is_drop
                and stretch.begin <= dates[each.raised].item() <= stretch.end
                and stretch.begin <= dates[each.at].item()
            ]
    return stretch.sessions(replay, min(days)) if days else None


def draw(replay: Replay, directory: Path) -> None:
    """Draw all series of each file system, with the alerts about them, into `directory`."""
    import matplotlib as mpl  # noqa: PLC0415  loaded only for a picture
    from matplotlib.dates import ConciseDateFormatter, MonthLocator  # noqa: PLC0415
    from matplotlib.figure import Figure  # noqa: PLC0415
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter  # noqa: PLC0415

    for name in sorted({each.key.file_system or "none" for each in replay.series}):
        chosen = [each for each in replay.series if (each.key.file_system or "none") == name]
        with mpl.rc_context({"font.size": 8, "axes.edgecolor": "#999999"}):
            figure = Figure(figsize=(12, 1.5 * len(chosen) / 2 + 0.6))
            axes = figure.subplots(-(-len(chosen) // 2), 2, squeeze=False, sharex=True)
            for axis, series in zip(axes.flat, chosen, strict=False):
                times, values = series.history.times, series.history.values
                axis.semilogy(times.astype("datetime64[s]").astype(object), values, ".",
                              color="0.35", markersize=2.5)  # fmt: skip
                for number, event in numbered(replay).items():
                    if series.key in event.keys:
                        _draw_event(axis, number, event)
                axis.set_title(series.label, loc="left", fontsize=8, pad=2)
                axis.xaxis.set_major_locator(MonthLocator())
                axis.xaxis.set_major_formatter(ConciseDateFormatter(MonthLocator()))
                axis.yaxis.set_major_locator(LogLocator(10, subs=(1, 2, 5)))
                axis.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
                axis.yaxis.set_minor_formatter(NullFormatter())
                axis.spines[["top", "right"]].set_visible(False)
            figure.subplots_adjust(0.04, 0.06, 0.995, 0.96, wspace=0.08, hspace=0.3)
            figure.savefig(directory / f"real-{name}.png", dpi=80, metadata={"Software": None})


def _draw_event(axis: Axes, number: int, event: Event) -> None:
    first, colour = event.first, _COLOURS[event.first.severity]
    axis.axvspan(first.since, event.last.day, color=colour, alpha=0.12, linewidth=0)
    axis.axvline(first.day, color=colour, linewidth=1.2)
    axis.annotate(
        str(number),
        (first.day, 0.03 + 0.11 * (number % 3)),  # some are close together
        xycoords=("data", "axes fraction"),
        xytext=(2, 0),
        textcoords="offset points",
        color=colour,
    )
