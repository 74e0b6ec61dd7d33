"""Parses tables of docs/contracts.md for the tests."""

import re
from pathlib import Path

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "contracts.md"


def first_column(heading: str, start: str) -> list[str]:
    """The names in back quotes in the first column of the table under `heading`.

    `start` is the title of that column, since a section may have several tables.
    """
    section = DOCUMENT.read_text(encoding="utf-8").split(heading, maxsplit=1)[1]
    table = section.split(f"| {start} |", maxsplit=1)[1].split("\n\n", maxsplit=1)[0]
    rows = [line for line in table.splitlines() if line.startswith("| `")]
    return [name for row in rows for name in re.findall(r"`([^`]+)`", row.split(" | ")[0])]
