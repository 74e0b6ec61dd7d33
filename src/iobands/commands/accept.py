"""The command `iobands accept`: measure until the lines of a contract are decided, and check it."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Annotated, Final

import typer

from iobands.bands.contract import (
    Acceptance,
    AcceptedLine,
    Contract,
    MeasuredBy,
    Outcome,
    parse_contract,
)
from iobands.commands.options import (
    DryRunOption,
    RootOption,
    VerboseOption,
    failure,
    listening,
    root_of,
    seconds_option,
    site_files,
)
from iobands.judge.acceptance import decide
from iobands.measure import (
    GIB_PER_TIB,
    Cost,
    Listener,
    SessionError,
    SessionOutcome,
    Workplace,
    describe,
    measure_apart,
    require_room,
    selection_of,
)
from iobands.model import (
    ACCEPTANCE,
    CRITICAL,
    OK,
    TIME,
    UNKNOWN,
    VALUE,
    WARNING,
    __version__,
    path_part,
    read_content,
    read_small,
    replace_file,
    unknown,
    worst,
)
from iobands.source.acceptance import (
    BEGUN_NAME,
    CONTRACT_NAME,
    REPORT_NAME,
    Begun,
    begun_of,
    changed_since,
    check_of,
    collect,
    hash_of,
    read_begun,
    runs_of_lines,
    seal,
)
from iobands.views import blocks, fitted, output_width, plural, time_text
from iobands.views.acceptance import acceptance_lines, acceptance_report

_STATUS: Final = {
    Outcome.MET: OK,
    Outcome.MISSED: CRITICAL,
    Outcome.UNDECIDED: WARNING,
}
_FIGURES: Final = "figures"


def accept(
    file: Annotated[
        Path | None, typer.Argument(metavar="[FILE]", help="The contract.", show_default=False)
    ] = None,
    check: Annotated[
        Path | None,
        typer.Option(
            "--check", metavar="DIR", help="Recompute the verdicts from DIR; needs no site."
        ),
    ] = None,
    results: Annotated[
        Path | None,
        typer.Option(
            "--results",
            metavar="DIR",
            help="The directory of the results. [default: acceptances/FILE in the site's]",
        ),
    ] = None,
    root: RootOption = None,
    limit: Annotated[
        str,
        typer.Option(
            "--limit", metavar="TIME", help="Begin no run after this time, such as 90m or 4h."
        ),
    ] = "12h",
    dry_run: DryRunOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Measure until the lines of a contract are decided, and write the report.

    First it prints the cost. Each line ends with the run that decides it. After an interruption, or
    when more runs are due, the same command goes on. The exit status is 0 if all lines are met, 2
    if one is missed, 1 if one is undecided, and 3 if something could not be measured or read.
    """
    if (file is None) == (check is None):
        raise failure("accept: name either a contract, or --check and a directory of results")
    if check is not None:
        raise typer.Exit(_checked(check))
    assert file is not None
    seconds = seconds_option(limit)
    content = read_content(file)
    contract = parse_contract(content, file)
    found = root_of(root)
    if not (found / "config" / "systems" / f"{path_part(contract.system)}.py").is_file():
        names = sorted(each.stem for each in (found / "config" / "systems").glob("[!_]*.py"))
        raise contract.document.error(["system"], unknown(contract.system, names))
    directory = (results or found / "acceptances" / file.stem).absolute()
    try:
        described = describe(found, ["-t", "full", f"--system={contract.system}"])
    except SessionError as error:
        raise failure(str(error)) from error
    chosen = [check_of(contract, number, described) for number in range(len(contract.lines))]
    checks = tuple(by for by, _ in chosen)
    begun = begun_of(directory, contract, content, checks, __version__, dry=dry_run)
    for name in _changed(directory):
        typer.echo(f"iobands: {name}: was changed; the site's perflogs count", err=True)
    _Accepting(found, directory, contract, begun, dict(chosen)).run(seconds, dry_run, verbose)


