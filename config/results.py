"""Where results go, and the columns of the perflog, for every site.

It depends on the layout of a site's directory and contract 2 (docs/contracts.md), not on a site.
"""

from __future__ import annotations

from pathlib import Path

from iobands.measure import site_of_suite
from iobands.model import PERFLOG_FORMAT, path_part

SITE = site_of_suite(Path(__file__).resolve().parent.parent)
PERFLOGS = SITE / "perflogs"


def logging(locks: bool, runs: bool = True) -> list[dict]:
    """The logging section: short on the screen, full in a file, a perflog row for each variable.

    With `locks`, a perflog is locked while a line is added. The file is written only if ReFrame
    `runs` checks: listing them needs no write access, and must not replace a session's file.
    """
    stream = {"type": "stream", "name": "stdout", "level": "info", "format": "%(message)s"}
    file = {
        "type": "file",
        "name": "reframe.log",
        "level": "debug2",
        "format": "[%(asctime)s] %(levelname)s: %(check_info)s: %(message)s",
        "append": False,
    }
    return [
        {
            "perflog_multiline": True,
            "handlers": [stream, file] if runs else [stream],
            "handlers_perflog": [
                {
                    "type": "filelog",
                    "basedir": str(PERFLOGS),
                    "prefix": "%(check_system)s/%(check_partition)s",
                    "level": "info",
                    "format": PERFLOG_FORMAT,
                    # ISO 8601 with the offset: the default is local time without one.
                    "datefmt": "%FT%T%:z",
                    "append": True,
                    # Without this, concurrent writers corrupted perflogs on NFS. On a file system
                    # without locks ReFrame would record nothing; a session writes alone.
                    "locking_enable": locks,
                }
            ],
        }
    ]


def general(system: str) -> dict:
    """The general section of one system: its run reports are next to its perflogs."""
    reports = PERFLOGS / path_part(system) / "reports"
    return {
        "target_systems": [system],
        "report_file": str(reports / "run-report-{sessionid}.json"),
        # The stage directory never has I/O data, so keeping it is cheap and explains failures.
        "keep_stage_files": False,
        # A login shell's profile may change the modules of the environment.
        "use_login_shell": False,
    }


def directories() -> dict[str, str]:
    """Where ReFrame stages and keeps output, for every system without its own directories."""
    return {"stagedir": str(SITE / "stage"), "outputdir": str(SITE / "output")}
