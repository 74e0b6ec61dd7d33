"""Measuring: one session at a time, its lock and jobs, ReFrame, and what it leaves on disk.

ReFrame's own process imports this room: nothing here needs more than Python. It offers what the
other rooms, the checks and canaries need of a session, and of what it leaves.
"""

from __future__ import annotations

from iobands.measure.lock import (
    STOPPED,
    Holder,
    clock_problem,
    has_stopped,
    join,
    lock_path,
    read_holder,
    refusal,
)
from iobands.measure.notes import (
    Note,
    is_live,
    new_note,
    notes_of,
    read_leftovers,
    read_notes,
    unknown_owner,
)
from iobands.measure.perflogs import (
    end_lines,
    open_to_all,
    reconcile,
    require_room,
    require_writable,
    takes_locks,
)
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
from iobands.measure.record import GIB_PER_TIB, Cost, capacities, costs_of, read_last_session
from iobands.measure.reframe import (
    ATTEMPT_ENV,
    LOG,
    PURPOSE_ENV,
    SILENT,
    SITE_ENV,
    Listener,
    ReadSiteFile,
    Selection,
    Workplace,
    describe,
    exactly,
    installed_suite,
    reframe_command,
    require_plain,
    selection_of,
    site_of_suite,
    suite_of,
)
from iobands.measure.run_reports import (
    entries_of,
    load_report,
    read_run_reports,
    reduced_report,
    report_files,
)
from iobands.measure.session import (
    SessionOutcome,
    close_session,
    measure,
    measure_again,
    measure_apart,
    open_session,
)
from iobands.measure.sweep import SweepOutcome, clean_up
from iobands.model import SESSION_ENV, SessionError
