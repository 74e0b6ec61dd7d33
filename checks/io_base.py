"""The base of every check that measures I/O: where, how large, under guard, and what is proven.

Knows what all of them share, whatever the program: the file system and its layout, the scale, the
run directory, covariates, transport, hints and bands. A program's own base writes its commands
between `before_program` and `after_program`, and says what its results must prove.
"""

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path

import reframe as rfm
from reframe.core.builtins import variable
from reframe.core.exceptions import SanityError

from iobands import __version__ as iobands_version

from .failure_reason import reason_in
from .mixins.band_verdict import BandVerdictMixin
from .mixins.covariates import CovariatesMixin
from .mixins.environment import EnvironmentMixin
from .mixins.file_system import FileSystemMixin
from .mixins.hints import HintsMixin
from .mixins.run_directory import RunDirectoryMixin
from .mixins.scale import ScaleMixin
from .mixins.selection import SelectionMixin
from .mixins.transport import TransportMixin
from .program_output import read_output
from .striping import StripingError

#: The exit status of a program that SIGTERM ended.
TERMINATED = "143"


class IoBase(
    rfm.RunOnlyRegressionTest,
    FileSystemMixin,
    EnvironmentMixin,
    ScaleMixin,
    SelectionMixin,
    RunDirectoryMixin,
    CovariatesMixin,
    TransportMixin,
    HintsMixin,
    BandVerdictMixin,
):
    """Runs a program on one file system, and lets no rate count that the run did not prove."""

    #: The access pattern, in the words of contract 2.
    pattern = variable(str, loggable=True)

    #: The I/O interface, in the words of contract 2.
    interface = variable(str, value="posix", loggable=True)

    #: Whether the clock stops only when the data is on the file system.
    fsync = variable(bool, value=True, loggable=True)

    #: What the reads found in the page cache, as contract 1 says.
    cache = variable(str, type(None), value=None, loggable=True)

    #: The program that measures.
    tool = variable(str, loggable=True)

    #: The version of that program, as the run itself reported it.
    tool_version = variable(str, type(None), value=None, loggable=True)

    #: The version of these checks.
    suite_version = variable(str, value=iobands_version, loggable=True)

    #: The stripe count in effect, read back from the files.
    stripe_count = variable(int, type(None), value=None, loggable=True)

    #: The stripe size in effect in bytes, read back from the files.
    stripe_size = variable(int, type(None), value=None, loggable=True)

    #: How far the repeats lie apart, (largest - smallest) / median of each variable, as
    #: `write_bw=0.041,read_bw=0.012`; None of a single one.
    spread = variable(str, type(None), value=None, loggable=True)

    num_cpus_per_task = 1

    def before_program(self, volume_gib: float) -> list[str]:
        """The shell commands before the program, which writes `volume_gib` at the most."""
        return [
            *self.make_run_directory(volume_gib),
            *self.striping.set_commands(self.asked_striping),
            *self.look_around_before(),
        ]

    def after_program(self) -> list[str]:
        """The shell commands straight after the program."""
        return [
            *self.inspect_run_directory(),
            *self.look_around_after(),
            *self.striping.read_back_commands(),
            *self.leave_run_directory(),
        ]

    def environment_problems(self, stage: Path, records: Sequence[Mapping] = ()) -> list[str]:
        """What the run fails to prove of layout, transport and hints; sets those in effect.

        `records` are those of benchio's result file, which tell hints read back from open files.
        """
        return [
            *self.striping_problems(stage),
            *self.transport_problems(stage),
            *self.hint_problems(stage, list(records)),
        ]

    def striping_problems(self, stage: Path) -> list[str]:
        """What the layout of the files fails to prove; the one in effect is recorded anyway."""
        try:
            layout, problems = self.striping.in_effect(stage, self.asked_striping), []
        except StripingError as error:
            layout, problems = error.layout, [str(error)]
        if layout:
            self.stripe_count, self.stripe_size = layout.stripe_count, layout.stripe_size
        return problems

    def require_success(self, stage: Path) -> None:
        """Raise a SanityError if the program failed or never ran, in its own words or MPI's."""
        status_file = stage / self.exit_status_file
        status = status_file.read_text(encoding="utf-8").strip() if status_file.exists() else None
        if not (stage / str(self.stdout)).exists():
            limit = self.max_pending_time
            waited = f" or waited for more than {limit:g} s" if limit else ""
            raise SanityError(f"the job never began: it was cancelled{waited}")
        if status != "0":
            said = read_output(stage / str(self.stderr), stage / str(self.stdout))
            happened = f"exit status {status}" if status else f"{self.tool} did not run to its end"
            if status == TERMINATED:
                limit = f"{self.time_limit:g} s"
                happened += f" (asked to end: cancelled, or its limit of {limit} was near)"
            raise SanityError(": ".join(filter(None, [happened, reason_in(said)])))

    def judge_repeats(self, values: Mapping[str, Sequence[float]]) -> None:
        """Judge the median of each variable by its band, and record how far the repeats differ."""
        if all(len(repeats) > 1 for repeats in values.values()):
            self.spread = ",".join(
                f"{name}={(max(repeats) - min(repeats)) / statistics.median(repeats):.3f}"
                for name, repeats in values.items()
            )
        self.judge({name: statistics.median(repeats) for name, repeats in values.items()})
