"""Lines that fit a terminal, and short documents in several formats.

In lines, words stay whole, columns stay aligned, and commands can be pasted. A document has
headings, texts, commands and tables.
"""

from __future__ import annotations

import csv
import io
import re
import sys
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache
from shutil import get_terminal_size
from textwrap import wrap
from typing import TYPE_CHECKING, Final

from iobands.version import __version__


def printable(text: str) -> str:
    """Return `text` without control characters, as text from outside could upset a terminal."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else "?" for c in text)


if TYPE_CHECKING:
    from jinja2 import Environment


#: How wide a mail is, and whatever goes to a pipe or a file.
MAIL_WIDTH: Final = 80
GAP: Final = "  "

# The least room in which text is wrapped.
_LEAST: Final = 12
# The text behind a heading and two blanks continues under itself.
_HEADED: Final = re.compile(r" *(?:\S+ )*\S+ {2,}(?=\S)| {8,}")
_COMMAND: Final = re.compile(r"(|.*?: |\s*)((?:iobands|reframe) .+)")
_UNIT: Final = re.compile(r"(?<=\d) (?=[×%]|[KMGT]iB|1/s)")
_NO_BREAK: Final = "\u00a0"
_SHELL_WORD: Final = re.compile(r"""(?:'[^']*'|"[^"]*"|\\.|[^\s'"\\])+""")


def output_width() -> int:
    """Return how wide the output of a command may be: as the terminal, or as a mail."""
    return get_terminal_size().columns if sys.stdout.isatty() else MAIL_WIDTH


def fitted(lines: Iterable[str], width: int | None = None) -> str:
    """Return lines as text of `width` columns, without control characters; see `folded`."""
    width = width or output_width()
    return "".join(f"{part}\n" for line in lines for part in folded(printable(line), width))


def folded(line: str, width: int) -> list[str]:
    r"""Return a line as lines of at most `width` columns.

    Only a word that is longer than a line is broken. A command continues after a backslash, as a
    shell reads it, so it can be pasted; its words are never broken.
    """
    if len(line) <= width:
        return [line.rstrip()]
    headed = _HEADED.match(line)
    blank = len(line) - len(line.lstrip())
    hang = " " * (headed.end() if headed and headed.end() < width / 2 else blank + len(GAP))
    if command := _COMMAND.fullmatch(line):
        return _command(command[1].rstrip(), command[2], width, hang)
    return _wrapped(line, width, hang)


def _command(said: str, command: str, width: int, hang: str) -> list[str]:
    """Return the lines of a command behind what is said of it, or below it."""
    lines = _wrapped(said, width, hang) if said else []
    if lines and len(lines[-1]) + 1 + len(command) <= width:
        return [*lines[:-1], f"{lines[-1]} {command}"]
    first, *words = _SHELL_WORD.findall(command)
    own = [(hang if lines else hang[len(GAP) :]) + first]
    for word in words:
        if len(own[-1]) + len(word) + len("  \\") > width:
            own[-1] += " \\"
            own.append(f"{hang}{GAP}{word}")
        else:
            own[-1] += f" {word}"
    return [*lines, *own]


def _wrapped(text: str, width: int, hang: str) -> list[str]:
    """Return wrapped text; a number stays with its unit."""
    glued = _UNIT.sub(_NO_BREAK, text)
    lines = wrap(glued, width, subsequent_indent=hang, break_on_hyphens=False)
    return [line.replace(_NO_BREAK, " ") for line in lines]


def blocks(
    rows: Iterable[Sequence[str]],
    width: int,
    *,
    wrapped: Collection[int] = (0,),
    right: Collection[int] = (),
    indent: str = GAP,
) -> Iterator[list[str]]:
    """Yield the lines of each row of a table; the cells of `wrapped` columns take several."""
    table = [*rows]
    if not table:
        return
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    over = sum(each + len(GAP) for each in widths if each) - len(GAP) + len(indent) - width
    while over > 0 and max(widths[place] for place in wrapped) > _LEAST:
        widths[max(wrapped, key=widths.__getitem__)] -= 1
        over -= 1
    cells = [
        [
            _wrapped(cell, widths[place], GAP) if cell and place in wrapped else [cell]
            for place, cell in enumerate(row)
        ]
        for row in table
    ]
    widths = [max(max(map(len, cell)) for cell in column) for column in zip(*cells, strict=True)]
    for row in cells:
        lines = []
        for number in range(max(map(len, row))):
            texts = [cell[number] if number < len(cell) else "" for cell in row]
            said = [
                text.rjust(room) if place in right else text.ljust(room)
                for place, (text, room) in enumerate(zip(texts, widths, strict=True))
                if room
            ]
            lines.append(f"{indent}{GAP.join(said)}".rstrip())
        yield [part for line in lines for part in folded(line, width)]


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
    """Return a template with its values and our version; in HTML they are escaped."""
    page = _environment(template.endswith(".html")).get_template(template)
    text = page.render(values, version=__version__)
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
