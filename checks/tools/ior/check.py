"""IOR: bandwidth as storage engineers and vendors measure it, one check for each pattern."""

import reframe as rfm
from reframe.core.builtins import parameter, run_after, variable

from ...base import site
from ...base.hints import COLLECTIVE_BUFFERING
from .base import BYTES_PER_MIB, IorBase

IO500_HARD_RECORD = 47_008


@rfm.simple_test
class IorFPP(IorBase):
    """Each process writes and reads its own file, one transfer after the other."""

    descr = "IOR: file per process"
    pattern = "fpp"
    file_per_process = True

    #: The I/O interface; IOR's PnetCDF writes no file per process.
    api = parameter(["posix", "mpiio"])

    @run_after("init")
    def take_api(self) -> None:
        self.interface = self.api


@rfm.simple_test
class IorSSF(IorBase):
    """All processes write and read one file, each a contiguous block of it."""

    descr = "IOR: single shared file"

    #: The I/O interface; POSIX calls are independent, and calls of other interfaces collective.
    api = parameter(["posix", "mpiio", "hdf5", "pnetcdf"])

    #: The hint preset, by its name in the site configuration.
    hints = parameter(site.hint_presets(), loggable=True)

    @run_after("init")
    def take_api(self) -> None:
        self.interface = self.api
        self.collective = self.api != "posix"
        self.pattern = "ssf" if self.collective else "ssf-independent"


@rfm.simple_test
class IorStrided(IorBase):
    """The records of one file go to the processes in turn, one record for each call."""

    descr = "IOR: strided records in a single shared file"

    #: The bytes of a record: 47,008 as in IO500's hard case, the other sizes as in Cray's slides.
    record = parameter([IO500_HARD_RECORD, 1_000_000, 10_000])

    #: The I/O interface; with POSIX the calls are independent, with MPI-IO collective.
    api = parameter(["posix", "mpiio"])

    #: Collective buffering by the MPI library's default, on and off.
    hints = parameter([site.DEFAULT_HINTS, *COLLECTIVE_BUFFERING], loggable=True)

    own_presets = COLLECTIVE_BUFFERING

    #: The most records of each process, as on the slides; a scale with less room has fewer.
    most_records = variable(int, value=3220)

    @run_after("init")
    def take_record(self) -> None:
        self.interface = self.api
        self.collective = self.api == "mpiio"
        self.pattern = f"strided-{self.record}"
        self.block = self.transfer = self.record
        room = self.scale_settings["mib_per_task"] * BYTES_PER_MIB // self.record
        limited = self.record != IO500_HARD_RECORD
        self.segments = min(self.most_records, room) if limited else room
