"""What the checks import from the package iobands, so that its layout is known in one place.

These modules need nothing beyond PyYAML and jsonschema, which ReFrame brings.
"""

import os
from pathlib import Path

from iobands import __version__ as suite_version
from iobands.bands import NO_BAND, Bands, load_bands
from iobands.measure import SESSION_ENV, site_of_suite
from iobands.measure.processes import await_end, note_job
from iobands.measure.reframe import ATTEMPT_ENV, LEFT_OUT_ENV, PURPOSE_ENV
from iobands.measure.run_directories import (
    LIVE,
    REMOVE_SCRIPT,
    Note,
    arguments,
    new_note,
    notes_of,
    outcomes_of,
    read_notes,
    settle,
    sweep,
    why_kept,
)
from iobands.model import (
    COVARIATES,
    FEWEST_PAIRS,
    MANUAL,
    MATCH_FIELDS,
    PURPOSES,
    SERIES_FIELDS,
    SHARED_SERIES,
    SPEEDS,
    VARIABLE_UNITS,
    PairedRatio,
    canonical,
    figure,
    paired_ratio,
    path_part,
    seconds_of,
)

#: The directory of the site that is measured.
SITE = site_of_suite(Path(__file__).resolve().parents[2])

#: The directory of its results.
PERFLOGS = SITE / "perflogs"

#: The attempt of the runs of this process.
ATTEMPT = 2 if os.environ.get(ATTEMPT_ENV) == "2" else 1

#: Lines `system:partition check` of checks to leave out; jobs do not inherit the variable.
LEFT_OUT = frozenset(os.environ.pop(LEFT_OUT_ENV, "").splitlines())

#: The session of the runs of this process, which config/site.py begins.
SESSION = os.environ.get(SESSION_ENV)

#: Why the runs of this process are made.
PURPOSE = os.environ.get(PURPOSE_ENV) if os.environ.get(PURPOSE_ENV) in PURPOSES else MANUAL

__all__ = [
    "ATTEMPT",
    "COVARIATES",
    "FEWEST_PAIRS",
    "LEFT_OUT",
    "LIVE",
    "MATCH_FIELDS",
    "NO_BAND",
    "PERFLOGS",
    "PURPOSE",
    "REMOVE_SCRIPT",
    "SERIES_FIELDS",
    "SESSION",
    "SHARED_SERIES",
    "SITE",
    "SPEEDS",
    "VARIABLE_UNITS",
    "Bands",
    "Note",
    "PairedRatio",
    "arguments",
    "await_end",
    "canonical",
    "figure",
    "load_bands",
    "new_note",
    "note_job",
    "notes_of",
    "outcomes_of",
    "paired_ratio",
    "path_part",
    "read_notes",
    "seconds_of",
    "settle",
    "suite_version",
    "sweep",
    "why_kept",
]
