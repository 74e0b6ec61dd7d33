"""Runs measuring sessions: the lock, ReFrame, the jobs, and the files that remain on disk.

ReFrame's own process imports this package, so it needs only libraries that ReFrame brings.
"""

from __future__ import annotations

from iobands.measure.lock import clock_problem, lock_path, read_holder, read_last_session, refusal
from iobands.measure.perflogs import open_to_all, require_room, require_writable, takes_locks
from iobands.measure.plan import (
    GIB_PER_TIB,
    Cost,
    Limits,
    Plan,
    costs_of,
    inputs_of,
    limits_of,
    read_plan,
    timed,
    within_hours,
    write_plan,
)
from iobands.measure.processes import output_of
from iobands.measure.reframe import (
    LOG,
    SITE_ENV,
    WRONG_ARGUMENT,
    NothingSelectedError,
    Selection,
    Workplace,
    describe,
    exactly,
    reframe_command,
    require_plain,
    selection_of,
    site_of_suite,
)
from iobands.measure.run_directories import SweepOutcome, clean_up, read_leftovers
from iobands.measure.run_reports import load_report, read_run_reports, reduced_report, report_files
from iobands.measure.session import measure, measure_again, measure_apart, why_none
from iobands.model import SESSION_ENV, SessionError
