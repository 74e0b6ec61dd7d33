"""A session of `iobands run`, what it does between sessions, and the command `iobands notify`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, timezone
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Annotated, Final

import typer

from iobands.commands.export import push_after
from iobands.commands.judging import checked, judgement_of, remember, site_of
from iobands.commands.options import DryRunOption, SiteOptions, listening, site_files
from iobands.commands.report import report_to
from iobands.commands.status import log_news, print_digest
from iobands.judge.site import JudgedSite
from iobands.judge.suspects import asks_of, repeats_of
from iobands.measure import (
    Limits,
    Plan,
    Selection,
    Workplace,
    inputs_of,
    limits_of,
    measure,
    measure_again,
    read_plan,
    timed,
    within_hours,
    write_plan,
)
from iobands.model import OK, UNKNOWN, Ask, FileError, slug, worst
from iobands.notify import deliver
from iobands.notify.outbox import Outbox, OutboxState, Settings, read_settings
from iobands.snapshot import Snapshot, State
from iobands.views import asked_text, blocks, due_text, figure, fitted, printable, summary
from iobands.views.digest import MAIL_WIDTH, performance

_NOBODY: Final = Settings()
_DAY: Final = timedelta(days=1)


@dataclass
class _Judgement:
    """The site as it was judged last, with the plan that followed, and what is kept of it."""

    options: SiteOptions
    with_power: bool
    site: JudgedSite = field(init=False)
    before: JudgedSite | None = None  # None: the memory is as it was kept last time

    def renewed(self) -> JudgedSite:
        """Judge the site, and write the plan of what to measure again; the lock is held."""
        inputs = inputs_of(self.options.config_of("bands").parent)  # before it reads them
        judge = partial(judgement_of, self.options, with_power=self.with_power, keeps=True)
        memory = self.before.memory if self.before else None
        judged = checked(judge(memory=memory), partial(judge, memory={}))
        now, perflogs = datetime.now(timezone.utc), self.options.perflogs_directory
        planned, asked = _timed(self.options, judged), read_plan(perflogs).asked
        try:
            write_plan(perflogs, Plan(now, inputs, planned, asked), now)
        except OSError as error:
            typer.echo(f"iobands: the plan of further runs is not written: {error}", err=True)
        self.site = replace(judged, snapshot=replace(judged.snapshot, planned=planned))
        self.before = self.site
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

    read = site_files(root / "config" / "systems")
    try:
        outcome = listening(
            how.verbose,
            lambda listener: measure(Workplace(root, read, listener), selection, how.limit, judge),
        )
    except typer.Exit as end:
        send_ping(people, "fail", str(end.__cause__ or ""))
        raise
    problems = [*outcome.problems, *unread]
    site, sent = _concluded(options, how, outcome.notes, problems, people, judgement, print_digest)
    statuses.append(send_ping(people, "fail" if problems else "", summary(site)))
    raise typer.Exit(worst([*statuses, sent, site.exit_status, UNKNOWN if problems else OK]))


def run_suspects(options: SiteOptions, how: How) -> None:
    """Measure what is in doubt and due, under the lock; nothing while a session is measuring."""
    root = _root(options)
    read = site_files(root / "config" / "systems")

    judgement = _Judgement(options, with_power=how.dashboard is not None)

    def judge() -> list[Ask]:
        planned, now = judgement.renewed().snapshot.planned, datetime.now(timezone.utc)
        return [each for each in planned if each.is_due(now)]

    people, problems = _people(options, how.notify)
    again = listening(
        how.verbose,
        lambda listener: measure_again(Workplace(root, read, listener), judge, how.limit),
    )
    if again is None or not (again.measured or again.problems or again.notes):
        return
    problems += again.problems
    show = partial(_say_again, measured=again.measured)
    site, sent = _concluded(options, how, again.notes, problems, people, judgement, show)
    raise typer.Exit(worst([sent, site.exit_status, UNKNOWN if problems else OK]))


def show_plan(options: SiteOptions) -> None:
    """Print what would be measured again in the next 24 hours, and why; write nothing."""
    judged, now = judgement_of(options), datetime.now(timezone.utc)
    site = judged.snapshot
    places = sorted({each.place for each in asks_of(site, judged.runs)})
    if not places:
        typer.echo("Nothing is in doubt, so nothing is measured again.")
        return
    read = site_files(options.config_of("systems"))
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
    read = site_files(options.config_of("systems"))
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
    """Return who gets messages; a damaged file costs messages, but no samples."""
    try:
        return settings_of(options) if wanted else _NOBODY, []
    except FileError as error:
        return _NOBODY, [str(error)]


def _concluded(
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
    remember(options, judgement.site)
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


def notify(
    test: Annotated[
        bool, typer.Option("--test", help="Send a test message to every channel.")
    ] = False,
    dry_run: DryRunOption = False,
    *,
    options: SiteOptions,
) -> None:
    """Send messages about alerts that began, became worse, recovered or are still open.

    A message that could not be sent is kept and tried again at the next call. The exit status is 0,
    or 3 if a message or a report to a monitor could not be sent.
    """
    settings = settings_of(options)
    if dry_run:
        _show(deliver.news(site_of(options), settings, _outbox(options).state()))
        return
    if test:
        raise typer.Exit(_status(_test(settings)))
    raise typer.Exit(tell_of(site_of(options), settings, options))


def settings_of(options: SiteOptions) -> Settings:
    """Return the settings in config/notify.yaml."""
    return read_settings(options.config_of("notify.yaml"))


def tell_of(site: Snapshot, settings: Settings, options: SiteOptions) -> int:
    """Send the current state to people and monitors, and return the exit status."""
    not_sent = [*_tell(site, settings, _outbox(options)), *_report(site, settings)]
    return _status(not_sent)


def send_ping(settings: Settings, step: str, text: str = "") -> int:
    """Ping that a session is at `step` if the settings ask for it; return the exit status."""
    where = settings.ping
    error = deliver.attempt(lambda: deliver.ping(where, step, text)) if where else ""
    return _status([f"no ping: {error}"] if error else [])


def _outbox(options: SiteOptions) -> Outbox:
    return Outbox(options.perflogs_directory.parent / "outbox")


def _status(problems: Iterable[str]) -> int:
    """Print the problems, and return the exit status."""
    status = OK
    for problem in problems:
        typer.echo(f"IOBANDS UNKNOWN: {problem}", err=True)
        status = UNKNOWN
    return status


def _tell(site: Snapshot, settings: Settings, outbox: Outbox) -> list[str]:
    """Queue what is new, send all that waits, and return what could not be sent."""
    try:
        with outbox.locked():
            outbox.note(deliver.news(site, settings, outbox.state()))
            entries, problems = outbox.entries()
            for entry in deliver.deliver(outbox, entries, settings):
                if entry.sent:
                    typer.echo(f"Sent to {entry.channel}: {printable(entry.message.title)}")
                else:
                    problems.append(f"{entry.channel}: {entry.error}; kept as {entry.path}")
            if not site.clock:
                outbox.prune(entries, datetime.now(timezone.utc))
    except FileError as error:
        return [str(error)]
    return [f"not sent: {problem}" for problem in problems]


def _report(site: Snapshot, settings: Settings) -> Iterator[str]:
    """Send the state of the site to the monitors, and yield what failed."""
    for each in settings.monitors:
        said = partial(deliver.report, each, site.exit_status, summary(site), performance(site))
        if error := deliver.attempt(said):
            yield f"not sent: {each.name}: {error}"


def _test(settings: Settings) -> Iterator[str]:
    """Send a test message to each channel, and yield what could not be sent."""
    for name, error in deliver.test(settings, datetime.now(timezone.utc)):
        if error:
            yield f"not sent: {name}: {error}"
        else:
            typer.echo(f"Sent to {name}: a test")


def _show(state: OutboxState) -> None:
    """Print what would be sent."""
    for message, channels in state.pending:
        typer.echo(f"To {', '.join(channels)}: {message.title}\n\n{message.text}")
    typer.echo(f"{'No news. ' if not state.pending else ''}Dry run: nothing was sent.")
