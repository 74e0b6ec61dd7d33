"""The year of NERSC's Edison as the TOKIO project published it, reduced to what is imported.

The table is `summaries/edison-summaries_2017-02-14-2018-02-15.csv.gz` of the repository
NERSC/tokio-abcutils on GitHub: one row per run, whose rate Darshan measured.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pandas as pd

#: A year and a day, whose last sessions are whole; the table has a part of the next.
_YEAR: Final = pd.Timedelta(days=366)
#: A dbscan_read that read less, in GiB, ended before its data, as 38 runs of autumn 2017 did.
_LEAST_GIB: Final = 1.0


def write_reduced(table: Path, to: Path) -> None:
    """Write the runs of `table` that have a rate to the CSV file `to`, times in UTC."""
    runs = pd.read_csv(table, low_memory=False)
    written, read = (runs[f"darshan_biggest_{way}_api_bytes"] for way in ("write", "read"))
    is_write = written.fillna(0) > read.fillna(0)
    files = runs["darshan_biggest_write_api_files"].where(
        is_write, runs["darshan_biggest_read_api_files"]
    )
    reduced = pd.DataFrame(
        {
            "time": pd.to_datetime(runs["darshan_start_time"], unit="s", utc=True),
            "system": "edison",
            "file_system": runs["_file_system"],
            "application": runs["darshan_app"].str.split("/").str[-1],
            "pattern": (files > 1).map({True: "fpp", False: "shared"}),
            "operation": is_write.map({True: "write", False: "read"}),
            "processes": runs["darshan_nprocs"],
            "volume_gib": runs["darshan_total_gibs_posix"].round(3),
            # by the rank that was slowest, in MiB/s
            "bandwidth_gib_s": (runs["darshan_agg_perf_by_slowest_posix"] / 1024).round(5),
            "ost_full_percent": runs["fshealth_ost_avg_full_pct"].round(3),
        }
    )
    is_of_year = reduced["time"] < reduced["time"].min() + _YEAR
    reduced[is_of_year & (reduced["volume_gib"] >= _LEAST_GIB)].sort_values("time").to_csv(
        to, index=False
    )
