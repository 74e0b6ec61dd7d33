"""The base of the cases that compare: a setting on and off in one job, and the ratio as a result.

The rates of the check are those with the setting; those without it stand beside them, and the
ratio of both with its interval (docs/decisions/0056).
"""

import math
import statistics
from pathlib import Path

import reframe as rfm
from reframe.core.builtins import run_before, sanity_function, variable
from reframe.core.exceptions import SanityError
from reframe.utility.sanity import make_performance_function
from reframe.utility.typecheck import Duration

from iobands.model.fields import VARIABLE_UNITS
from iobands.site.ratios import FEWEST_PAIRS, PairedRatio, paired_ratio

from .. import benchio_result as result
from .. import hint_reports
from ..striping import StripingError
from . import comparison
from .base import Case
from .comparison import SIDES, WITH, WITHOUT, Setting

#: The time limit of a job that measures both sides of all pairs, in limits of the site's scale.
LIMITS = 4


class ComparedCase(Case):
    """Measures its layer without and with a setting, in pairs of runs that follow each other."""

    #: How many pairs: six are the fewest that have an interval of 95 %.
    pairs = variable(int, value=FEWEST_PAIRS)

    #: What is measured.
    operations: tuple[str, ...] = result.OPERATIONS

    #: How many times the volume is on the file system at once, at the most.
    copies = variable(int, value=2)

    #: The layer that is compared with, where it is another one.
    other_layer: str | None = None

    def without_setting(self) -> Setting:
        """What is compared with."""
        return Setting(self.other_layer or self.layer, asked=self.asked_striping)

    def with_setting(self) -> Setting:
        """What the case is about."""
        return Setting(self.layer, asked=self.asked_striping)

    def hinted(self, layer: str, hints: dict[str, str], **asked: int) -> Setting:
        """A side with hints, which must be in effect; `asked` are changes to the striping."""
        # What a library knows of stripes it knows of file systems that have them.
        striped = self.stripe_count_asked is not None and self.file_system_type == "lustre"
        demanded = {
            name: value
            for name, value in hints.items()
            if striped or not name.startswith("striping_")
        }
        return Setting(layer, hints=hints, demanded=demanded, asked=self.asking(**asked))

    def through(self, aggregators: int) -> dict[str, str]:
        """The hints for so many aggregators, or all processes, of as many on each node."""
        number = min(aggregators, self.tasks)
        return {"cb_nodes": f"{number}", "cb_config_list": f"*:{math.ceil(number / self.nodes)}"}

    def before_each(self) -> list[str]:
        """Shell commands before each run, in whose `$run_directory` it measures."""
        return []

    @property
    def settings(self) -> dict[str, Setting]:
        """Both sides by their names."""
        return {WITHOUT: self.without_setting(), WITH: self.with_setting()}

    @property
    def default_time_limit(self) -> str:
        """That of so many runs."""
        return f"{int(Duration(super().default_time_limit) * LIMITS)}s"

    # Hints are those of a setting, and never those of both.
    def set_hints(self) -> None:
        if not any(setting.hints or setting.demanded for setting in self.settings.values()):
            return
        mpi = self.current_environ.extras.get("mpi")
        known = hint_reports.REPORT_VARIABLES
        reports = known.get(mpi, {}) if mpi else {**known["openmpi"], **known["cray-mpich"]}
        # Of Open MPI's two components for MPI-IO only ROMIO heeds hints and says which.
        for name, value in {"OMPI_MCA_io": "^ompio", **reports}.items():
            self.env_vars.setdefault(name, value)

    def write_commands(self) -> None:
        super().write_commands()
        settings, sides = self.settings, list(SIDES)
        self.executable_opts = [*self.shape.words(), *self.common_options()]
        # The launcher's command, the program and its options become arguments of this function.
        self.job.launcher.modifier = "iobands_pairs"
        self.prerun_cmds = [
            *self.before_program(self.copies * self.gib),
            *comparison.striping_commands(settings, self.striping),
            *comparison.function_commands(settings, self.pairs, self.place, self.before_each()),
        ]
        self.postrun_cmds = self.after_program()
        # Behind the first two, which keep the program's exit status.
        self.postrun_cmds[2:2] = comparison.look_commands(sides, self.striping)

    @property
    def place(self) -> str:
        """The option that says where to measure: each side has a directory of its own."""
        return '--directory="$run_directory"'

    @sanity_function
    def prove(self) -> bool:
        """Both sides proven: every phase, every byte, the layout and the hints asked for."""
        stage = Path(self.stagedir)
        problems = []
        try:
            self.require_success(stage)
            for side, setting in self.settings.items():
                expected = self.expectation_of(setting.layer, repeats=1)
                problems += comparison.side_problems(stage, side, setting, self.pairs, expected)
                problems += self.layout_problems(stage, side, setting)
            problems += self.transport_problems(stage)
        except (result.ResultError, OSError) as error:
            raise SanityError(str(error)) from error
        if problems:
            raise SanityError("; ".join(problems))
        records = comparison.records_of(stage, WITH, self.pairs)
        self.tool_version = records[0]["version"]
        self.cache = comparison.cache_of_reads(stage, self.pairs)
        proven = comparison.hints_in_effect(stage, WITH, self.with_setting(), records)
        self.hints_in_effect = ",".join(f"{item[0]}={item[1]}" for item in proven.items()) or None
        return True

    def layout_problems(self, stage: Path, side: str, setting: Setting) -> list[str]:
        """What the layout of a side's files fails to prove; the one with the setting is kept."""
        try:
            layout, problems = self.striping.in_effect(stage / side, setting.asked), []
        except StripingError as error:
            layout, problems = error.layout, [f"{side} the setting: {error}"]
        if layout and side == WITH:
            self.stripe_count, self.stripe_size = layout.stripe_count, layout.stripe_size
        return problems

    def bandwidths(self, operation: str) -> list[float]:
        return self.bandwidths_of(WITH, operation)

    def bandwidths_of(self, side: str, operation: str) -> list[float]:
        """The bandwidth of each run of a side, in GiB/s, in the order of the pairs."""
        records = comparison.records_of(Path(self.stagedir), side, self.pairs)
        return result.bandwidths(records, operation)

    @run_before("performance")
    def judge_by_bands(self) -> None:
        if self.is_dry_run():
            return
        values, bounds = {}, {}
        for operation in self.operations:
            ratio = self.ratio_of(operation)
            values[f"{operation}_bw"] = statistics.median(self.bandwidths(operation))
            without = self.bandwidths_of(WITHOUT, operation)
            values[f"{operation}_bw_without"] = statistics.median(without)
            values[f"{operation}_ratio"] = ratio.median
            if ratio.lower is not None and ratio.upper is not None:
                bounds[f"{operation}_ratio_lower"] = ratio.lower
                bounds[f"{operation}_ratio_upper"] = ratio.upper
        self.perf_variables = {
            name: make_performance_function(float, VARIABLE_UNITS[name], value)
            for name, value in {**values, **bounds}.items()
        }
        # The ends of an interval are figures of one run, and have no band.
        self.judge(values)

    def ratio_of(self, operation: str) -> PairedRatio:
        """The ratio of the rates with the setting to those without, pair by pair."""
        with_it, without_it = (self.bandwidths_of(side, operation) for side in (WITH, WITHOUT))
        return paired_ratio(list(zip(with_it, without_it, strict=True)))


class AgainstFewestStripes(rfm.RegressionTestPlugin):
    """Compares the stripe count of the point with the fewest that the file system is asked for."""

    def without_setting(self) -> Setting:
        return Setting(self.layer, asked=self.asking(stripe_count=self.fewest_stripes))
