"""What every site shares: where results go and which columns the perflog has.

Knows the layout of the repository and contract 2 (docs/contracts.md); knows nothing of a site.
"""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# Contract 2: the columns of every perflog, in order. ReFrame strips `check_` for the header.
# One list for all checks: a file whose header changes is moved aside by ReFrame, and a check
# whose variants log different columns would misalign within one file.
PERFLOG_COLUMNS = (
    "check_job_completion_time",
    "check_result",
    "check_fail_phase",
    "check_display_name",
    "check_hashcode",
    "check_system",
    "check_partition",
    "check_environ",
    "check_jobid",
    "check_job_nodelist",
    "version",
    "check_suite_version",
    "check_tool",
    "check_tool_version",
    "check_pattern",
    "check_interface",
    "check_file_system",
    "check_medium",
    "check_file_system_type",
    "check_stripe_count_asked",
    "check_stripe_count",
    "check_stripe_size",
    "check_transport",
    "check_transport_in_effect",
    "check_hints",
    "check_hints_in_effect",
    "check_fsync",
    "check_cache",
    "check_nodes",
    "check_tasks",
    "check_gib",
    "check_fullness_percent",
    "check_targets_active",
    "check_targets_inactive",
    "check_load_per_node",
    "check_other_jobs",
    "check_client_written_gib",
    "check_client_read_gib",
    "check_spread",
    "check_band_verdict",
    "check_case",
    "check_perf_var",
    "check_perf_value",
    "check_perf_unit",
    "check_perf_ref",
    "check_perf_lower_thres",
    "check_perf_upper_thres",
    "check_perf_result",
)


def logging() -> list[dict]:
    """The logging section: short on the screen, all in a file, one perflog row a variable."""
    return [
        {
            "perflog_multiline": True,
            "handlers": [
                {"type": "stream", "name": "stdout", "level": "info", "format": "%(message)s"},
                {
                    "type": "file",
                    "name": "reframe.log",
                    "level": "debug2",
                    "format": "[%(asctime)s] %(levelname)s: %(check_info)s: %(message)s",
                    "append": False,
                },
            ],
            "handlers_perflog": [
                {
                    "type": "filelog",
                    "basedir": str(ROOT / "perflogs"),
                    "prefix": "%(check_system)s/%(check_partition)s",
                    "level": "info",
                    "format": "|".join(f"%({column})s" for column in PERFLOG_COLUMNS),
                    # ISO 8601 with the offset: the default is local time without one.
                    "datefmt": "%FT%T%:z",
                    "append": True,
                    # Perflogs on NFS were corrupted by concurrent writers without this.
                    "locking_enable": True,
                }
            ],
        }
    ]


def general(system: str) -> dict:
    """The general section of one system: its run reports lie beside its perflogs."""
    return {
        "target_systems": [system],
        "report_file": str(ROOT / "perflogs" / system / "reports" / "run-report-{sessionid}.json"),
        # I/O data is never in the stage directory: keeping it costs little and explains failures.
        "keep_stage_files": False,
        # A login shell's profile may change modules behind the environment's back.
        "use_login_shell": False,
    }


def directories() -> dict[str, str]:
    """Where ReFrame stages and keeps output, for every system that does not say otherwise."""
    return {"stagedir": str(ROOT / "stage"), "outputdir": str(ROOT / "output")}
