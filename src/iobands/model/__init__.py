"""The common ground of all parts of iobands: columns, series keys, documents, files and times.

ReFrame's process imports it under a site's own ReFrame: it needs only what ReFrame brings.
"""

from __future__ import annotations

from iobands.model.ask import Ask
from iobands.model.documents import (
    Document,
    Steps,
    from_unix,
    interval_of,
    is_of_this_age,
    leave_out,
    load_schema,
    one_of,
    overdue,
    parse_time,
    parse_yaml,
    read_content,
    seconds_of,
    shown,
    unknown,
    utc_text,
)
from iobands.model.exit_status import CRITICAL, OK, UNKNOWN, WARNING, WORST_STATUS_FIRST, worst
from iobands.model.fields import (
    ACCEPTANCE,
    ASKED,
    CONTEXT,
    COVARIATES,
    FIELD,
    FIELDS,
    LATER_FIELDS,
    MAINTENANCE,
    MANUAL,
    MATCH_FIELDS,
    NULLS,
    NUMERIC_FIELDS,
    PERFLOG_FORMAT,
    PERFLOG_HEADER,
    PURPOSES,
    RATIO_UNIT,
    READ,
    RECOVERY,
    REPEAT,
    REQUIRED,
    SCHEDULED,
    SERIES_FIELDS,
    SPEEDS,
    SUSPECT,
    TIME,
    UNIT,
    VALUE,
    VARIABLE,
    VARIABLE_UNITS,
    Type,
    canonical,
    number,
    perflog_line,
)
from iobands.model.files import (
    FileError,
    Rejected,
    Rejections,
    Unusable,
    entries,
    mask_others,
    naming,
    not_read,
    opened_below,
    read_regular,
    read_small,
    refuse_link,
    replace_file,
)
from iobands.model.mounts import mounts, mounts_in
from iobands.model.ratios import CONFIDENCE, FEWEST_PAIRS, PairedRatio, paired_ratio
from iobands.model.series import (
    ALL_TARGETS,
    FIELD_OF,
    MADE_UP,
    NODE,
    PATH_PART,
    TARGET,
    PeerName,
    SeriesKey,
    labels,
    path_part,
    slug,
)
from iobands.model.session import (
    COMPLETED,
    FAILED,
    INTERRUPTED,
    KILLED,
    LIMIT,
    RUNNING,
    LastSession,
    Leftover,
)
