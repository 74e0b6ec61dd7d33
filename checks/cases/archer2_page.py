"""ARCHER2's page on I/O: its two patterns as published, and each of its recommendations."""

from dataclasses import replace
from pathlib import Path

import reframe as rfm
from reframe.core.builtins import parameter, run_after

from ..base import site
from . import shapes
from .base import Case, Published
from .compared import AgainstFewestStripes, ComparedCase, Setting
from .unpacking import UnpackingCase

# 65,536 MiB written by 2048 processes: 32 MiB each.
AS_PUBLISHED = Published(nodes=16, tasks_per_node=128, gib=64)


class Archer2Case(Case):
    """Written as on the page, by 2048 processes with 32 MiB each."""

    source = "archer2-page"
    published = AS_PUBLISHED


class Archer2Comparison(ComparedCase):
    """A recommendation of the page, on against off."""

    source = "archer2-page"
    published = AS_PUBLISHED


@rfm.simple_test
class Archer2FPP(Archer2Case):
    """File per process on one stripe: typically 150 GiB/s on NVMe, 90 on HDD."""

    layer = "proc"
    stripes = "one"


@rfm.simple_test
class Archer2SSF(Archer2Case):
    """Single shared file over all stripes: typically 10 GiB/s with the page's settings."""

    layer = "mpiio"
    stripes = "all"

    #: The hint preset; the page's settings are one of ARCHER2's.
    hints = parameter(site.hint_presets(), loggable=True)

    #: The MPI transport: the page recommends UCX.
    transport = parameter(site.transports(), loggable=True)


@rfm.simple_test
class Archer2SingleWriter(Archer2Case):
    """One process writes everything: about 1 GB/s on any file system."""

    layer = "serial"
    stripes = "one"


@rfm.simple_test
class Archer2FilePerNode(Archer2Comparison):
    """A file per node against one per process: fewer files, about the same rate."""

    layer = "node"
    other_layer = "proc"


@rfm.simple_test
class Archer2Collective(Archer2Comparison):
    """A shared file by collective calls of each library against independent ones."""

    stripes = "all"

    #: The library, by its layer.
    library = parameter(["mpiio", "hdf5", "netcdf"])

    def layer_of_point(self) -> str:
        return self.library

    def sides(self) -> tuple[Setting, Setting]:
        return self.plain(layer=f"{self.library}-independent"), self.plain()


@rfm.simple_test
class Archer2Adios(Archer2Comparison):
    """ADIOS2 with its default aggregation, a writer on each node, against a file per process."""

    layer = "adios-default"
    other_layer = "adios-process"
    # ADIOS2 has no call to sync a file.
    fsync = False


class EitherPattern(rfm.RegressionTestPlugin):
    """For a file per process and for a shared file, each striped as the page recommends."""

    #: File per process or single shared file.
    for_pattern = parameter(["fpp", "ssf"])

    def layer_of_point(self) -> str:
        return {"fpp": "proc", "ssf": "mpiio"}[self.for_pattern]

    def wanted_stripes(self) -> str:
        return {"fpp": "one", "ssf": "all"}[self.for_pattern]


class AsRecommended(EitherPattern):
    """With the transport and the hint preset that the site recommends for the pattern.

    On ARCHER2 these are the page's. If a site recommends none, they are the defaults. A case has
    all hint presets and transports as its parameters.
    """

    @run_after("init")
    def leave_out_others(self) -> None:
        self.valid_systems = [
            name
            for name in self.valid_systems
            if site.recommended_in(name, self.for_pattern, self.file_system)
            == (self.transport, self.hints)
        ]


@rfm.simple_test
class Archer2StripeCount(AgainstFewestStripes, AsRecommended, Archer2Comparison):
    """All stripes against one: recommended for a shared file, and against for one per process."""

    hints = parameter(site.hint_presets(), loggable=True)
    transport = parameter(site.transports(), loggable=True)
    needs_stripes = "compares stripe counts"

    def wanted_stripes(self) -> str:
        return "all"


