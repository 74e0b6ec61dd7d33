"""The words that the contracts fix: series fields, variables and their units.

May know: the standard library. It is imported by `iobands.bands`, and so by ReFrame checks.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Final

#: The fields that, with the variable, make a series (contract 2). Never renamed.
SERIES_FIELDS: Final = (
    "system",
    "partition",
    "environ",
    "tool",
    "pattern",
    "interface",
    "file_system",
    "stripe_count_asked",
    "transport",
    "hints",
    "nodes",
    "tasks",
    "gib",
    "case",
)

#: The series fields that came later: an older perflog has no column of them, and none is missing.
LATER_FIELDS: Final = frozenset({"case"})

#: The series fields that are numbers.
NUMERIC_FIELDS: Final = frozenset({"stripe_count_asked", "nodes", "tasks", "gib"})

#: What the `match` of a band may name (contract 3).
MATCH_FIELDS: Final = (*SERIES_FIELDS, "variable", "medium", "file_system_type")

#: The unit of a ratio.
RATIO_UNIT: Final = "1"

#: The unit of each variable. GiB is 2**30 bytes.
VARIABLE_UNITS: Final[Mapping[str, str]] = {
    "write_bw": "GiB/s",
    "read_bw": "GiB/s",
    # of a case that compares: with the setting against without it, and the interval of that
    **{
        f"{operation}_{name}": unit
        for operation in ("write", "read")
        for name, unit in (
            ("bw_without", "GiB/s"),
            ("ratio", RATIO_UNIT),
            ("ratio_lower", RATIO_UNIT),
            ("ratio_upper", RATIO_UNIT),
        )
    },
    # Of metadata: files created, looked at, read and removed.
    "create_rate": "1/s",
    "stat_rate": "1/s",
    "read_rate": "1/s",
    "remove_rate": "1/s",
    # Of IO500, whose own names and units these are.
    "io500_score": "points",
    "io500_bandwidth": "GiB/s",
    "io500_metadata": "kIOPS",
    "ior_easy_write": "GiB/s",
    "ior_easy_read": "GiB/s",
    "ior_hard_write": "GiB/s",
    "ior_hard_read": "GiB/s",
    "mdtest_easy_write": "kIOPS",
    "mdtest_easy_stat": "kIOPS",
    "mdtest_easy_delete": "kIOPS",
    "mdtest_hard_write": "kIOPS",
    "mdtest_hard_stat": "kIOPS",
    "mdtest_hard_read": "kIOPS",
    "mdtest_hard_delete": "kIOPS",
    "find": "kIOPS",
}

#: How a perflog spells a missing value.
NULLS: Final = frozenset({"", "null", "None"})

# float() takes more than a number on paper: "nan", "inf", "1_000". A file system may be called
# so, and would then be taken for a number.
_NUMBER: Final = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)


def number(text: str) -> float | None:
    """Return the finite decimal number that `text` spells, or None if it spells none."""
    stripped = text.strip()
    if not _NUMBER.fullmatch(stripped):
        return None
    value = float(stripped)
    return value if math.isfinite(value) else None


def canonical(value: object) -> float | str | None:
    """Return `value` in the form in which fields are compared, whatever wrote it.

    The same field comes as text from a perflog, as a number from YAML or from a check, and as
    NaN from a table. Numbers and texts that spell a number become a float, missing values None,
    and all else its text.
    """
    if value is None:
        return None
    if isinstance(value, float) and math.isnan(value):
        return None
    text = str(value).strip()
    if text in NULLS:
        return None
    as_number = number(text)
    return text if as_number is None else as_number
