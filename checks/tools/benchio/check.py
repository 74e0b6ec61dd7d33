"""benchio: how fast an application writes and reads a distributed array, one check a pattern."""

import reframe as rfm
from reframe.core.builtins import parameter

from ...base import site
from .base import BenchioBase


@rfm.simple_test
class BenchioSerial(BenchioBase):
    """One process gathers the array and writes one file."""

    descr = "benchio: single file, single writer"
    layer = "serial"
    pattern = "serial"


@rfm.simple_test
class BenchioFPP(BenchioBase):
    """Each process writes a file of its own."""

    descr = "benchio: file per process"
    layer = "proc"
    pattern = "fpp"
    file_per = "process"


@rfm.simple_test
class BenchioFPN(BenchioBase):
    """One process of each node gathers what the node has and writes one file."""

    descr = "benchio: file per node"
    layer = "node"
    pattern = "fpn"
    file_per = "node"


@rfm.simple_test
class BenchioSSF(BenchioBase):
    """All processes write one file by collective MPI-IO."""

    descr = "benchio: single shared file, collective"
    layer = "mpiio"
    pattern = "ssf"
    interface = "mpiio"

    #: The hint preset, by its name in the site configuration.
    hints = parameter(site.hint_presets(), loggable=True)