class _Accepting:
    """An acceptance under way: what is measured next, and what is written after each round."""

    def __init__(
        self,
        root: Path,
        directory: Path,
        contract: Contract,
        begun: Begun,
        costs: Mapping[MeasuredBy, Cost],
    ) -> None:
        self._root, self._directory = root, directory
        self._contract, self._begun = contract, begun
        self._costs = costs
        self._stuck: set[MeasuredBy] = set()

    def run(self, seconds: float, dry_run: bool, verbose: bool) -> None:
        """Print the cost, measure what is missing, and end with the exit status."""
        now = self._judged(write=not dry_run)
        typer.echo(self._cost(now), nl=False)
        if dry_run:
            return
        require_room(self._directory)
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
            before = self._runs_by_check(now)
            problems = self._measure(due, left, verbose)
            now = self._judged(write=True)
            after = self._runs_by_check(now)
            self._stuck |= {by for by in due if before[by] == after[by]}
        self._end(now, problems)

    def _judged(self, *, write: bool) -> Acceptance:
        """Collect the runs, judge the lines and, with `write`, write checksums and report."""
        directory = self._directory
        if not write and not (directory / BEGUN_NAME).exists():
            return _acceptance(self._contract, self._begun, directory)
        if write:
            collect(self._root / "perflogs", directory, self._begun)
        found = _acceptance(self._contract, self._begun, directory)
        if write:
            figures = _figures(found, directory)
            digest = seal(directory)
            text = acceptance_report(found, digest, figures)
            replace_file(directory / REPORT_NAME, text.encode())
        return found

    def _missing(self, now: Acceptance) -> dict[MeasuredBy, datetime]:
        """Return the checks that have an undecided line, and from when on each may run."""
        found: dict[MeasuredBy, datetime] = {}
        for by, line in zip(self._begun.lines, now.lines, strict=True):
            if not line.runs_left or by in self._stuck:
                continue
            gap = timedelta(hours=line.line.promise.spacing_hours)
            due = line.runs[-1][TIME] + gap if line.runs else self._begun.since
            found[by] = min(due, found.get(by, due))
        return found

    def _measure(self, due: Sequence[MeasuredBy], seconds: float, verbose: bool) -> list[str]:
        """Run checks, and return what is wrong."""
        together = defaultdict(list)
        for by in due:
            together[by.partition, by.environ].append(by.check)
        selections = [
            selection_of(names, f"{self._begun.system}:{partition}", environ, ACCEPTANCE)
            for (partition, environ), names in together.items()
        ]
        read = site_files(self._root / "config" / "systems")

        def work(listener: Listener) -> list[SessionOutcome]:
            return measure_apart(Workplace(self._root, read, listener), selections, seconds)

        outcomes = listening(verbose, work, "iobands accept")
        for note in (note for outcome in outcomes for note in outcome.notes):
            typer.echo(f"iobands: {note}", err=True)
        return [problem for outcome in outcomes for problem in outcome.problems]

    def _runs_by_check(self, now: Acceptance) -> dict[MeasuredBy, int]:
        found: defaultdict[MeasuredBy, int] = defaultdict(int)
        for by, line in zip(self._begun.lines, now.lines, strict=True):
            found[by] += len(line.runs)
        return found

    def _cost(self, now: Acceptance) -> str:
        """Return what the runs that are left cost at most, by the check of some lines."""
        left: dict[MeasuredBy, int] = {}
        for by, line in zip(self._begun.lines, now.lines, strict=True):
            left[by] = max(left.get(by, 0), line.runs_left)
        rows = [("CHECK", "RUNS", "TiB", "h")]
        total = [0, 0.0, 0.0]
        for by, runs in left.items():
            cost = self._costs[by]
            each = (runs, runs * cost.written_gib / GIB_PER_TIB, runs * cost.node_hours)
            total = [one + more for one, more in zip(total, each, strict=True)]
            rows.append((by.check, f"{runs}", f"{each[1]:.3g}", f"{each[2]:.3g}"))
        rows.append(("all", f"{total[0]}", f"{total[1]:.3g}", f"{total[2]:.3g}"))
        lines = [
            line for row in blocks(rows, output_width(), right=(1, 2, 3), indent="") for line in row
        ]
        lines += ["", "Upper bounds: most lines are decided sooner (h: node hours).", ""]
        return fitted(lines)

    def _end(self, now: Acceptance, problems: Sequence[str]) -> None:
        """Print the verdicts and what comes next, and end with the exit status."""
        said = [*acceptance_lines(now), ""]
        stuck = [
            f"{line.line.name}: {line.failures[-1] if line.failures else 'no run'}"
            for by, line in zip(self._begun.lines, now.lines, strict=True)
            if by in self._stuck and line.runs_left
        ]
        if missing := self._missing(now):
            when = min(missing.values())
            due = "now" if when <= datetime.now(timezone.utc) else f"at {time_text(when)} UTC"
            said.append(f"{plural(len(missing), 'check')} left to run, due {due}: call it again.")
        said += [f"Report: {self._directory / REPORT_NAME}", f"SHA-256: {hash_of(self._directory)}"]
        typer.echo(fitted(said), nl=False)
        for problem in (*problems, *(f"gave no rate: {each}" for each in stuck)):
            typer.echo(f"IOBANDS UNKNOWN: {problem}", err=True)
        raise typer.Exit(worst([_status_of(now), UNKNOWN if problems or stuck else OK]))


