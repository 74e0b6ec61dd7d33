"""A project root with trivial checks, in the shape of the real one, for a real ReFrame."""

from __future__ import annotations

from pathlib import Path

from iobands.commands.cli import SiteOptions
from iobands.commands.judging import site_of
from iobands.snapshot import Series, Snapshot, State
from tests.factory import COLUMNS

CONFIG = """\
import sys
from pathlib import Path

from iobands.measure import SessionError
from iobands.measure.inside import begin_in_reframe, is_run

ROOT = Path(__file__).resolve().parents[1]
if is_run(sys.argv[1:]):
    try:
        begin_in_reframe(ROOT / "perflogs", "here")
    except SessionError as error:
        raise SystemExit(f"ERROR: {{error}}") from None
COLUMNS = "{columns}"

site_configuration = {{
    "systems": [
        {{
            "name": "here",
            "hostnames": [".*"],
            "stagedir": str(ROOT / "stage"),
            "outputdir": str(ROOT / "output"),
            "partitions": [
                {{
                    "name": "local",
                    "scheduler": "local",
                    "launcher": "local",
                    "environs": ["builtin"],
                }}
            ],
        }}
    ],
    "environments": [{{"name": "builtin"}}],
    "general": [
        {{
            "report_file": str(ROOT / "perflogs/here/reports/run-report-{{sessionid}}.json"),
        }}
    ],
    "logging": [
        {{
            "perflog_multiline": True,
            "handlers": [
                {{"type": "stream", "name": "stdout", "level": "info", "format": "%(message)s"}}
            ],
            "handlers_perflog": [
                {{
                    "type": "filelog",
                    "prefix": "%(check_system)s/%(check_partition)s",
                    "basedir": str(ROOT / "perflogs"),
                    "level": "info",
                    "datefmt": "%FT%T%:z",
                    "format": "|".join(f"%(check_{{c}})s" if c != "version" else "%(version)s"
                                       for c in COLUMNS.split("|")),
                    "append": True,
                }}
            ],
        }}
    ],
}}
"""

CHECKS = """\
import os

import reframe as rfm
import reframe.utility.sanity as sn
from reframe.core.builtins import *


class Base(rfm.RunOnlyRegressionTest):
    valid_systems = ["*"]
    valid_prog_environs = ["*"]
    executable = "echo"
    tags = {"daily"}
    suite_version = variable(str, value="0.1.0", loggable=True)
    tool = variable(str, value="benchio", loggable=True)
    tool_version = variable(str, value="1.0", loggable=True)
    pattern = variable(str, value="fpp", loggable=True)
    interface = variable(str, value="posix", loggable=True)
    file_system = variable(str, value="disk", loggable=True)
    medium = variable(str, value="hdd", loggable=True)
    file_system_type = variable(str, value="posix", loggable=True)
    stripe_count_asked = variable(int, type(None), value=None, loggable=True)
    stripe_count = variable(int, type(None), value=None, loggable=True)
    stripe_size = variable(int, type(None), value=None, loggable=True)
    transport = variable(str, value="default", loggable=True)
    hints = variable(str, value="default", loggable=True)
    nodes = variable(int, value=1, loggable=True)
    tasks = variable(int, value=4, loggable=True)
    gib = variable(float, value=0.5, loggable=True)
    fullness_percent = variable(float, value=12.5, loggable=True)
    band_verdict = variable(str, value="", loggable=True)
    purpose = variable(str, value=os.environ.get("IOBANDS_PURPOSE", "manual"), loggable=True)

    @sanity_function
    def proven(self):
        return sn.assert_found("write", self.stdout)

    @performance_function("GiB/s")
    def write_bw(self):
        return sn.extractsingle(r"write (\\S+)", self.stdout, 1, float)


@rfm.simple_test
class Good(Base):
    executable_opts = ["write 1.5"]


@rfm.simple_test
class Collapsed(Base):
    pattern = "ssf"
    executable_opts = ["write 0.25"]
    reference = {"*": {"write_bw": (1.0, -0.5, None, "GiB/s")}}


@rfm.simple_test
class Unproven(Base):
    file_system = "other"
    tags = {"broken"}
    executable_opts = ["nothing"]


@rfm.simple_test
class Unstarted(Base):
    file_system = "refused"
    tags = {"broken"}
    executable_opts = ["write 1.0"]

    @run_before("setup")
    def refuse(self):
        raise OSError("no such\\nfile system")
"""


def make_root(directory: Path) -> Path:
    """Make a root below `directory` whose checks run in a second, and return it."""
    root = directory / "root"
    (root / "config" / "systems").mkdir(parents=True)
    (root / "checks").mkdir()
    (root / "config" / "site.py").write_text(CONFIG.format(columns=COLUMNS))
    (root / "checks" / "trivial.py").write_text(CHECKS)
    return root


def measured(root: Path) -> Snapshot:
    return site_of(SiteOptions(root=root))


def states(root: Path) -> dict[str, State]:
    return {series.label: series.status.state for series in measured(root).series}


def by_label(root: Path) -> dict[str, Series]:
    return {series.label: series for series in measured(root).series}
