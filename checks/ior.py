"""IOR: what storage engineers and vendors measure bandwidth with, one check a pattern."""

import reframe as rfm
from reframe.core.builtins import parameter, run_after

from . import site
from .ior_base import IorBase


@rfm.simple_test
class IorFPP(IorBase):
    """Each process writes and reads a file of its own, one after the other transfer."""

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

    #: The I/O interface; with POSIX the calls are independent, with the others collective.
    api = parameter(["posix", "mpiio", "hdf5", "pnetcdf"])

    #: The hint preset, by its name in the site configuration.
    hints = parameter(site.hint_presets(), loggable=True)

    @run_after("init")
    def take_api(self) -> None:
        self.interface = self.api
        self.collective = self.interface != "posix"
        self.pattern = "ssf" if self.collective else "ssf-independent"
