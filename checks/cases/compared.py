"""The base of the cases that compare a setting on and off in one job, with the ratio as result.

Runs without and with the setting follow each other in pairs (pairs.sh). The rates of the check are
measured with the setting. It also records the rates without it, and the ratio with its interval.
"""

import math
import shlex
import statistics
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import reframe as rfm
from reframe.core.builtins import run_after, variable
from reframe.utility.sanity import make_performance_function
from reframe.utility.typecheck import Duration

from ..base import hints
from ..base.package import FEWEST_PAIRS, VARIABLE_UNITS, PairedRatio, paired_ratio
from ..base.proof import misplaced_files, unproven
from ..base.stage import read_output
from ..filesystems import Asked, StripingError
from ..tools.benchio import result
from ..tools.benchio.base import asking_for
from .base import Case
from .layers import LAYERS

WITHOUT, WITH = SIDES = ("without", "with")

#: The time limit of a job for both sides of all pairs, as a multiple of the scale's limit.
LIMITS = 4


@dataclass(frozen=True)
class Setting:
    """One side of a comparison: the settings in which it differs from the other."""

    layer: str
    #: Further options of benchio.
    options: tuple[str, ...] = ()
    #: MPI-IO hints for benchio.
    hints: Mapping[str, str] = field(default_factory=dict)
    #: Hints that must be proven to be in effect, set by `hints` or by `environment`.
    demanded: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    #: The requested striping.
    asked: Asked = field(default_factory=Asked)
    #: The expected layout of the files, if a hint requests another one.
    made: Asked | None = None


def result_file(side: str, pair: int) -> str:
    """The result file of a run, in the stage directory."""
    return f"{side}-{pair}.jsonl"


def read_sides(stage: Path, pairs: int) -> dict[str, list[list[dict]]]:
    """The records of each run, by side and in the order of the pairs."""
    return {
        side: [result.read_result(stage / result_file(side, n + 1)) for n in range(pairs)]
        for side in SIDES
    }


