"""A short document of headings, texts, commands and tables, written in several formats."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache
from typing import TYPE_CHECKING, Final

from iobands.views.format import printable

if TYPE_CHECKING:
    from jinja2 import Environment


class DocumentFormat(str, Enum):
    """A format of documents."""

    MARKDOWN = "markdown"
    RST = "rst"
    HTML = "html"
    CSV = "csv"


@dataclass(frozen=True)
class Heading:
    """A heading of level 1, 2, …."""

    text: str
    level: int


@dataclass(frozen=True)
class Paragraph:
    """A paragraph."""

    text: str


@dataclass(frozen=True)
class Bullets:
    """A list of short lines."""

    lines: tuple[str, ...]


@dataclass(frozen=True)
class Commands:
    """Shell commands, a line each."""

    lines: tuple[str, ...]


@dataclass(frozen=True)
class Table:
    """A table; each row has as many cells as there are headings."""

    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Comment:
    """A line for programs, which readers do not see."""

    text: str


Block = Comment | Heading | Paragraph | Bullets | Commands | Table

_TEMPLATES: Final = {
    DocumentFormat.MARKDOWN: "document.md",
    DocumentFormat.RST: "document.rst",
    DocumentFormat.HTML: "document.html",
}
_FORMULA: Final = re.compile(r"(?![-+]?\d+(\.\d+)?$)[=+\-@\t\r]")  # a number is no formula
_UNDERLINES: Final = "=-~^"
_MARKDOWN: Final = str.maketrans({c: f"\\{c}" for c in "\\`*_[]|#"} | {"<": "&lt;", "&": "&amp;"})
_RST: Final = str.maketrans({c: f"\\{c}" for c in "\\`*_|"})


def written(blocks: Sequence[Block], form: DocumentFormat) -> str:
    """Return the document; as CSV only its tables."""
    if form is DocumentFormat.CSV:
        return "".join(csv_text(each) for each in blocks if isinstance(each, Table))
    return rendered(_TEMPLATES[form], blocks=[(type(each).__name__, each) for each in blocks])


def markdown_text(text: str) -> str:
    """Return a text whose characters mean nothing to Markdown."""
    return printable(text).translate(_MARKDOWN)


def rendered(template: str, **values: object) -> str:
    """Return a template with its values; in HTML they are escaped."""
    text = _environment(template.endswith(".html")).get_template(template).render(values)
    return f"{text.strip()}\n"


@cache
def _environment(escapes: bool) -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined  # noqa: PLC0415 ([report] only)

    environment = Environment(
        loader=PackageLoader("iobands.views"),
        autoescape=escapes,  # noqa: S701 (the others have filters of their own)
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters.update(
        markdown=markdown_text,
        rst=lambda text: printable(text).translate(_RST),
        printable=printable,
        underline=lambda heading: _UNDERLINES[heading.level - 1] * len(printable(heading.text)),
        csv=lambda row: csv_line([printable(cell).translate(_RST) for cell in row]),
    )
    return environment


def csv_text(table: Table) -> str:
    """Return a table as CSV with a header line, without texts that a spreadsheet would evaluate."""
    rows = (table.headings, *table.rows)
    return "".join(f"{csv_line([_no_formula(cell) for cell in row])}\n" for row in rows)


def _no_formula(cell: str) -> str:
    return f"'{cell}" if _FORMULA.match(cell) else cell


def csv_line(cells: Sequence[str]) -> str:
    """Return the cells as a line of CSV without its end."""
    stream = io.StringIO()
    csv.writer(stream, lineterminator="").writerow(cells)
    return stream.getvalue()
