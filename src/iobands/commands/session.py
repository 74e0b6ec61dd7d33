"""A session of `iobands run`, and what it does between sessions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, timezone
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Final, TypeVar

import typer
from rich.console import Console
from rich.text import Text

from iobands.commands.notify import send_ping, settings_of, tell_of
from iobands.commands.options import SiteOptions, failure, judgement_of
from iobands.commands.push import push_after
from iobands.commands.report import report_to
from iobands.commands.status import log_news, print_digest
from iobands.judge.site import JudgedSite
from iobands.judge.suspects import asks_of, repeats_of
from iobands.measure import Listener, Selection, SessionError
from iobands.measure.plan import (
    Limits,
    Plan,
    inputs_of,
    limits_of,
    read_plan,
    timed,
    within_hours,
    write_plan,
)
from iobands.measure.session import measure, measure_again
from iobands.model import OK, UNKNOWN, Ask, FileError, slug, worst
from iobands.notify.settings import Settings
from iobands.snapshot import Snapshot, State
from iobands.source.site_file import read_site_file
from iobands.views import blocks, due_text, figure, fitted, printable, summary
from iobands.views.digest import MAIL_WIDTH
from iobands.views.notes import asked_text

_T = TypeVar("_T")
_NOBODY: Final = Settings()
_DAY: Final = timedelta(days=1)


@dataclass
class _Judgement:
    """The site as it was judged last, with the plan that followed."""

    options: SiteOptions
    with_power: bool
    site: JudgedSite = field(init=False)

    def renewed(self) -> JudgedSite:
        """Judge the site, and write the plan of what to measure again; the lock is held."""
        inputs = inputs_of(self.options.config_of("bands").parent)  # before it reads them
        before = getattr(self, "site", None)
        judged = judgement_of(self.options, with_power=self.with_power, before=before)
        now, perflogs = datetime.now(timezone.utc), self.options.perflogs_directory
        planned, asked = _timed(self.options, judged), read_plan(perflogs).asked
        try:
            write_plan(perflogs, Plan(now, inputs, planned, asked), now)
        except OSError as error:
            typer.echo(f"iobands: the plan of further runs is not written: {error}", err=True)
        self.site = replace(judged, snapshot=replace(judged.snapshot, planned=planned))
        return self.site


@dataclass(frozen=True)
class How:
    """The options of a session: its limit in seconds, and what follows it."""

    limit: float
    dashboard: Path | None
    notify: bool
    verbose: bool


def run_session(
    options: SiteOptions, tag: str, system: str | None, extra: tuple[str, ...], how: How
) -> None:
    """Measure everything that is selected, and repeat what looks wrong."""
    root, began = _root(options), datetime.now(timezone.utc)
    selection = Selection(tag, system, extra)
    people, unread = _people(options, how.notify)
    statuses = [send_ping(people, "start")]

    judgement = _Judgement(options, with_power=how.dashboard is not None)

    def judge() -> tuple[Ask, ...]:
        found = judgement.renewed()
        return repeats_of(found.snapshot, began, found.runs)

    read = partial(read_site_file, root / "config" / "systems")
    try:
        outcome = listening(
            how.verbose,
            lambda listener: measure(root, selection, read, how.limit, listener, judge),
        )
    except typer.Exit as end:
        send_ping(people, "fail", str(end.__cause__ or ""))
        raise
    problems = [*outcome.problems, *unread]
    site, sent = _told(options, how, outcome.notes, problems, people, judgement, print_digest)
    statuses.append(send_ping(people, "fail" if problems else "", summary(site)))
    raise typer.Exit(worst([*statuses, sent, site.exit_status, UNKNOWN if problems else OK]))


def run_suspects(options: SiteOptions, how: How) -> None:
    """Measure what is in doubt and due, under the lock; nothing while a session is measuring."""
    root = _root(options)
    read = partial(read_site_file, root / "config" / "systems")

    judgement = _Judgement(options, with_power=how.dashboard is not None)

    def judge() -> list[Ask]:
        planned, now = judgement.renewed().snapshot.planned, datetime.now(timezone.utc)
        return [each for each in planned if each.is_due(now)]

    people, problems = _people(options, how.notify)
    again = listening(
        how.verbose, lambda listener: measure_again(root, judge, read, how.limit, listener)
    )
    if again is None or not (again.measured or again.problems or again.notes):
        return
    problems += again.problems
    show = partial(_say_again, measured=again.measured)
    site, sent = _told(options, how, again.notes, problems, people, judgement, show)
    raise typer.Exit(worst([sent, site.exit_status, UNKNOWN if problems else OK]))


def show_plan(options: SiteOptions) -> None:
    """Print what would be measured again in the next 24 hours, and why; write nothing."""
    judged, now = judgement_of(options), datetime.now(timezone.utc)
    site = judged.snapshot
    places = sorted({each.place for each in asks_of(site, judged.runs)})
    if not places:
        typer.echo("Nothing is in doubt, so nothing is measured again.")
        return
    read = partial(read_site_file, options.config_of("systems"))
    limits = {place: limits_of(read, place) for place in places}
    asks, asked = _timed(options, judged), read_plan(options.perflogs_directory).asked
    rows = [("NEXT (UTC)", "WHAT", "WHY")]
    for ask in asks:
        if ask.due is None or ask.due - now < _DAY:
            rows.append((due_text(ask, now), printable(asked_text(site, ask)), printable(ask.why)))
    lines = [*chain(*blocks(rows, MAIL_WIDTH, wrapped=(1, 2), indent=""))]
    lines = lines if rows[1:] else ["Nothing is measured again in the next 24 hours."]
    for place, own in limits.items():
        spent = sum(each.node_hours for each in asked if each.check[0] == place)
        if own.allow:
            hours = f"{own.node_hours_per_day:g} node hours in 24 hours, {spent:.3g} of them spent"
            text = f"every {own.every:.3g} h, at most {own.per_day} runs of a check and {hours}"
        else:
            text = "in doubt, but `suspects` in the site file switches repeats off"
        lines += ["", f"{place}: {text}"]
    typer.echo(fitted(lines, MAIL_WIDTH), nl=False)


def _timed(options: SiteOptions, judged: JudgedSite) -> tuple[Ask, ...]:
    site, now = judged.snapshot, datetime.now(timezone.utc)
    read = partial(read_site_file, options.config_of("systems"))
    asked = read_plan(options.perflogs_directory).asked
    limits: dict[Ask, Limits] = {}
    for ask in asks_of(site, judged.runs):
        windows = [
            each for each in site.maintenance.get(ask.system, ()) if each.is_of(ask.file_system)
        ]
        spans = [*(each.following(now) for each in windows)]
        spans += [span for each in windows for span in each.spans(now)[-1:]]
        quiet = [(span.begin, span.end) for span in spans if span]
        own = limits_of(read, ask.place)
        if found := timed(ask, asked, own, quiet, now):
            limits[found] = own
    return tuple(within_hours([*limits], asked, limits, now))


def _root(options: SiteOptions) -> Path:
    return options.perflogs_directory.parent


def _people(options: SiteOptions, wanted: bool) -> tuple[Settings, list[str]]:
    """Return whom to tell; a damaged file costs messages, but no samples."""
    try:
        return settings_of(options) if wanted else _NOBODY, []
    except FileError as error:
        return _NOBODY, [str(error)]


def _told(
    options: SiteOptions,
    how: How,
    notes: Sequence[str],
    problems: Sequence[str],
    people: Settings,
    judgement: _Judgement,
    show: Callable[[Snapshot], None],
) -> tuple[Snapshot, int]:
    """Log the alerts, and show and send what there is.

    Return the snapshot, and the exit status of sending.
    """
    log_news(options, judgement.site)
    site = judgement.site.snapshot
    show(site)
    if how.dashboard:
        report_to(how.dashboard, judgement.site, options.config_of("systems"))
    for note in notes:
        typer.echo(f"iobands: {note}", err=True)
    for problem in problems:
        typer.echo(f"IOBANDS UNKNOWN: {problem}", err=True)
    status = OK if people is _NOBODY else tell_of(site, people, options)
    push_after(options)
    return site, status


def _say_again(site: Snapshot, measured: Sequence[Ask]) -> None:
    """Print the first line of the digest, and how what was measured again stands now."""
    names = {name for ask in measured for name in ask.series}
    lines = [summary(site)]
    lines += [f"Measured again: {asked_text(site, ask)}" for ask in measured if not ask.series]
    for each in site.series:
        status = each.status
        if slug(each.key) in names and status.value is not None:
            value = f"{figure(status.value)} {each.key.unit}"
            says = status.verdict if status.state is State.HEALTHY else status.state.value
            lines.append(f"Measured again: {each.label}, {value}: {says}")
    typer.echo(fitted(lines, MAIL_WIDTH), nl=False)


def listening(verbose: bool, work: Callable[[Listener], _T], command: str = "iobands run") -> _T:
    """Do `work` with a progress line on a terminal, or with ReFrame's whole output.

    Ends with a message if nothing was measured.
    """
    console = Console(stderr=True, highlight=False, markup=False)
    try:
        if verbose:
            return work(Listener(line=typer.echo, step=lambda _: None))
        with console.status(command) as status:  # prints nothing unless on a terminal
            listener = Listener(
                line=lambda _: None,
                step=lambda text: status.update(Text(f"{command}: {text}")),
            )
            return work(listener)
    except SessionError as error:
        raise failure(str(error)) from error