class ComparedCase(Case):
    """Measures its layer without and with a setting, in pairs of runs that follow each other."""

    #: The number of pairs: six are the fewest with a 95 % interval.
    pairs = variable(int, value=FEWEST_PAIRS)

    #: The measured operations, and the names of their rates in the variables of contract 2.
    operations: tuple[str, ...] = result.OPERATIONS
    rate = "bw"

    #: How many times the volume is on the file system at the same time, at most.
    copies = variable(int, value=2)

    #: The layer of the side without the setting, if it is another one.
    other_layer: str | None = None

    scripts = (Path(__file__).with_name("pairs.sh"),)

    def sides(self) -> tuple[Setting, Setting]:
        """The side without the setting, and the side with it."""
        return self.plain(layer=self.other_layer or self.layer), self.plain()

    def plain(self, layer: str | None = None, **asked: int) -> Setting:
        """A side without hints; `asked` are changes to the striping."""
        return Setting(layer or self.layer, asked=self.asking(**asked))

    def hinted(self, hints: dict[str, str], **asked: int) -> Setting:
        """A side with hints, which must be in effect; `asked` are changes to the striping."""
        # MPI-IO libraries heed hints on stripes only on Lustre.
        striped = self.stripe_count_asked is not None and self.file_system_type == "lustre"
        demanded = {
            name: value
            for name, value in hints.items()
            if striped or not name.startswith("striping_")
        }
        return replace(self.plain(**asked), hints=hints, demanded=demanded)

    def through(self, aggregators: int) -> dict[str, str]:
        """The hints for this number of aggregators, or all processes, spread over the hosts."""
        number = min(aggregators, self.tasks)
        # ROMIO distinguishes hosts by their names, which nodes of a test system may share.
        is_one_host = not self.is_dry_run() and self.kernel.mpi_starts.is_one_host
        hosts = 1 if is_one_host else self.nodes
        return {"cb_nodes": f"{number}", "cb_config_list": f"*:{math.ceil(number / hosts)}"}

    @property
    def settings(self) -> dict[str, Setting]:
        """Both sides by their names, with the hint preset of the point."""
        sides = (self.under(self.hints, side) for side in self.sides())
        return dict(zip(SIDES, sides, strict=True))

    # For the budget: both sides of all pairs write.
    @run_after("init")
    def count_repeats(self) -> None:
        self.repeats = len(SIDES) * self.pairs

    @property
    def counts_in_use(self) -> set[int]:
        return {setting.asked.stripe_count for setting in self.settings.values()} - {None}

    def under(self, preset: str, setting: Setting) -> Setting:
        """A side with a hint preset of the site as well; its hints must be in effect."""
        said = self.current_partition.extras.get("hint_presets", {}).get(preset, {})
        environment = {**said.get("env_vars", {}), **setting.environment}
        if "romio_hints" in said:
            environment["ROMIO_HINTS"] = str(self.write_romio_hints(said["romio_hints"]))
        demanded = {**said.get("hints", {}), **setting.demanded}
        return replace(setting, environment=environment, demanded=demanded)

    @property
    def default_time_limit(self) -> str:
        """The time limit for all runs together."""
        return f"{int(Duration(super().default_time_limit) * LIMITS)}s"

    @property
    def written_gib(self) -> float:
        return self.copies * self.gib

    # The sides set the hints.
    def set_hints(self) -> list[str]:
        if not any(setting.hints or setting.demanded for setting in self.settings.values()):
            return []
        mpi = self.current_environ.extras.get("mpi")
        known = hints.REPORT_VARIABLES
        reports = known.get(mpi, {}) if mpi else {**known["openmpi"], **known["cray-mpich"]}
        # Of Open MPI's two components for MPI-IO, only ROMIO heeds hints and prints them.
        for name, value in {"OMPI_MCA_io": "^ompio", **reports}.items():
            self.env_vars.setdefault(name, value)
        return []

    def write_command(self) -> None:
        super().write_command()
        self.executable_opts = [*self.sizes(), *self.common_options()]
        # The launcher's command, the program and its options become arguments of this function.
        self.job.launcher.modifier = "run_pairs"
        self.job.launcher.modifier_options = [str(self.pairs)]

    def before_program(self) -> list[str]:
        commands = super().before_program()
        for side, setting in self.settings.items():
            stripe = "; ".join([f"enter_side {side}", *self.striping.stripe(setting.asked)])
            words = [setting.layer, *setting.options]
            words += [f"--hint={name}={value}" for name, value in setting.hints.items()]
            words += asking_for(setting.environment)
            environment = [f"{name}={value}" for name, value in setting.environment.items()]
            commands += [
                f"make_side {side}",
                f"({stripe}) || exit 1",
                f"options_{side}=({shlex.join(words)})",
                *([f"environment_{side}=({shlex.join(environment)})"] if environment else []),
            ]
        return commands

    def after_program(self) -> list[str]:
        return [*super().after_program(), *(f"inspect_side {side}" for side in SIDES)]

    def read_layout(self) -> list[str]:
        return []  # done for each side

    def result_problems(self, stage: Path) -> list[str]:
        """Each phase of both sides measured, every byte on disk and verified, hints in effect."""
        runs, problems = read_sides(stage, self.pairs), []
        for side, setting in self.settings.items():
            found = self.side_problems(stage, side, setting, runs[side])
            problems += [f"{side} the setting: {problem}" for problem in found]
        if not problems:
            self.tool_version = runs[WITH][0][0]["version"]
            both = [record for side in SIDES for run in runs[side] for record in run]
            # `none` if the runs differ: the ratio may compare memory with a file system.
            self.cache = result.cache_of_reads(both)
            self.call_seconds = result.call_seconds(self.records)
            self.bandwidths = {
                (side, operation): [
                    result.rate_of(record)
                    for run in runs[side]
                    for record in run
                    if record["operation"] == operation
                ]
                for side in SIDES
                for operation in self.operations
            }
        return problems

    def side_problems(
        self, stage: Path, side: str, setting: Setting, runs: list[list[dict]]
    ) -> list[str]:
        """What the runs of one side do not prove, a line each."""
        fields = self.asked_of(setting.layer)
        asked = result.asked(fields, self.fsync, self.operations)
        problems = [
            f"pair {number}: {problem}"
            for number, records in enumerate(runs, start=1)
            for problem in unproven(result.phases(records), asked, repeats=1)
        ]
        listing = (stage / f"{side}-files.txt").read_text(encoding="utf-8")
        kind = LAYERS[setting.layer]
        listing = "\n".join(
            line
            for line in listing.splitlines()
            if line.partition(" ")[2].startswith(kind.data_files)
        )
        problems += misplaced_files(listing, fields["files"], fields["bytes"], kind.overhead_bytes)
        records = [record for run in runs for record in run]
        proven = hints.in_effect(
            setting.demanded,
            hints.read_back(records),
            hints.displayed(read_output(stage / f"{side}.out")),
        )
        try:
            layout = self.striping.in_effect(stage / side, setting.made or setting.asked)
        except StripingError as error:
            layout = error.layout
            problems.append(str(error))
        if side == WITH:
            self.records = records
            self.hints_in_effect = hints.as_text(proven)
            self.record_layout(layout, setting.made or setting.asked)
        return [
            *problems,
            *hints.unproven(setting.demanded, proven),
            *hints.unset(setting.environment, records),
        ]

    def environment_problems(self, stage: Path) -> list[str]:
        return self.transport_problems(stage)

    def sample_problems(self) -> list[str]:
        return []  # the rates are in `bandwidths`

    def judge_by_bands(self) -> None:
        if self.is_dry_run():
            return
        values, bounds = {}, {}
        for operation in self.operations:
            ratio = self.ratio_of(operation)
            for side, name in ((WITH, self.rate), (WITHOUT, f"{self.rate}_without")):
                rates = self.bandwidths[side, operation]
                values[f"{operation}_{name}"] = statistics.median(rates)
            values[f"{operation}_ratio"] = ratio.median
            if ratio.lower is not None and ratio.upper is not None:
                bounds[f"{operation}_ratio_lower"] = ratio.lower
                bounds[f"{operation}_ratio_upper"] = ratio.upper
        values |= self.further_values()
        self.perf_variables = {
            name: make_performance_function(float, VARIABLE_UNITS[name], value)
            for name, value in {**values, **bounds}.items()
        }
        # The ends of an interval belong to one run, and have no band.
        self.judge(values)

    def further_values(self) -> dict[str, float]:
        """Variables in addition to the rates and their ratio."""
        return {}

    def ratio_of(self, operation: str) -> PairedRatio:
        """The ratio of the rates with the setting to the rates without it, pair by pair."""
        sides = (self.bandwidths[side, operation] for side in (WITH, WITHOUT))
        return paired_ratio(list(zip(*sides, strict=True)))


class ByNumberOfTargets(rfm.RegressionTestPlugin):
    """Compares a stripe count that follows from the number of targets with the smallest one."""

    def lacking(self) -> list[str]:
        reasons = super().lacking()
        if self.number_of_targets is None and not self.is_dry_run():
            reasons.append(
                "takes a stripe count by the number of targets, which could not be seen: set "
                "`targets` in the site file's striping"
            )
        elif self.by_rule == self.fewest_stripes:
            reasons.append(
                f"takes {self.by_rule} stripes for {self.number_of_targets} targets, the same "
                "number as the other side"
            )
        return reasons

    @property
    def by_rule(self) -> int:
        """The stripe count of the rule."""
        raise NotImplementedError(f"define the property by_rule in {type(self).__name__}")

    def sides(self) -> tuple[Setting, Setting]:
        return self.plain(), self.plain(stripe_count=self.by_rule)


class AgainstFewestStripes(rfm.RegressionTestPlugin):
    """Compares the stripe count of the point with the smallest one of the file system."""

    def sides(self) -> tuple[Setting, Setting]:
        return self.plain(stripe_count=self.fewest_stripes), self.plain()
