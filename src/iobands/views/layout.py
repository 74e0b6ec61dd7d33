"""Lines that fit a terminal: words stay whole, columns stay aligned, commands can be pasted."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from textwrap import wrap
from typing import Final

#: How wide a mail is, and whatever goes to a pipe or a file.
MAIL_WIDTH: Final = 80
GAP: Final = "  "

# The least room in which text is wrapped.
_LEAST: Final = 16
# The text behind a heading and two blanks continues under itself.
_HEADED: Final = re.compile(r" *(?:\S+ )*\S+ {2,}(?=\S)| {8,}")
_COMMAND: Final = re.compile(r"(|.*?: |\s*)((?:iobands|reframe) .+)")
_SHELL_WORD: Final = re.compile(r"""(?:'[^']*'|"[^"]*"|\\.|[^\s'"\\])+""")


def folded(line: str, width: int) -> list[str]:
    r"""Return a line as lines of at most `width` columns.

    Only a word that is longer than a line is broken. A command continues after a backslash, as a
    shell reads it, so it can be pasted; its words are never broken.
    """
    if len(line) <= width:
        return [line]
    if command := _COMMAND.fullmatch(line):
        return _command(command[1], command[2], width)
    headed = _HEADED.match(line)
    indent = headed.end() if headed and headed.end() < width / 2 else _indent(line) + len(GAP)
    return wrap(line, width, subsequent_indent=" " * indent, break_on_hyphens=False)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _command(said: str, command: str, width: int) -> list[str]:
    lines, indent = [said], " " * (_indent(said) + 2 * len(GAP))
    for word in _SHELL_WORD.findall(command):
        start = lines[-1] in (said, indent)
        if not start and len(lines[-1]) + len(word) + len(" \\ ") > width:
            lines[-1] += " \\"
            lines.append(indent)
            start = True
        lines[-1] += word if start else f" {word}"
    return lines


def columns(
    rows: Iterable[Sequence[str]],
    width: int,
    *,
    wrapped: Collection[int] = (0,),
    right: Collection[int] = (),
    indent: str = GAP,
) -> Iterator[str]:
    """Yield the rows of a table; the cells of the columns `wrapped` continue in further lines."""
    for each in blocks(rows, width, wrapped=wrapped, right=right, indent=indent):
        yield from each


def blocks(
    rows: Iterable[Sequence[str]],
    width: int,
    *,
    wrapped: Collection[int] = (0,),
    right: Collection[int] = (),
    indent: str = GAP,
) -> Iterator[list[str]]:
    """Yield the lines of each row of a table; see `columns`."""
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
            wrap(cell, widths[place], subsequent_indent=GAP, break_on_hyphens=False)
            if cell and place in wrapped
            else [cell]
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
