"""The command `iobands accept`: measure until a contract is decided, or check its results."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Annotated, Final

import typer

from iobands import measure, model
from iobands.bands.contract import (
    Acceptance,
    AcceptedLine,
    Contract,
    MeasuredBy,
    Outcome,
    parse_contract,
)
from iobands.commands import cli
from iobands.judge.acceptance import decide
from iobands.model import OK, __version__, figure, read_content, worst
from iobands.source import acceptance as source
from iobands.views.acceptance import acceptance_lines, acceptance_report
from iobands.views.writing import blocks, output_width, plural, time_text

_STATUS: Final = {Outcome.MET: OK, Outcome.MISSED: model.CRITICAL, Outcome.UNDECIDED: model.WARNING}
_FIGURES: Final = "figures"


def accept(
    file: Annotated[Path | None, cli.argument("[FILE]", "The contract.")] = None,
    check: Annotated[
        Path | None, "DIR", "Compute the verdicts again from the results in DIR; needs no site."
    ] = None,
    results: Annotated[
        Path | None,
        "DIR",
        "The directory of the results. [default: acceptances/FILE in the site's directory]",
    ] = None,
    root: cli.RootOption = None,
    limit: Annotated[str, "TIME", "Begin no run after this time, such as 90m or 4h."] = "12h",
    dry_run: cli.DryRunOption = False,
    verbose: cli.VerboseOption = False,
) -> None:
    """Measure until the lines of a contract are decided, and write the report.

    It first prints the cost. No line is measured after the run that decides it. After an
    interruption, or when more runs are due, the same command continues. The exit status is 0 if all
    lines are met, 2 if one is missed, 1 if one is undecided, and 3 if something could not be
    measured or read.
    """
    if (file is None) == (check is None):
        raise cli.failure("accept: name either a contract, or --check and a directory of results")
    if check is not None:
        cli.refuse("with --check", "results", "root", "limit", "dry_run", "verbose")
        raise typer.Exit(_checked(check))
    assert file is not None
    seconds, content = cli.seconds_option(limit), read_content(file)
    contract, found = parse_contract(content, file), cli.root_of(root)
    names = sorted(each.stem for each in (found / "config" / "systems").glob("[!_]*.py"))
    if model.path_part(contract.system) not in names:
        raise contract.document.error(["system"], model.unknown(contract.system, names))
    directory = (results or found / "acceptances" / file.stem).absolute()
    described = measure.describe(found, ["-t", "full", f"--system={contract.system}"])
    costs = [source.check_of(contract, number, described) for number in range(len(contract.lines))]
    checks = tuple(by for by, _ in costs)
    begun = source.begun_of(directory, contract, content, checks, dry=dry_run)
    with suppress(FileNotFoundError):
        for name in source.changed_since(directory):
            cli.note(f"{name}: was changed; the site's perflogs count")
    _Accepting(found, directory, contract, begun, dict(costs)).run(seconds, dry_run, verbose)


@dataclass
class _Accepting:
    """An acceptance in progress: alternately measures checks that are due and judges the lines."""

    root: Path
    directory: Path
    contract: Contract
    begun: source.Begun
    costs: Mapping[MeasuredBy, measure.Cost]
    stuck: set[str] = field(default_factory=set)  # names of lines whose check ran without a rate

    def run(self, seconds: float, dry_run: bool, verbose: bool) -> None:
        """Print the cost, measure undecided lines until `seconds` are over, and exit."""
        now = self._judged(write=not dry_run)
        cli.say(*self._cost(now))
        if dry_run:
            return
        cli.say("")
        measure.require_room(self.directory)
        until = time.monotonic() + seconds
        problems: list[str] = []
        while not problems and (missing := self._missing(now)):
            left, moment = until - time.monotonic(), datetime.now(timezone.utc)
            wait = (min(missing.values()) - moment).total_seconds()
            if left <= max(wait, 0):
                break
            if wait > 0:
                time.sleep(wait)
                continue
            due = [by for by, when in missing.items() if when <= moment]
            before = now
            problems = self._measure(due, left, verbose)
            now = self._judged(write=True)
            self.stuck |= {
                line.line.name
                for line, was in zip(now.lines, before.lines, strict=True)
                if line.by in due and len(line.runs) == len(was.runs)
            }
        self._end(now, problems)

    def _judged(self, *, write: bool) -> Acceptance:
        """Judge the lines; with `write`, copy new runs before, and write a report after."""
        directory = self.directory
        if write:
            source.collect(self.root / "perflogs", directory, self.begun)
        found = _acceptance(self.contract, self.begun, directory)
        if write:
            figures = _figures(found, directory)
            text = acceptance_report(found, source.seal(directory), figures)
            model.replace_file(directory / source.REPORT_NAME, text.encode())
        return found

    def _missing(self, now: Acceptance) -> dict[MeasuredBy, datetime]:
        """Return the checks that an undecided line needs, and when each may run next."""
        found: dict[MeasuredBy, datetime] = {}
        for line in now.lines:
            if line.runs_left and line.line.name not in self.stuck:
                gap = timedelta(hours=line.line.promise.spacing_hours)
                due = line.runs[-1][model.TIME] + gap if line.runs else self.begun.since
                found[line.by] = min(due, found.get(line.by, due))
        return found

    def _measure(self, due: Sequence[MeasuredBy], seconds: float, verbose: bool) -> list[str]:
        """Run the checks that are `due`, for at most `seconds`, and return the problems."""
        together = defaultdict(list)
        for by in due:
            together[f"{self.begun.system}:{by.partition}", by.environ].append(by.check)
        selections = [
            measure.selection_of(names, place, environ, model.ACCEPTANCE)
            for (place, environ), names in together.items()
        ]
        work = partial(measure.measure_apart, selections=selections, limit=seconds)
        outcomes = cli.at_work(self.root, verbose, work, "iobands accept")
        for note in chain(*(outcome.notes for outcome in outcomes)):
            cli.note(note)
        return [*chain(*(outcome.problems for outcome in outcomes))]

    def _cost(self, now: Acceptance) -> list[str]:
        """Return a table of checks: the most runs that are left, with their TiB and node hours."""
        left: Counter[MeasuredBy] = Counter()
        for line in now.lines:
            left[line.by] = max(left[line.by], line.runs_left)
        gib_per_tib, costs = measure.GIB_PER_TIB, self.costs
        tib = {by: runs * costs[by].written_gib / gib_per_tib for by, runs in left.items()}
        hours = {by: runs * costs[by].node_hours for by, runs in left.items()}
        rows: list[tuple[str, ...]] = [("CHECK", "RUNS", "TiB", "h")]
        for by, runs in left.items():
            rows.append((by.check, f"{runs}", figure(tib[by]), figure(hours[by])))
        sums = (figure(sum(each.values())) for each in (tib, hours))
        rows.append(("all", f"{left.total()}", *sums))
        table = blocks(rows, output_width(), right=(1, 2, 3), indent="")
        bounds = "Upper bounds: most lines are decided sooner (h: node hours)."
        return [*chain(*table), "", bounds]

    def _end(self, now: Acceptance, problems: Sequence[str]) -> None:
        said = [*acceptance_lines(now), ""]
        stuck = [
            f"gave no rate: {line.line.name}: {line.failures[-1] if line.failures else 'no run'}"
            for line in now.lines
            if line.line.name in self.stuck and line.runs_left
        ]
        if missing := self._missing(now):
            when = min(missing.values())
            due = "now" if when <= datetime.now(timezone.utc) else f"at {time_text(when)} UTC"
            left = f"{plural(len(missing), 'check')} left to run, due {due}"
            said.append(f"{left}: run iobands accept again.")
        said.append(f"Report: {self.directory / source.REPORT_NAME}")
        cli.say(*said, f"SHA-256: {source.hash_of(self.directory)}")
        raise typer.Exit(worst([_status_of(now), cli.problems([*problems, *stuck])]))


def _checked(directory: Path) -> int:
    """Judge the copied results anew, print verdicts and changed files; return the exit status."""
    if (begun := source.read_begun(directory)) is None:
        raise cli.failure(f"{directory}: no acceptance began here; {source.BEGUN_NAME} is missing")
    changed = source.changed_since(directory)
    path = directory / source.CONTRACT_NAME
    contract = parse_contract(read_content(path), path)
    if (contract.digest, contract.system) != (begun.contract, begun.system):
        changed.append(f"{source.CONTRACT_NAME}, since the acceptance began")
    if len(contract.lines) != len(begun.lines):
        problem = f"has other lines than {source.BEGUN_NAME}; restore both from a backup"
        raise cli.failure(f"{path}: {problem}")
    found, digest = _acceptance(contract, begun, directory), source.hash_of(directory)
    figures = sorted(f"{_FIGURES}/{each.name}" for each in (directory / _FIGURES).glob("*.svg"))
    written = b""
    with suppress(FileNotFoundError):
        written = model.read_small(directory / source.REPORT_NAME)
    if written.decode(errors="replace") != acceptance_report(found, digest, figures):
        newer = "" if begun.version == __version__ else f" (written by iobands {begun.version}?)"
        changed.append(f"{source.REPORT_NAME}: is not what the files give{newer}")
    cli.say(*acceptance_lines(found), "", f"SHA-256: {digest}")
    if changed:
        return cli.problems(f"changed: {each}" for each in changed)
    cli.say("No file has changed. Compare the SHA-256 with the one in your own report.")
    return _status_of(found)


def _status_of(acceptance: Acceptance) -> int:
    return worst(_STATUS[each.decision.outcome] for each in acceptance.lines)


def _acceptance(contract: Contract, begun: source.Begun, directory: Path) -> Acceptance:
    lines = []
    every = source.runs_of_lines(directory, contract, begun)
    for line, by, (runs, failures) in zip(contract.lines, begun.lines, every, strict=True):
        hours = [(run[model.TIME] - begun.since).total_seconds() / 3600 for run in runs]
        decision = decide([run[model.VALUE] for run in runs], hours, line.promise)
        lines.append(AcceptedLine(line, by, decision, runs, failures))
    return Acceptance(contract, begun.began, begun.version, tuple(lines))


def _figures(acceptance: Acceptance, directory: Path) -> list[str]:
    """Draw a figure of each line and return the file names; none if matplotlib is missing."""
    try:
        from iobands.views.figures import acceptance_figure  # noqa: PLC0415 (slow to load)
    except ImportError:
        return []
    (directory / _FIGURES).mkdir(exist_ok=True)
    names = []
    for number, line in enumerate(acceptance.lines, 1):
        names.append(f"{_FIGURES}/line-{number:03}.svg")
        model.replace_file(directory / names[-1], acceptance_figure(line))
    return names