def _checked(directory: Path) -> int:
    """Print the verdicts by the raw results, and what was changed; return the exit status."""
    begun = read_begun(directory)
    if begun is None:
        raise failure(f"{directory}: has no results of an acceptance ({BEGUN_NAME} is missing)")
    changed = changed_since(directory)
    path = directory / CONTRACT_NAME
    contract = parse_contract(read_content(path), path)
    if (contract.digest, contract.system) != (begun.contract, begun.system):
        changed.append(f"{CONTRACT_NAME}, since the acceptance began")
    if len(contract.lines) != len(begun.lines):
        raise failure(f"{path}: has other lines than {BEGUN_NAME}; restore both")
    found, digest = _acceptance(contract, begun, directory), hash_of(directory)
    figures = sorted(each.name for each in (directory / _FIGURES).glob("*.svg"))
    text = acceptance_report(found, digest, _names(figures))
    with suppress(FileNotFoundError):
        if read_small(directory / REPORT_NAME).decode(errors="replace") == text:
            text = ""
    if text:
        newer = "" if begun.version == __version__ else f" (written by iobands {begun.version}?)"
        changed.append(f"{REPORT_NAME}: is not what the files give{newer}")
    typer.echo(fitted([*acceptance_lines(found), "", f"SHA-256: {digest}"]), nl=False)
    for each in changed:
        typer.echo(f"IOBANDS UNKNOWN: changed: {each}", err=True)
    if not changed:
        typer.echo("No file has changed. Compare the SHA-256 with the one in your own report.")
    return UNKNOWN if changed else _status_of(found)


def _status_of(acceptance: Acceptance) -> int:
    return worst(_STATUS[each.decision.outcome] for each in acceptance.lines)


def _acceptance(contract: Contract, begun: Begun, directory: Path) -> Acceptance:
    lines = []
    every = runs_of_lines(directory, contract, begun)
    for line, by, (runs, failures) in zip(contract.lines, begun.lines, every, strict=True):
        hours = [(run[TIME] - begun.since).total_seconds() / 3600 for run in runs]
        decision = decide([run[VALUE] for run in runs], hours, line.promise)
        lines.append(AcceptedLine(line, by, decision, runs, failures))
    return Acceptance(contract, begun.began, begun.version, tuple(lines))


def _figures(acceptance: Acceptance, directory: Path) -> list[str]:
    """Draw a figure of each line and return their names; none if matplotlib is missing."""
    try:
        from iobands.views.figures import acceptance_figure  # noqa: PLC0415 (slow to load)
    except ImportError:
        return []
    (directory / _FIGURES).mkdir(exist_ok=True)
    names = [f"line-{number:03}.svg" for number in range(1, len(acceptance.lines) + 1)]
    for name, line in zip(names, acceptance.lines, strict=True):
        replace_file(directory / _FIGURES / name, acceptance_figure(line))
    return _names(names)


def _names(figures: Sequence[str]) -> list[str]:
    return [f"{_FIGURES}/{name}" for name in figures]


def _changed(directory: Path) -> list[str]:
    with suppress(FileNotFoundError):
        return changed_since(directory)
    return []
