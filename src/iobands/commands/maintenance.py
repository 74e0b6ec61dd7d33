"""The commands `iobands maintenance begin`, `end` and `report`: before and after an upgrade."""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Annotated, Final

import typer

from iobands.commands import cli
from iobands.commands.judging import JudgedSite, judgement_of
from iobands.judge import account
from iobands.measure import Selection, SessionError, exactly
from iobands.measure import measure as measure_session
from iobands.model import LIMIT, MAINTENANCE, check_name
from iobands.snapshot import BEGIN, END, Action, BegunMaintenance, begun
from iobands.source.action_log import append, deciding, read_log
from iobands.views import writing
from iobands.views.maintenance import account as page_of

maintenance = typer.Typer(
    rich_markup_mode=None,
    add_completion=False,
    no_args_is_help=True,
    help="Begin or end a maintenance, and report what it changed.",
)

#: The most and the fewest runs that --measure makes in a row.
_MOST_RUNS: Final = 20
_FEWEST_RUNS: Final = 3
#: The days after a maintenance for which `begin` forecasts the smallest visible loss.
_AHEAD: Final = (0, 3, 7, 14)

MeasureOption = Annotated[bool, "Measure now, several times in a row."]
MostTimeOption = Annotated[str, cli.option("--time TIME", "With --measure: how long at most.")]
TagsOption = Annotated[str, "TAG", "With --measure: run the checks with this tag."]


@dataclass(frozen=True)
class BeginOptions(cli.SiteOptions):
    """The options of `begin`, which needs one system."""

    system: cli.OneSystemOption = None


def begin_maintenance(
    options: BeginOptions,
    reason: Annotated[str, "TEXT", "What is being done."],
    file_systems: Annotated[
        list[str] | None, "NAME", "Only this file system; repeatable. [default: all]"
    ] = None,
    since: Annotated[str | None, "TIME", f"When it began: {cli.WHEN}. [default: now]"] = None,
    until: Annotated[
        str | None, "TIME", f"When it ends: {cli.WHEN}. [default: with `end`, or after 12 h]"
    ] = None,
    measure: MeasureOption = False,
    most: MostTimeOption = "2h",
    tag: TagsOption = "daily",
    by: cli.ByOption = None,
) -> None:
    """Begin a maintenance: from now on samples are kept and not judged.

    It ends with `iobands maintenance end`, at --until, or by itself after 12 hours, which raises an
    alert. With --measure the checks first run several times in a row, so that the report can
    compare. Unless the maintenance is already over, the command prints the smallest loss that the
    report will show, with odds of 9 to 1.
    """
    name, now = _system(options, measure), datetime.now(timezone.utc)
    only = replace(options, system=name)
    first = cli.time_of(since) if since else now
    last = cli.time_of(until, "--until") if until else None
    if first > now:
        raise cli.failure("--since: in the future; declare it as maintenance in the bands file")
    if since and measure:
        raise cli.failure("give --since or --measure, not both: runs would be in the maintenance")
    _refuse_end(last, first)
    who, words = by or cli.login_name(), " ".join(reason.split())
    _refuse_if_open(_logged(options, name))
    judged = judgement_of(only)
    places = tuple(dict.fromkeys(file_systems or ()))
    known = {str(each.key.file_system) for each in judged.snapshot.series}
    if unknown := [each for each in places if each not in known]:
        names = ", ".join(sorted(known))
        raise cli.failure(f"--file-systems {unknown[0]}: no series of it; known: {names}")
    if measure:
        _measure(options, judged, places, tag, most, "and no maintenance began")
        judged = judgement_of(only, memory=judged.memory)
        now = first = datetime.now(timezone.utc)
        _refuse_end(last, first)
    matches = tuple({"file_system": each} for each in places)
    first = first.replace(microsecond=0)  # judgements have whole seconds
    action = Action(BEGIN, now, who, words, matches, since=first, until=last)
    directory = options.config_of("alerts")
    with deciding(options.perflogs_directory):
        _refuse_if_open(begun(read_log(directory, name, now).actions))
        path = append(directory, name, [action])
    where = ", ".join(places) or "all file systems"
    end = begun([action])[0].window.end
    verb = "ended" if end <= now else "ends"
    how = "." if last or end <= now else " by itself; sooner with: iobands maintenance end"
    cli.say(
        f"Maintenance of {name} began at {writing.time_text(first)} UTC: {where}.",
        f"It {verb} at {writing.time_text(end)} UTC{how}",
        f"Logged in {path}; commit this file.",
    )
    if end <= now:
        _say_how_to_report(options, first)
    else:
        _print_forecast(judged, places)


