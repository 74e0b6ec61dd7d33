"""Sessions, repeats between sessions (`iobands run --suspects`), `iobands notify` and `demo`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Annotated, Final, TypeVar

import typer

from iobands import measure
from iobands.commands import cli
from iobands.commands.export import push_after
from iobands.commands.judging import JudgedSite, checked, judgement_of, site_of
from iobands.commands.report import report_to
from iobands.commands.status import log_news, print_digest, rebuild_log
from iobands.judge.memory import write_memory
from iobands.judge.suspects import asks_of, repeats_of
from iobands.model import MADE_UP, OK, Ask, FileError, figure, naming, worst
from iobands.notify import deliver
from iobands.notify.outbox import Outbox, Settings, read_settings
from iobands.snapshot import Snapshot, State
from iobands.views.digest import performance
from iobands.views.writing import asked_text, blocks, due_text, output_width, summary

_DAY: Final = timedelta(days=1)
_T = TypeVar("_T")


@dataclass
class Session:
    """A call of `iobands run`: its options, its limit in seconds, and its latest judgement."""

    options: cli.SiteOptions
    limit: float
    dashboard: Path | None
    notify: bool
    verbose: bool
    judged: JudgedSite | None = None  # None: not judged yet, the memory is the file's

    def run(self, tag: str, system: str | None, extra: Sequence[str]) -> None:
        """Measure everything that is selected, repeat what looks wrong, and exit."""
        began, people, unread = datetime.now(timezone.utc), *self._people()
        selection = measure.Selection(tag, system, tuple(extra))
        started = _ping(people, "start")

        def judge() -> tuple[Ask, ...]:
            found = self._judge()
            return repeats_of(found.snapshot, began, found.known.reports.runs)

        try:
            outcome = self._at_work(lambda at: measure.measure(at, selection, self.limit, judge))
        except Exception as end:
            why = end.__cause__ if isinstance(end, typer.Exit) else end
            _ping(people, "fail", str(why or ""))
            raise
        problems = [*outcome.problems, *unread]
        site, status = self._conclude(outcome.notes, problems, people, print_digest)
        said = "\n".join([*problems, summary(site)])
        pinged = _ping(people, "fail" if problems else "", said)
        raise typer.Exit(worst([started, status, pinged]))

    def run_suspects(self) -> None:
        """Measure what is in doubt and due, under the lock; return if a session has the lock."""

        def judge() -> list[Ask]:
            planned, now = self._judge().snapshot.planned, datetime.now(timezone.utc)
            return [each for each in planned if each.is_due(now)]

        people, problems = self._people()
        again = self._at_work(lambda at: measure.measure_again(at, judge, self.limit))
        if again is None or not (again.measured or again.problems or again.notes):
            return
        problems += again.problems
        show = partial(_print_again, measured=again.measured)
        raise typer.Exit(self._conclude(again.notes, problems, people, show)[1])

    def _people(self) -> tuple[Settings | None, list[str]]:
        """Return the settings of --notify, and problems: a damaged file must not stop a session."""
        try:
            return (_settings(self.options) if self.notify else None), []
        except FileError as error:
            return None, [str(error)]

    def _at_work(self, work: Callable[[measure.Workplace], _T]) -> _T:
        return cli.at_work(self.options.perflogs_directory.parent, self.verbose, work)

    def _judge(self) -> JudgedSite:
        """Judge the site, and write the plan of what to measure again; the lock is held."""
        options, perflogs = self.options, self.options.perflogs_directory
        inputs = measure.inputs_of(options.config_of("bands").parent)  # before they are read
        judge = partial(judgement_of, options, with_power=self.dashboard is not None, keeps=True)
        memory = self.judged.memory if self.judged else None
        judged = checked(judge(memory=memory), partial(judge, memory={}))
        now, planned = datetime.now(timezone.utc), _timed(options, judged)
        try:
            asked = measure.read_plan(perflogs).asked
            measure.write_plan(perflogs, measure.Plan(now, inputs, planned, asked), now)
        except OSError as error:
            cli.note(f"the plan of further runs was not written: {cli.reason_of(error)}")
        self.judged = replace(judged, snapshot=replace(judged.snapshot, planned=planned))
        return self.judged

    def _conclude(
        self,
        notes: Sequence[str],
        problems: list[str],
        people: Settings | None,
        show: Callable[[Snapshot], None],
    ) -> tuple[Snapshot, int]:
        """Log, show, send and push the judgement; return its snapshot and the exit status."""
        assert self.judged is not None  # measuring ends with a judgement
        options, memory, with_power = self.options, self.judged.memory, self.dashboard is not None
        again = partial(judgement_of, options, with_power=with_power, memory=memory)
        self.judged = log_news(options, self.judged, again)
        site = self.judged.snapshot
        try:
            write_memory(options.perflogs_directory, self.judged.memory)
        except OSError as error:
            why = cli.reason_of(error)
            cli.note(f"the judge's memory was not kept, so the next call takes longer: {why}")
        show(site)
        if self.dashboard:
            try:
                # again, as it raises if the file system of the dashboard does not answer
                cli.refuse_mixing(self.dashboard, options.perflogs_directory)
                report_to(self.dashboard, self.judged, options.config_of("systems"))
            except (FileError, OSError) as error:  # messages are sent nevertheless
                problems.append(f"the dashboard was not written: {cli.reason_of(error)}")
        for note in notes:
            cli.note(note)
        status = worst([site.exit_status, cli.problems(problems)])
        sent = _send(site, people, options) if people else OK
        push_after(options)
        return site, worst([status, sent])


def show_plan(options: cli.SiteOptions) -> None:
    """Print what will be measured again in the next 24 hours, and why; write nothing."""
    judged, now = judgement_of(options), datetime.now(timezone.utc)
    site = judged.snapshot
    if not (places := sorted({each.place for each in asks_of(site, judged.known.reports.runs)})):
        cli.say("Nothing is in doubt, so nothing is measured again.")
        return
    read = cli.site_files(options.config_of("systems"))
    limits = {place: measure.limits_of(read, place) for place in places}
    asked = measure.read_plan(options.perflogs_directory).asked
    rows = [
        (due_text(ask, now), asked_text(site, ask), ask.why)
        for ask in _timed(options, judged)
        if ask.due is None or ask.due - now < _DAY
    ]
    rows.insert(0, ("NEXT (UTC)", "WHAT", "WHY"))
    table = blocks(rows, output_width(), wrapped=(1, 2), indent="")
    lines = [*chain(*table)] if rows[1:] else ["Nothing is measured again in the next 24 hours."]
    for place, own in limits.items():
        spent = sum(e.node_hours for e in asked if e.check[0] == place and now - e.when < _DAY)
        if own.allow:
            most = f"{own.per_day} runs of a check and {own.node_hours_per_day:g} node hours"
            often = f"every {figure(own.every)} h, at most {most} in 24 hours"
            text = f"{often}, {figure(spent)} of them spent"
        else:
            text = "in doubt, but `suspects` in the site file switches repeats off"
        lines += ["", f"{place}: {text}"]
    cli.say(*lines)


def _timed(options: cli.SiteOptions, judged: JudgedSite) -> tuple[Ask, ...]:
    """Return the checks that are in doubt, each with the times between which it may run.

    If a site file cannot be read, the checks of its system are left out, and the reason printed.
    """
    site, now = judged.snapshot, datetime.now(timezone.utc)
    read = cli.site_files(options.config_of("systems"))
    asked = measure.read_plan(options.perflogs_directory).asked
    limits: dict[Ask, measure.Limits] = {}
    unread: dict[str, None] = {}
    for ask in asks_of(site, judged.known.reports.runs):
        quiet = []
        try:
            own = measure.limits_of(read, ask.place)
        except FileError as error:
            unread[f"no series of {ask.system} is measured again: {error}"] = None
            continue
        for window in site.maintenance.get(ask.system, ()):
            if window.is_of(ask.file_system):
                spans = (*window.spans(now)[-1:], window.following(now))
                quiet += [(span.begin, span.end) for span in spans if span]
        if found := measure.timed(ask, asked, own, quiet, now):
            limits[found] = own
    for why in unread:
        cli.note(why)
    return tuple(measure.within_hours([*limits], asked, limits, now))


def _print_again(site: Snapshot, measured: Sequence[Ask]) -> None:
    """Print the first line of the digest, and the result of each run that was `measured` again."""
    names = {name for ask in measured for name in ask.series}
    lines = [summary(site)]
    lines += [f"Measured again: {asked_text(site, ask)}" for ask in measured if not ask.series]
    for each in site.series:
        status = each.status
        if each.name in names and status.value is not None:
            value = f"{figure(status.value)} {each.key.symbol}"
            says = status.verdict if status.state is State.HEALTHY else status.state.value
            lines.append(f"Measured again: {each.label}, {value}: {says}")
    cli.say(*lines)


def demo(
    directory: Annotated[
        Path, cli.argument("DIR", "A new directory, or one of a demo, which is replaced.")
    ] = Path("demo"),
) -> None:
    """Write a made-up site and its dashboard to DIR. Nothing in it was measured.

    The site has two file systems and a year of runs up to today: an upgrade, an incident,
    maintenance, gaps, a drop that was repaired, one that lasts, a slow storage target, a full one
    and new empty ones.
    """
    cli.require_report("iobands demo")
    from iobands.source.demo import write_demo  # noqa: PLC0415

    mine = directory / "perflogs" / MADE_UP
    if directory.is_dir() and any(directory.iterdir()) and not mine.is_dir():
        raise cli.failure(f"{directory}: is not empty; name a new directory")
    with naming(directory):
        write_demo(directory, datetime.now(timezone.utc))
    options = cli.SiteOptions(root=directory)
    rebuild_log(options)  # as its sessions would have logged its alerts
    judged = judgement_of(options, with_power=True)
    cli.say(f"A made-up site of {len(judged.snapshot.series)} series is in {directory.resolve()}.")
    report_to(directory / "dashboard", judged, options.config_of("systems"))
    cli.say("Try other commands there, such as `iobands status`.")


def notify(
    options: cli.SiteOptions,
    test: Annotated[bool, "Send a test message to every channel."] = False,
    dry_run: cli.DryRunOption = False,
) -> None:
    """Send messages about alerts that began, became certain or worse, are still open, or are over.

    A message that could not be sent is kept and tried again at the next call. The exit status is 0,
    or 3 if a message or a report to a monitor could not be sent.
    """
    if test:
        cli.refuse("with --test", "dry_run", "system", "false_alarms")
    settings = _settings(options)
    if dry_run:
        state = deliver.news(site_of(options), settings, _outbox(options).state())
        for message, channels in state.pending:
            cli.say(f"To {', '.join(channels)}: {message.title}", "")
            cli.show(message.text)
        cli.say(f"{'' if state.pending else 'No news. '}Dry run: nothing was sent.")
        return
    if test:
        raise typer.Exit(cli.problems(_test(settings)))
    raise typer.Exit(_send(site_of(options), settings, options))


def _settings(options: cli.SiteOptions) -> Settings:
    return read_settings(options.config_of("notify.yaml"))


def _outbox(options: cli.SiteOptions) -> Outbox:
    return Outbox(options.perflogs_directory.parent / "outbox")


def _ping(people: Settings | None, step: str, text: str = "") -> int:
    """Send a ping that a session is at `step`, if the settings ask for it; return the status."""
    if not people or not people.ping:
        return OK
    error, _ = deliver.attempt(partial(deliver.ping, people.ping, step, text))
    return cli.problems([f"no ping: {error}"] if error else [])


def _send(site: Snapshot, settings: Settings, options: cli.SiteOptions) -> int:
    """Send news to people and the current state to monitors; return the exit status."""
    problems = [*_tell(site, settings, _outbox(options))]
    for each in settings.monitors:
        said = partial(deliver.report, each, site.exit_status, summary(site), performance(site))
        if error := deliver.attempt(said)[0]:
            problems.append(f"not sent: {each.name}: {error}")
    return cli.problems(problems)


def _tell(site: Snapshot, settings: Settings, outbox: Outbox) -> Iterator[str]:
    """Queue new messages, send all in the outbox, and yield a problem for each that failed."""
    try:
        with outbox.locked():
            outbox.note(deliver.news(site, settings, outbox.state()))
            entries, problems = outbox.entries()
            for entry in deliver.deliver(outbox, entries, settings):
                if entry.sent:
                    cli.say(f"Sent to {entry.channel}: {entry.message.title}")
                if entry.error:
                    kept = "" if entry.sent else f"; kept as {entry.path}"
                    problems.append(f"{entry.channel}: {entry.error}{kept}")
            if not site.clock:
                outbox.prune(entries, datetime.now(timezone.utc))
            yield from (f"not sent: {problem}" for problem in problems)
    except FileError as error:
        yield str(error)


def _test(settings: Settings) -> Iterator[str]:
    if not settings.channels:
        cli.say("config/notify.yaml has no channels, and monitors get no test: nothing was sent.")
    for name, error in deliver.test(settings, datetime.now(timezone.utc)):
        if error:
            yield f"not sent: {name}: {error}"
        else:
            cli.say(f"Sent to {name}: a test")
