"""The report on an acceptance in Markdown, and its table for a terminal.

It uses no templates, so a login node without `iobands[report]` can write it, without figures. The
same files always give the same text.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from iobands.bands.contract import MEDIAN_QUANTILE, Acceptance, AcceptedLine, Outcome, Promise
from iobands.model import FIELD, TIME, VALUE, figure
from iobands.views import writing
from iobands.views.writing import listed, markdown_text, output_width, plural, time_text

_ENVIRONMENT: Final = (
    "environ", "nodes", "tasks", "gib", "file_system_type", "medium", "tool", "tool_version",
    "suite_version", "version", "fullness_percent", "targets_active", "targets_inactive",
    "load_per_node", "other_jobs",
)  # fmt: skip
_PROOFS: Final = (
    "stripe_count_asked", "stripe_count", "stripe_size", "placement", "hints", "hints_in_effect",
    "transport", "transport_in_effect", "fsync", "cache", "mpiio_calls", "movers",
)  # fmt: skip
_VERIFIED: Final = (
    "in each run: the layout of the files, their size on disk, and the data as the tool reads them "
    "back; a run that lacks a proof gives no rate"
)
_NO_FIGURES: Final = (
    "There are no figures: `pip install 'iobands[report]'` installs what draws them."
)
_RAW: Final = (
    "The directory of this report has the contract and the raw results: the lines of the perflogs "
    "and ReFrame's run reports. `SHA256SUMS` has the checksum of each file; the SHA-256 of that "
    "list is"
)
_NOT_SAID: Final = "not recorded"
_MOST_VALUES: Final = 4


def acceptance_lines(acceptance: Acceptance) -> list[str]:
    """Return a table for a terminal, with a row for each line of the contract."""
    rows = [("LINE", "VERDICT", "RATE", "PROMISED", "RUNS")]
    for each in acceptance.lines:
        promise, decision = each.line.promise, each.decision
        rate = "" if decision.rate is None else figure(decision.rate)
        promised, runs = _rate(promise, promise.rate), f"{decision.runs} of {promise.runs}"
        rows.append((each.line.name, decision.outcome.value, rate, promised, runs))
    every = writing.blocks(rows, output_width(), right=(2,), indent="")
    return [line for row in every for line in row]


def acceptance_report(acceptance: Acceptance, digest: str, figures: Sequence[str]) -> str:
    """Return the report; `digest` is the SHA-256 of `SHA256SUMS`, and `figures` are file names."""
    contract = acceptance.contract
    counts = Counter(each.decision.outcome for each in acceptance.lines)
    said = listed([f"{counts[each]} {each.value}" for each in Outcome if counts[each]])
    rows = [
        (
            each.line.name,
            each.decision.outcome.value,
            _promise(each.line.promise),
            _measured(each),
            f"{each.decision.runs} of at most {each.line.promise.runs}",
        )
        for each in acceptance.lines
    ]
    parts = [
        f"# Acceptance: {markdown_text(contract.title)}",
        f"**{said}** of {plural(len(acceptance.lines), 'line')}. System "
        f"{markdown_text(contract.system)}; begun {markdown_text(acceptance.began)}; "
        f"iobands {markdown_text(acceptance.version)}.",
        _table(("Line", "Verdict", "Promised", "Measured", "Runs"), rows),
    ]
    for number, each in enumerate(acceptance.lines):
        parts += _of_line(each, figures[number] if figures else None)
    parts += [
        "## Files",
        *([] if figures else [_NO_FIGURES]),
        _RAW,
        f"```\n{digest}\n```",
        "`sha256sum -c SHA256SUMS` tests the files; `iobands accept --check DIR` also computes the "
        "verdicts and this text from them. The contract has the SHA-256 "
        f"`{contract.digest}`.",
    ]
    return "\n\n".join(parts) + "\n"


def _of_line(accepted: AcceptedLine, drawn: str | None) -> Iterator[str]:
    line, promise, decision = accepted.line, accepted.line.promise, accepted.decision
    runs = accepted.counted
    yield f"## {markdown_text(line.name)}: {decision.outcome.value}"
    yield _decided(accepted)
    if drawn:
        yield f"![Rates and evidence]({drawn})"
    about = {
        "What": ", ".join(f"{name} {value}" for name, value in line.match.items()),
        "Check": str(accepted.by),
        "Promise": _promise(promise),
        "Measured": _measured(accepted),
        "Runs": f"{decision.runs} of at most {promise.runs}, which count as "
        f"{decision.effective:.1f} independent ones",
        "Spread": "not known yet" if decision.spread is None else f"{100 * decision.spread:.1f} %",
        "Evidence": f"{_evidence(accepted):+.2f} nats; met from {decision.to_meet:+.2f}, missed "
        f"from {decision.to_miss:+.2f}",
        "Risks": f"at most {100 * promise.site_risk:g} % that {_least(promise)} or less is called "
        f"met, at most {100 * promise.vendor_risk:g} % that {_rate(promise, promise.rate)} or more "
        f"is called missed{_correlated(promise)}",
    }
    yield _table(("", ""), [*about.items()])
    if accepted.failures:
        reasons = Counter(accepted.failures).most_common(_MOST_VALUES)
        number = len(accepted.failures)
        yield f"{plural(number, 'run')} gave no rate and {_count(number)}:"
        yield "\n".join(f"- {times} ×: {markdown_text(why)}" for why, times in reasons)
    if runs:
        columns = {name: _values(runs, name) for name in (*_ENVIRONMENT, *_PROOFS)}
        known = {n: text for n, text in columns.items() if n in _PROOFS or text != _NOT_SAID}
        yield "### Environment and proof"
        yield _table(("Column", "In the runs"), [*known.items(), ("verified", _VERIFIED)])
        yield "### Runs"
        yield _table(
            ("Time (UTC)", "Job", "Nodes", f"Rate in {promise.unit}", "Evidence"),
            [
                (
                    f"{run[TIME]:%Y-%m-%d %H:%M:%S}",
                    str(run.get("jobid") or _NOT_SAID),
                    str(run.get("job_nodelist") or _NOT_SAID),
                    f"{run[VALUE]:.5g}",
                    f"{evidence:+.2f}",
                )
                for run, evidence in zip(runs, decision.evidence, strict=True)
            ],
        )
    if later := len(accepted.runs) - len(runs):
        yield f"{plural(later, 'later run')} {_count(later)}: the line was decided before."


def _count(runs: int) -> str:
    return "does not count" if runs == 1 else "do not count"


def _decided(accepted: AcceptedLine) -> str:
    promise, decision = accepted.line.promise, accepted.decision
    if decision.outcome is Outcome.UNDECIDED:
        left = accepted.runs_left
        after = f"{left} left" if left else "no more runs are allowed"
        return f"Undecided after {plural(decision.runs, 'run')}; {after}."
    is_met = decision.outcome is Outcome.MET
    other = f"{_least(promise)} or less" if is_met else f"{_rate(promise, promise.rate)} or more"
    odds = figure(math.exp(min(abs(_evidence(accepted)), 50)))
    return (
        f"Decided by run {decision.runs}, on {time_text(accepted.counted[-1][TIME])} UTC: if the "
        f"rate were {other}, such runs would be {odds} times less likely."
    )


def _rate(promise: Promise, rate: float) -> str:
    return f"{figure(rate)} {promise.unit}"


def _least(promise: Promise) -> str:
    return _rate(promise, promise.rate * (1 - promise.tolerance))


def _promise(promise: Promise) -> str:
    share = promise.quantile
    what = "median" if share == MEDIAN_QUANTILE else f"{share:g} quantile"
    return f"{what} {_rate(promise, promise.rate)}, tolerance {100 * promise.tolerance:g} %"


def _correlated(promise: Promise) -> str:
    lasting = promise.lasting_hours
    return f"; correlated runs, over {lasting:g} h, count for less" if lasting else ""


def _measured(accepted: AcceptedLine) -> str:
    decision = accepted.decision
    if decision.rate is None:
        return "no run yet"
    measured = _rate(accepted.line.promise, decision.rate)
    if decision.lower is None or decision.upper is None:
        return measured
    return f"{measured} (90 % interval {figure(decision.lower)} to {figure(decision.upper)})"


def _evidence(accepted: AcceptedLine) -> float:
    return accepted.decision.evidence[-1] if accepted.decision.evidence else 0.0


def _values(runs: Sequence[Mapping[str, Any]], name: str) -> str:
    """Return the values of a column: the range of many numbers, or each value with its runs."""
    values = [run.get(name) for run in runs]
    known = [value for value in values if value is not None]
    unit = f" {FIELD[name].unit}" if FIELD[name].unit else ""
    counts = Counter(_NOT_SAID if each is None else f"{_cell(each)}{unit}" for each in values)
    if len(counts) == 1:
        return next(iter(counts))
    if len(counts) > _MOST_VALUES and all(isinstance(value, int | float) for value in known):
        lacking = len(values) - len(known)
        rest = f"; {_NOT_SAID} in {lacking}" if lacking else ""
        return f"{_cell(min(known))} to {_cell(max(known))}{unit}{rest}"
    most = counts.most_common(_MOST_VALUES)
    more = f"; {len(counts) - len(most)} others" if len(counts) > len(most) else ""
    return "; ".join(f"{value} in {times}" for value, times in most) + more


def _cell(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(map(markdown_text, row))} |" for row in (headings, *rows)]
    return "\n".join([lines[0], f"|{' --- |' * len(headings)}", *lines[1:]])