def _refuse_end(last: datetime | None, first: datetime) -> None:
    if last and last <= first:
        when = f"{writing.time_text(last)} UTC"
        raise cli.failure(f"--until: {when} is before the maintenance begins")


def _refuse_if_open(maintenances: Iterable[BegunMaintenance]) -> None:
    now = datetime.now(timezone.utc)
    if found := [each for each in maintenances if each.is_open(now)]:
        raise cli.failure(
            f"a maintenance is open since {writing.time_text(found[-1].window.begin)} UTC "
            f"({found[-1].window.reason}); end it first: iobands maintenance end"
        )


def end_maintenance(
    options: cli.UnjudgedOptions,
    at: Annotated[str | None, "TIME", f"When it ended: {cli.WHEN}. [default: now]"] = None,
    measure: MeasureOption = False,
    most: MostTimeOption = "2h",
    tag: TagsOption = "daily",
    by: cli.ByOption = None,
) -> None:
    """End the open maintenance: samples are judged again from now on.

    This also closes a maintenance that ended by itself, as of its end. If none is open, --at
    corrects the end of the newest one that began before TIME. With --measure the checks run several
    times in a row, as before the maintenance.
    """
    name, now = _system(options, measure), datetime.now(timezone.utc)
    when = cli.time_of(at, "--at") if at else now
    if when > now:
        raise cli.failure(f"--at {at}: in the future")

    def order(each: BegunMaintenance) -> tuple[bool, bool, datetime]:
        return each.is_open(now), each.window.begin < when, each.window.begin

    logged = sorted(_logged(options, name), key=order)  # --at corrects the last one
    found = [each for each in logged if each.is_open(now) or each.is_forgotten(now)]
    if at and logged and logged[-1] not in found:
        found.append(logged[-1])
    if not found:
        newest = ""
        if logged:
            ended = f"{writing.time_text(logged[-1].window.end)} UTC"
            newest = f"; the newest ended at {ended}; if that is wrong, correct it with --at TIME"
        raise cli.failure(f"no maintenance of {name} is open{newest}")
    actions, who = [], by or cli.login_name()
    for each in found:
        # earlier ones are forgotten maintenances, which ended by themselves
        action, start, is_last = each.action, each.window.begin, each is found[-1]
        last = when if at and is_last else min(now, each.window.end)
        if last <= start:
            remedy = "give a later --at" if at else "set the clock, or give --at"
            began = f"before the maintenance began ({writing.time_text(start)})"
            raise cli.failure(f"{writing.time_text(last)} UTC is {began}; {remedy}")
        last = last.replace(microsecond=0)  # as in `begin`
        actions.append(Action(END, now, who, action.reason, (), until=last, of=action.when))
        late = ""
        if each.is_forgotten(now) and not (at and is_last):
            late = f"; it had ended by itself{': --at corrects this' * is_last}"
        span = f"from {writing.time_text(start)} to {writing.time_text(last)} UTC"
        cli.say(f"Maintenance of {name} {span}: {action.reason}{late}")
    cli.say(f"Logged in {append(options.config_of('alerts'), name, actions)}; commit this file.")
    if measure:
        judged, places = judgement_of(replace(options, system=name)), found[-1].window.file_systems
        _measure(options, judged, places, tag, most, "after the end was logged")
    _say_how_to_report(options, found[-1].window.begin)


def report_maintenance(
    options: cli.StoredSiteOptions,
    wanted: Annotated[
        str,
        cli.argument(
            "[ID]",
            "When it began: a day or minute (UTC). [default: the newest that does not repeat]",
        ),
    ] = "",
    output: Annotated[Path | None, "FILE", "Write the page to FILE."] = None,
    all_: Annotated[bool, "Give every series a row."] = False,
) -> None:
    """Print what a maintenance changed, as a page in Markdown.

    Each series and each group is slower, faster, without a change larger than x %, or has too few
    runs to tell. At most one report in twenty has a false claim, all rows together. Declared
    maintenances have a report, too. The exit status is 0, whatever the report says.
    """
    cli.require_report("iobands maintenance report")
    judged = judgement_of(options)
    for why in judged.known.incomplete.values():
        cli.note(f"maintenances or samples may be missing: {why}")
    known = account.maintenances_of(judged.snapshot)
    once = [each for each in known if not each.window.repeat] or known
    # a name is the day if there is one that day, else the minute: either may be the shorter one
    several = len({each.system for each in known}) > 1
    named = (e for e in known if e.name.startswith(wanted) or wanted.startswith(e.name))
    found = [*named] if wanted else once
    if not known:
        raise cli.failure(
            "no maintenance so far; to enter a past one, use "
            "`iobands maintenance begin --since TIME --until TIME`"
        )
    if not found:
        names = writing.some([each.name for each in reversed(known)], 10)
        raise cli.failure(f"no maintenance matches {wanted}; known: {names}")
    if wanted and len(found) > 1:
        names = writing.listed([f"{each.name}{f' of {each.system}' * several}" for each in found])
        cli.note(f"{wanted} matches {names}; the report is about the last one")
    elif several and not wanted:
        cli.note(f"the report is about {found[-1].system}; for another system, give --system NAME")
    blocks = page_of(account.account_of_maintenance(judged, found[-1]), every=all_)
    text = writing.written(blocks, "markdown")
    if output is None:
        cli.show(text)
    else:
        cli.write_file(output, text.encode())
        cli.say(f"Written: {output}")


