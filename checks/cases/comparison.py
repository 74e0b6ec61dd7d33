"""What a case that compares says to the job script, and what its results must prove.

Both settings are measured in one job, run after run, and which of them begins a pair alternates:
what drifts on the file system drifts for both. Pure, but for files of the stage directory; knows
benchio's result file and nothing of ReFrame.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from .. import benchio_result as result
from .. import hint_reports
from ..striping.layout import Asked, Striping

WITH = "with"
WITHOUT = "without"
SIDES = (WITHOUT, WITH)


@dataclass(frozen=True)
class Setting:
    """One side of a comparison: all in which it differs from the other."""

    layer: str
    #: Further options of benchio.
    options: tuple[str, ...] = ()
    #: MPI-IO hints for benchio.
    hints: Mapping[str, str] = field(default_factory=dict)
    #: Hints that must be shown to be in effect, whether by `hints` or by `environment`.
    demanded: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    #: What is asked of the striping.
    asked: Asked = field(default_factory=Asked)

    def words(self) -> list[str]:
        """The layer, and the options of this side alone."""
        hints = [f'"--hint={name}={value}"' for name, value in self.hints.items()]
        return [self.layer, *self.options, *hints]


def result_file(side: str, pair: int) -> str:
    """The result file of a run, in the stage directory."""
    return f"{side}-{pair}.jsonl"


def output_file(side: str) -> str:
    """What the runs of a side printed, in the stage directory."""
    return f"{side}.out"


def listing_file(side: str) -> str:
    """Size and name of each file of a side, in the stage directory."""
    return f"{side}-files.txt"


def striping_commands(settings: Mapping[str, Setting], striping: Striping) -> list[str]:
    """Shell commands that make and stripe a directory for each side, below `$run_directory`."""
    commands = []
    for side, setting in settings.items():
        # In a directory of its own in the stage directory too: a backend leaves files there.
        lines = [f"mkdir -p {side}", f"cd {side}", *striping.set_commands(setting.asked)]
        commands.append(f'mkdir "$run_directory/{side}" || exit 1')
        commands += [f"( {_in_side(side)}", *lines, ") || exit 1"]
    return commands


def function_commands(
    settings: Mapping[str, Setting], pairs: int, place: str, before_each: Sequence[str] = ()
) -> list[str]:
    """Shell commands that define `iobands_pairs`, which runs "$@" for each side in turn.

    `place` is the option that says where to measure, and `before_each` comes before each run; in
    both `$run_directory` is the side's own.
    """
    commands = []
    for side, setting in settings.items():
        commands += [
            f"iobands_{side}() (",
            _in_side(side),
            *(f'export {name}="{value}"' for name, value in setting.environment.items()),
            *before_each,
            f'"$@" {" ".join(setting.words())} {place} --result={side}-$pair.jsonl 2>&1 '
            f"| tee -a {output_file(side)}",
            "exit ${PIPESTATUS[0]}",
            ")",
        ]
    return [
        *commands,
        "iobands_pairs() {",
        f"for pair in {' '.join(map(str, range(1, pairs + 1)))}; do",
        f'order="{WITHOUT} {WITH}"',
        f'[ $((pair % 2)) -eq 1 ] || order="{WITH} {WITHOUT}"',
        'for side in $order; do "iobands_$side" "$@" || return; done',
        "done",
        "}",
    ]


def look_commands(sides: Iterable[str], striping: Striping) -> list[str]:
    """Shell commands after the runs: what files each side left, and how they are striped."""
    commands = []
    for side in sides:
        listing = f"find \"$run_directory\" -type f -printf '%s %f\\n' > {listing_file(side)}"
        lines = [listing, f"cd {side}", *striping.read_back_commands()]
        commands += [f"( {_in_side(side)}", *lines, ")"]
    return commands


def _in_side(side: str) -> str:
    return f'run_directory="$run_directory/{side}"'


def side_problems(
    stage: Path, side: str, setting: Setting, pairs: int, expected: result.Expectation
) -> list[str]:
    """What the runs of one side fail to prove, but for the layout of its files."""
    problems, records = [], []
    for pair in range(1, pairs + 1):
        found = result.read_result(stage / result_file(side, pair))
        problems += [f"pair {pair}: {each}" for each in result.unproven(found, expected)]
        records += found
    listing = (stage / listing_file(side)).read_text(encoding="utf-8")
    problems += result.misplaced_files(listing, expected)
    problems += hint_reports.unproven(
        setting.demanded, hints_in_effect(stage, side, setting, records)
    )
    return [f"{side} the setting: {each}" for each in problems]


def hints_in_effect(
    stage: Path, side: str, setting: Setting, records: list[dict]
) -> dict[str, str]:
    """What the witnesses say of the hints that a side must have."""
    said = (stage / output_file(side)).read_text(encoding="utf-8", errors="replace")
    return hint_reports.in_effect(
        setting.demanded, hint_reports.read_back(records), hint_reports.displayed(said)
    )


def cache_of_reads(stage: Path, pairs: int) -> str:
    """What kept the reads of both sides from the page cache, in one word; else `none`.

    Where that is not the same for both, their ratio may be one of memory to a file system.
    """
    return result.cache_of_reads(
        [record for side in SIDES for record in records_of(stage, side, pairs)]
    )


def records_of(stage: Path, side: str, pairs: int) -> list[dict]:
    """The records of all runs of a side, in the order of the pairs."""
    return [
        record
        for pair in range(1, pairs + 1)
        for record in result.read_result(stage / result_file(side, pair))
    ]
