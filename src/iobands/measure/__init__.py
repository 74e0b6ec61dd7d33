"""Measuring: one session at a time, its lock and jobs, ReFrame, and what it leaves on disk.

ReFrame's own process imports this room: nothing here needs more than Python. It offers what the
commands need of a session.
"""

from __future__ import annotations

from iobands.measure.cost import GIB_PER_TIB, Cost, capacities, costs_of
from iobands.measure.lock import clock_problem, has_stopped, lock_path, read_holder, refusal
from iobands.measure.perflogs import open_to_all, require_room, require_writable, takes_locks
from iobands.measure.plan import (
    Limits,
    Plan,
    inputs_of,
    limits_of,
    read_plan,
    timed,
    within_hours,
    write_plan,
)
from iobands.measure.reframe import (
    ATTEMPT_ENV,
    LOG,
    PURPOSE_ENV,
    SITE_ENV,
    Listener,
    ReadSiteFile,
    Selection,
    Workplace,
    describe,
    exactly,
    installed_suite,
    reframe_command,
    selection_of,
    site_of_suite,
    suite_of,
)
from iobands.measure.session import SessionOutcome, measure, measure_again, measure_apart
from iobands.model import SESSION_ENV, SessionError