for _verb in (begin_maintenance, end_maintenance, report_maintenance):
    maintenance.command(_verb.__name__.partition("_")[0])(cli.with_options(_verb))


def _system(options: cli.SiteOptions, measure: bool) -> str:
    if not measure:
        cli.refuse("without --measure", "most", "tag")
    return cli.system_of(options)


def _say_how_to_report(options: cli.SiteOptions, begin: datetime) -> None:
    # maintenances of two systems may have begun in the same minute
    system = f" --system {shlex.quote(options.system)}" if options.system else ""
    minute = f"{begin.astimezone(timezone.utc):%Y-%m-%dT%H:%M}"
    cli.say(f"What it changed: iobands maintenance report {minute}{system}")


def _logged(options: cli.SiteOptions, name: str) -> list[BegunMaintenance]:
    """Return the maintenances in the log of actions; print its rejected lines."""
    log = read_log(options.config_of("alerts"), name, datetime.now(timezone.utc))
    for line in log.rejected:
        cli.note(str(line))
    return [*begun(log.actions)]


def _measure(
    options: cli.SiteOptions,
    judged: JudgedSite,
    places: tuple[str, ...],
    tag: str,
    most: str,
    logged: str,
) -> None:
    """Run the checks several times in a row, while that improves the report and time is left.

    If measuring fails, the message says by `logged` what is in the log of actions.
    """
    root, limit = cli.root_of(options.root), cli.seconds_option(most, "--time")
    wanted = account.runs_that_help(judged, places, (_FEWEST_RUNS, _MOST_RUNS))
    names = {
        check_name(str(each.history.newest.get("display_name")))
        for each in judged.snapshot.series
        if each.key.file_system in places and len(each.history)
    }
    extra = tuple(word for name in sorted(names) for word in ("-n", exactly(name)))
    selection = Selection(tag, options.system, extra, why=MAINTENANCE)
    began, done, longest = time.monotonic(), 0, 0.0
    while done < wanted and (left := limit - (time.monotonic() - began)) > longest:
        start = time.monotonic()
        work = partial(measure_session, selection=selection, limit=left)
        try:
            outcome = cli.at_work(root, False, work, "iobands maintenance")
        except SessionError as error:
            raise cli.failure(f"measuring failed, {logged}: {error}") from error
        longest = max(longest, time.monotonic() - start)
        for problem in outcome.problems:
            cli.note(problem)
        if outcome.how == LIMIT:
            break
        done += 1
        cli.say(f"Measured {done} of {wanted} times, {max(1, round(longest / 60))} min each")
    if done < wanted:
        cli.say(f"{writing.plural(done, 'run')} in the time given; {wanted} runs would show more")


def _print_forecast(judged: JudgedSite, places: tuple[str, ...]) -> None:
    if not (rows := account.forecasts(judged, places, _AHEAD)):
        cli.say("The report needs runs on five days before; there are not enough yet.")
        return
    table = [("", "SERIES", "AT ONCE", *(f"+{days} DAYS" for days in _AHEAD[1:]))]
    for name, members, losses in rows:
        percents = (writing.share_text(loss) if loss else "-" for loss in losses)
        table.append((name, str(members), *percents))
    lines = chain(*writing.blocks(table, writing.output_width(), right=range(1, len(table[0]))))
    cli.say("", "The smallest loss that the report will show, with odds of 9 to 1:", *lines)
    cli.say(
        "At once: with `iobands maintenance end --measure`. +3 DAYS: after three more daily runs."
    )
