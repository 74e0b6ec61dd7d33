"""What is known of a site as plain data, for other programs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime
from enum import Enum
from pathlib import Path

import numpy as np

from iobands.model import SeriesKey, slug
from iobands.snapshot import LARGE_DROP, Alert, Evidence, Incident, Series, Snapshot
from iobands.views.format import summary

#: The version of the data's form.
SCHEMA = "iobands-status/3"


def as_json(site: Snapshot) -> dict[str, object]:
    """Return plain data: values in the unit beside them, times ISO 8601, unknown as null."""
    return {
        "schema": SCHEMA,
        "status": site.exit_status,
        "summary": summary(site),
        "time": site.now.isoformat(),
        "last_session": site.last_session and _fields(site.last_session),
        "false_alarms_a_year": site.false_alarms_a_year,
        "threshold": site.threshold,
        "alerts": [_alert(alert) for alert in site.alerts],
        "incidents": [_incident(each, site) for each in site.incidents],
        "series": [_series(series, site) for series in site.series],
        "places": [_fields(each, "speeds", "comparisons_a_year") for each in site.places],
        "outliers": [
            {"system": each.system, "file_system": each.name, **_fields(each.outliers)}
            for each in site.file_systems
        ],
        "superseded": list(site.superseded),
        "retired": [series.label for series in site.retired],
        "future": [{"series": each.label, "when": plain(each.when)} for each in site.future],
        "maintenance": plain(site.maintenance),
        "skipped": plain(site.skipped),
        "obstacles": [_fields(each, "keys") for each in site.obstacles],
        "rejected": plain(site.rejected),
        "rejected_lines": site.rejected_lines,
        "leftovers": plain(site.leftovers),
        "warnings": plain(site.warnings),
    }


def plain(value: object) -> object:  # noqa: PLR0911 (one a type)
    """Return `value` as what JSON knows; infinite numbers and those that are none become null."""
    match value:
        case SeriesKey():
            return value.fields()
        case Mapping():
            return {str(name): plain(each) for name, each in value.items()}
        case tuple() | list():
            return [plain(each) for each in value]
        case Enum():
            return value.value
        case np.generic():
            return plain(value.item())
        case float():
            return value if math.isfinite(value) else None
        case datetime():
            return value.isoformat()
        case Path():
            return str(value)
    return _fields(value) if is_dataclass(value) else value


def _fields(value: object, *without: str) -> dict[str, object]:
    """Return the fields of a dataclass by name."""
    names = [each.name for each in fields(value) if each.name not in without]  # type: ignore[arg-type]
    return {name: plain(getattr(value, name)) for name in names}


def _alert(alert: Alert) -> dict[str, object]:
    members = [
        {
            "series": member.series.label,
            "ratio": plain(member.ratio),
            "baseline": plain(member.baseline),
            "unit": member.series.key.unit,
        }
        for member in alert.members
    ]
    return {**_fields(alert, "members"), "is_quiet": alert.is_quiet, "members": members}


def _incident(incident: Incident, site: Snapshot) -> dict[str, object]:
    labels = {series.key: series.label for series in site.series}
    ratios = {labels[key]: ratio for key, ratio in incident.ratios.items()}
    return {"name": incident.name, **_fields(incident, "ratios"), "ratios": ratios}


def _series(series: Series, site: Snapshot) -> dict[str, object]:
    status, evidence = series.status, series.status.evidence
    epoch = series.epoch
    return {
        "label": series.label,
        "name": slug(series.key),
        **series.key.fields(),
        "unit": series.key.unit,
        **_fields(status, "evidence"),
        "alerts": [alert.subject for alert in site.alerts_on(series.key)],
        "in_effect": plain(series.in_effect),
        "epoch": _fields(epoch, "bands") if epoch else None,
        "outliers": plain(series.outliers),
        "actions": plain(series.actions),
        "changes": plain(evidence.changes) if evidence else [],
        "evidence": _evidence(evidence) if evidence and len(evidence.rows) else None,
        "newest": plain(series.history.newest),
    }


def _evidence(evidence: Evidence) -> dict[str, object]:
    return {
        "down": plain(evidence.down[-1]),
        "up": plain(evidence.up[-1]),
        "watch": evidence.watch,
        "threshold": evidence.threshold,
        "can_judge": evidence.can_judge,
        "power_runs": evidence.power[f"{LARGE_DROP:g}"],
        "baseline_runs": evidence.baseline_runs,
    }
