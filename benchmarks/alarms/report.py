"""The page `docs/error-rates.md` and its figure."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from benchmarks.alarms.measure import LIMITS, Delay, FalseAlarms
from benchmarks.alarms.plan import (
    CORRELATIONS,
    DRIFTS,
    DROPS,
    FLEET_LIMIT,
    LEARNT,
    MAIN,
    OUTLIERS,
    RISES,
    RUN_LENGTH,
    Effort,
    Results,
)
from benchmarks.alarms.tables import delay_text as _told
from benchmarks.alarms.tables import table
from benchmarks.alarms.together_page import SITE, Together, limit_of_site
from benchmarks.alarms.worlds import BANDS, HELD_OUT, TAILS
from iobands.detection import DEGRADED, WATCH, limit_for, runs_between_false_alarms

_TEMPLATES: Final = Path(__file__).resolve().parents[1] / "templates"
GOALS: Final = {"NVMe FPP": 1.25, "SSF NVMe": 1.25, "SSF HDD": 1.10, "FPP HDD": 1.5}
_FRONTIER: Final = (4.0, 5.0, 6.0, 7.0, 8.0, 9.0)


def templates() -> Environment:
    """Return where the templates are found."""
    return Environment(
        loader=FileSystemLoader(_TEMPLATES),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


def at(found: FalseAlarms, limit: float) -> float:
    """Return ARL0 at `limit`."""
    return float(found.run_length[int(np.argmin(np.abs(LIMITS - limit)))])


def error_at(found: FalseAlarms, limit: float) -> float:
    """Return the relative standard error of ARL0 at `limit`."""
    return float(found.relative_error[int(np.argmin(np.abs(LIMITS - limit)))])


class Page:
    """Everything that the page says, as texts."""

    def __init__(self, results: Results, effort: Effort, collapses: str) -> None:
        """`effort` says how much was drawn; `collapses` is the section on these."""
        self.results = results
        self.collapses = collapses
        self.effort = effort

    def text(self, date: str) -> str:
        """Return the page."""
        independent = [f for key, f in self.results.quiet.items() if key[3:6] == (0.0, 0.0, WATCH)]
        worst = {phi: self._least(3, phi) for phi in CORRELATIONS}
        return (
            templates()
            .get_template("error-rates.md")
            .render(
                date=date,
                watch=WATCH,
                degraded=DEGRADED,
                fleet=FLEET_LIMIT,
                fleet_500=limit_for(1, 500),
                effort=self.effort,
                error=max(error_at(found, WATCH) for found in independent),
                least=min(at(found, WATCH) for found in independent),
                worst=worst,
                worst_outliers=self._least(4, OUTLIERS),
                quiet=self.quiet(),
                limits=self.limits(),
                goals=self.goals(),
                tails=TAILS,
                held_out=HELD_OUT,
                every_tail=self.every_tail(),
                changes=self.changes(),
                frontier=self.frontier(),
                collapses=self.collapses,
                together=Together(self.results.pooled),
                site=SITE,
                limit_of_site=limit_of_site(),
            )
        )

    def _least(self, column: int, value: float) -> float:
        return min(
            at(found, WATCH)
            for key, found in self.results.quiet.items()
            if key[column] == value and key[5] == WATCH
        )

    def quiet(self) -> str:
        """ARL0 at the watch limit, for each band and tail."""
        head = ["band", "tail", "band alone", *(f"{n} runs" for n in LEARNT[1:])]
        head += [f"correlation {phi}, 60 / 200" for phi in CORRELATIONS]
        head += [f"{OUTLIERS:.0%} outliers, 60 / 200"]
        rows = []
        for band in BANDS:
            for tail in TAILS:

                def found(n: int, phi: float = 0.0, out: float = 0.0) -> str:
                    key = (band, tail, n, phi, out, WATCH, "down")  # noqa: B023  used at once
                    return f"{at(self.results.quiet[key], WATCH):.0f}"

                row = [band, tail, *(found(n) for n in LEARNT)]
                row += [f"{found(60, phi)} / {found(200, phi)}" for phi in CORRELATIONS]
                row += [f"{found(60, 0.0, OUTLIERS)} / {found(200, 0.0, OUTLIERS)}"]
                rows.append(row)
        return table(head, rows)

    def limits(self) -> str:
        """ARL0 against the limit: the formula, the least and the pooled."""
        quiet = self.results.quiet
        long = [f for key, f in quiet.items() if key[3] == 0 and key[5] == FLEET_LIMIT]
        rows = []
        for limit in (WATCH, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0, 13.0):
            index = int(np.argmin(np.abs(LIMITS - limit)))
            runs = sum(float(f.runs[index]) for f in long)
            alarms = sum(float(f.alarms[index]) for f in long)
            least = min(long, key=lambda f: f.run_length[index])
            row = [f"{limit:g}", f"{runs_between_false_alarms(limit):.0f}"]
            row += [f"{least.run_length[index]:.0f} ± {least.relative_error[index]:.0%}"]
            row += [f"{runs / max(alarms, 1):.0f} ± {1 / max(alarms, 1) ** 0.5:.0%}"]
            for phi in CORRELATIONS:
                key_limit = WATCH if limit == WATCH else FLEET_LIMIT
                some = [f for k, f in quiet.items() if k[3] == phi and k[5] == key_limit]
                least_of = min(float(f.run_length[index]) for f in some)
                row.append(f"{least_of:.0f}" if limit in {WATCH, FLEET_LIMIT} else "")
            rows.append(row)
        head = ["limit", "formula", "least of all", "all together"]
        return table(head + [f"least at correlation {phi}" for phi in CORRELATIONS], rows)

    def _delay(self, *key: object) -> Delay:
        return self.results.changed[key]

    def goals(self) -> str:
        """The 30 % drop beside the goals."""
        rows = []
        for band, goal in GOALS.items():
            best = self._delay("oracle", band, MAIN, 0, 0.7, 0.0)
            known = self._delay("known", band, MAIN, 0, 0.7, 0.0)
            row = [band, _told(best), f"× {known.mean / best.mean:.2f}"]
            for learnt in LEARNT:
                ours = self._delay("step", band, MAIN, learnt, 0.7, WATCH)
                row.append(f"{_told(ours)}, × {ours.mean / best.mean:.2f}")
            ours = self._delay("step", band, MAIN, 200, 0.7, WATCH)
            error = ours.mean / best.mean * np.hypot(ours.error / ours.mean, best.error / best.mean)
            reached = ours.mean / best.mean <= goal
            row += [f"× {goal:.2f}", f"{'reached' if reached else 'missed'} (± {error:.2f})"]
            rows.append(row)
        head = ["band", "oracle", "reference known", "band alone"]
        head += [f"{n} runs" for n in LEARNT[1:]]
        return table([*head, "goal", "at 200 runs"], rows)

    def every_tail(self) -> str:
        """The ratio to the oracle of each tail."""
        rows = []
        for band in BANDS:
            for tail in TAILS:
                best = self._delay("oracle", band, tail, 0, 0.7, 0.0)
                found = [self._delay("step", band, tail, n, 0.7, WATCH) for n in LEARNT]
                told = (f"{ours.mean:.1f}, × {ours.mean / best.mean:.2f}" for ours in found)
                rows.append([band, tail, _told(best), *told])
        head = ["band", "tail", "oracle", "band alone", *(f"{n} runs" for n in LEARNT[1:])]
        return table(head, rows)

    def changes(self) -> str:
        """Other drops, rises and drifts."""
        rows = []
        for band in BANDS:
            for factor in DROPS:
                best = self._delay("oracle", band, MAIN, 0, factor, 0.0)
                row = [band, f"drop × {factor}", _told(best)]
                row += [_told(self._delay("step", band, MAIN, n, factor, WATCH)) for n in (60, 200)]
                limited = (60, 200)
                row += [
                    _told(self._delay("step", band, MAIN, n, factor, FLEET_LIMIT)) for n in limited
                ]
                rows.append(row)
            for factor in RISES:
                row = [band, f"rise × {factor:.2f}", ""]
                row += [_told(self._delay("step", band, MAIN, n, factor, WATCH)) for n in (60, 200)]
                rows.append([*row, "", ""])
            for length in DRIFTS:
                row = [band, f"drift to × 0.7 over {length} runs", ""]
                row += [
                    _told(self._delay("drift", band, MAIN, n, length, WATCH)) for n in (60, 200)
                ]
                rows.append([*row, "", ""])
        high = f"at {FLEET_LIMIT:g}"
        head = ["band", "change", "oracle", "60 runs", "200 runs", f"60, {high}", f"200, {high}"]
        return table(head, rows)

    def frontier_points(self) -> dict[str, list[tuple[float, float]]]:
        """Return for each band (least ARL0 of its tails, ratio to the oracle) by limit."""
        points: dict[str, list[tuple[float, float]]] = {}
        for band in BANDS:
            best = self._delay("oracle", band, MAIN, 0, 0.7, 0.0)
            points[band] = []
            for limit in _FRONTIER:
                least = min(
                    at(f, limit)
                    for key, f in self.results.quiet.items()
                    if key[0] == band and key[3:6] == (0.0, 0.0, FLEET_LIMIT)
                )
                ours = self._delay("frontier", band, MAIN, 200, 0.7, limit)
                points[band].append((least, ours.mean / best.mean))
        return points

    def frontier(self) -> str:
        """The frontier as a table."""
        points = self.frontier_points()
        rows = [
            [f"{limit:g}", *(f"{points[b][i][0]:.0f}, × {points[b][i][1]:.2f}" for b in BANDS)]
            for i, limit in enumerate(_FRONTIER)
        ]
        return table(["limit", *BANDS], rows)

    def draw_frontier(self, path: Path) -> None:
        """Draw the frontier into the picture `path`."""
        import matplotlib as mpl  # noqa: PLC0415  loaded only for a picture

        mpl.use("Agg")
        mpl.rcParams["svg.fonttype"] = "none"
        mpl.rcParams["svg.hashsalt"] = "error-rates"
        import matplotlib.pyplot as plt  # noqa: PLC0415

        figure, axis = plt.subplots(figsize=(7, 4.2))
        for number, (band, points) in enumerate(self.frontier_points().items()):
            runs, ratios = zip(*points, strict=True)
            axis.semilogx(runs, ratios, "o-", color=f"C{number}", label=band)
            axis.plot([RUN_LENGTH], [GOALS[band]], "x", color=f"C{number}", markersize=9)
        axis.axvline(RUN_LENGTH, color="0.6", linewidth=1)
        axis.set_xlabel("healthy runs a false alarm, worst tail and history")
        axis.set_ylabel("delay of a 30 % drop, oracle = 1")
        axis.legend(frameon=False)
        figure.tight_layout()
        figure.savefig(path, metadata={"Date": None})
        plt.close(figure)
