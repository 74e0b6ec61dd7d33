"""The digest as JSON: a site's survey as plain data, for other programs.

May know: surveys and how they are worded; nothing of files or of the command line.
"""

from __future__ import annotations

import math
from dataclasses import asdict

from iobands.alerts.acknowledged import Acknowledged
from iobands.alerts.acts import Act
from iobands.alerts.shared import Common
from iobands.detection import Ratio
from iobands.reporting.collapse_views import collapses_as_json, file_systems_as_json
from iobands.reporting.format import summary
from iobands.status.following import Change, Following
from iobands.status.survey import Series, Survey


def as_json(survey: Survey) -> dict[str, object]:
    """Return the survey as plain data; values are in the unit beside them, times ISO 8601."""
    return {
        "schema": "iobands-status/1",
        "status": survey.exit_status,
        "summary": summary(survey),
        "time": survey.now.isoformat(),
        "false_alarms_a_year": survey.budget.false_alarms_a_year,
        "limit": survey.budget.limit,
        "series": [
            {
                **_series_as_json(series),
                "collapses": collapses_as_json(survey.collapses.of(series.key)),
            }
            for series in survey.series
        ],
        "file_systems": [
            {**data, "acknowledged": _act_as_json(each.known) if each.known else None}
            for data, each in zip(
                file_systems_as_json(survey), survey.collapses.file_systems, strict=True
            )
        ],
        "common": [_common_as_json(common, survey) for common in survey.common],
        "superseded": list(survey.superseded),
        "findings": [
            {**vars(finding), "when": finding.when.isoformat()} for finding in survey.findings
        ],
        "skipped": [{**vars(skip), "when": skip.when.isoformat()} for skip in survey.skipped],
        "obstacles": [each.as_json() for each in survey.obstacles],
        "rejected": [
            {"path": str(item.path), "line": item.line, "reason": item.reason}
            for item in survey.rejected
        ],
    }


def _common_as_json(common: Common, survey: Survey) -> dict[str, object]:
    labels = {series.key: series.label for series in survey.series}
    return {
        "name": common.name,
        "kind": common.pool.kind,
        **change_as_json(common.change),
        "changes": [
            {"variable": variable, **change_as_json(change)}
            for variable, change in common.changes.items()
        ],
        "acknowledged": _answer_as_json(survey.acknowledged.get(common.name)),
        "series": [labels[key] for key in common.keys],
        "members": [
            {
                "series": labels[member.key],
                "took_part": member.took_part,
                **_ratio_as_json(member.ratio),
                "evidence": member.evidence,
            }
            for member in common.members
        ],
    }


def _ratio_as_json(ratio: Ratio) -> dict[str, object]:
    return {
        "ratio": _finite(ratio.value),
        "ratio_low": ratio.low if ratio.low > 0 else None,
        "ratio_high": _finite(ratio.high),
    }


def _series_as_json(series: Series) -> dict[str, object]:
    status, band = series.status, series.status.band
    return {
        "label": series.label,
        **series.key.fields(),
        "state": status.state.value,
        "why": status.why,
        "value": status.value,
        "unit": series.key.unit,
        "when": status.when.isoformat() if status.when else None,
        "verdict": status.verdict,
        "missing": status.missing,
        "alarm": change_as_json(status.change) if status.change else None,
        "acknowledged": _answer_as_json(status.acknowledged),
        "acts": [_act_as_json(act) for act in series.acts],
        "evidence": _evidence_as_json(status.following),
        "runs": status.runs,
        "in_effect": asdict(series.in_effect),
        "band": band
        and {
            "lower_quartile": band.lower_quartile,
            "median": band.median,
            "upper_quartile": band.upper_quartile,
            "maximum": band.maximum,
            "floor": band.floor,
            "runs": band.runs,
            "epoch": band.epoch or None,
            "source": band.source,
            "provisional": status.provisional,
            "state": band.state,
            "intervals": {name: list(pair) for name, pair in band.intervals.items()},
        },
        "epoch": _epoch_as_json(series),
    }


def _epoch_as_json(series: Series) -> dict[str, object] | None:
    epoch = series.epoch
    return epoch and {
        "name": epoch.name,
        "since": epoch.since.isoformat(),
        "source": epoch.source,
        "reason": epoch.reason or None,
        "continues": epoch.continues,
    }


def _answer_as_json(answer: Acknowledged | None) -> dict[str, object] | None:
    """Return who knows of a change; `worse` is null while that keeps it quiet."""
    return answer and {
        **_act_as_json(answer.act),
        "worse": change_as_json(answer.worse) if answer.worse else None,
    }


def _act_as_json(act: Act) -> dict[str, object]:
    times = {"when": act.when, "since": act.since, "until": act.until, "of": act.of}
    told = {name: time.isoformat() for name, time in times.items() if time}
    on_nodes = {"on_nodes": list(act.on_nodes)} if act.on_nodes else {}
    return {"act": act.kind, "who": act.who, "reason": act.reason, **told, **on_nodes}


def change_as_json(change: Change) -> dict[str, object]:
    """Return a lasting change as plain data; a bound that is not known is null."""
    return {
        "direction": change.direction,
        "since": change.since.isoformat(),
        "since_low": change.since_low.isoformat(),
        "since_high": change.since_high.isoformat(),
        "raised": change.raised.isoformat(),
        **_ratio_as_json(change.ratio),
        "score": change.score,
        "limit": change.limit,
        "years_to_false_alarm": change.years,
        "ended": change.ended.isoformat() if change.ended else None,
        "end": change.end,
    }


def _evidence_as_json(following: Following | None) -> dict[str, object] | None:
    if following is None or not following.chart.runs:
        return None
    chart = following.chart
    return {
        "down": float(chart.down[-1]),
        "up": float(chart.up[-1]),
        "watch": chart.watch,
        "limit": chart.limit,
        "judges": chart.can_judge,
        "power_runs": _finite(following.power),
        "least_change": chart.least,
        "settled": [change_as_json(change) for change in following.settled],
    }


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None