@rfm.simple_test
class Archer2StripeSize(AsRecommended, Archer2Comparison):
    """Stripes of 4 MiB against the default of 1 MiB: little impact is expected."""

    hints = parameter(site.hint_presets(), loggable=True)
    transport = parameter(site.transports(), loggable=True)
    needs_stripes = "compares stripe sizes"

    def sides(self) -> tuple[Setting, Setting]:
        return self.plain(size_kib=1024), self.plain(size_kib=4096)


@rfm.simple_test
class Archer2Hints(Archer2Comparison):
    """The recommended environment variables and hints against none, for a shared file."""

    layer = "mpiio"
    stripes = "all"

    #: The hint preset that is switched on; without one, the check names what it needs.
    preset = parameter(site.hint_presets()[1:] or [site.DEFAULT_HINTS])

    @run_after("init")
    def bind_to_preset(self) -> None:
        # A preset that stripes files is for one number of stripes.
        having = site.partitions_for(self.file_system, self.stripe_count_asked, self.preset, {})
        self.valid_systems = [each for each in self.valid_systems if each in having]
        self.valid_prog_environs = site.environments_for(
            self.transport, self.preset, self.own_presets
        )

    def lacking(self) -> list[str]:
        reasons = super().lacking()
        if self.preset not in self.current_partition.extras.get("hint_presets", {}):
            reasons.append("compares a hint preset with none: the site file has no hint_presets")
        return reasons

    def case_settings(self) -> list[str]:
        return [self.preset]

    def sides(self) -> tuple[Setting, Setting]:
        return self.plain(), self.under(self.preset, self.plain())


@rfm.simple_test
class Archer2Transport(Archer2Case):
    """A shared file over each MPI transport: `iobands compare transport` gives the ratio."""

    layer = "mpiio"
    stripes = "all"

    #: The MPI transport: each is an environment of its own, and so a job.
    transport = parameter(site.transports(), loggable=True)

    def lacking(self) -> list[str]:
        reasons = super().lacking()
        first, *others = site.transports()
        if not others:
            reasons.append(
                f"compares MPI transports: all environments of the site file have one, {first}"
            )
        return reasons


@rfm.simple_test
class Archer2Program(Archer2Case):
    """A simulation over each MPI transport: its time steps without, during and including I/O."""

    layer = "snapshot-nonblocking"
    # Non-blocking collective writes crash in the ROMIO of Open MPI; other libraries ignore this.
    env_vars = {"OMPI_MCA_io": "ompio"}
    stripes = "all"
    metrics = (*Archer2Case.metrics, "step_rate", "step_rate_beside", "program_rate")

    #: The MPI transport: each is an environment of its own, and so a job.
    transport = parameter(site.transports(), loggable=True)

    def shape_of(self, volume: shapes.Volume) -> shapes.Shape:
        shape = shapes.snapshots(volume)
        return replace(shape, options=(*shape.options, "--exchange"))

    def result_problems(self, stage: Path) -> list[str]:
        problems = super().result_problems(stage)
        writes = [record for record in self.records if record["operation"] == "write"]
        if not problems and None in (record["seconds_step_beside"] for record in writes):
            problems.append("no time step had a write pending beside it")
        if not problems:
            self.samples |= {
                "step_rate": [1 / record["seconds_step"] for record in writes],
                "step_rate_beside": [1 / record["seconds_step_beside"] for record in writes],
                "program_rate": [
                    record["settings"]["steps"]
                    * record["settings"]["every"]
                    / (record["seconds"] + record["seconds_compute"])
                    for record in writes
                ],
            }
        return problems


@rfm.simple_test
class Archer2FileSystem(AsRecommended, Archer2Case):
    """Either pattern on each file system: `iobands compare file_system` gives the ratio."""

    hints = parameter(site.hint_presets(), loggable=True)
    transport = parameter(site.transports(), loggable=True)


@rfm.simple_test
class Archer2Untar(UnpackingCase):
    """`tar -b 2048`, which writes 1 MiB at a time, for unpacking a large archive."""

    source = "archer2-page"
    # The page names no size: large for one process, small for a file system.
    published = Published(nodes=1, tasks_per_node=1, gib=4)
