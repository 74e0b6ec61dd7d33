"""The manual of iobands, from its commands: man pages, and pages for the documentation site.

click-man cannot be used: it sees no option of typer, which brings its own copy of click.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from inspect import cleandoc
from pathlib import Path
from typing import Any, Final

import typer

from iobands.commands.main import COMMANDS, app
from iobands.version import __version__

_FILES: Final = (
    ("config/systems/*.py", "The site files."),
    ("config/bands/", "Bands, epochs and maintenance windows."),
    ("config/alerts/", "The log of actions."),
    ("config/notify.yaml", "Where messages go."),
    ("config/store.yaml", "The store that sessions push to."),
    ("perflogs/", "The samples, and the record of the last session."),
)
_ENVIRONMENT: Final = (
    ("IOBANDS_ACCOUNT", "The account that jobs are charged to."),
    ("IOBANDS_RESERVATION, IOBANDS_QOS", "The reservation and the quality of service of jobs."),
    ("IOBANDS_PURPOSE", "What samples are recorded as; `scheduled` if your own schedule runs it."),
    ("IOBANDS_SITE", "The site's directory, for ReFrame; the commands take --site."),
)


@dataclass(frozen=True)
class Page:
    """The manual of one command; its texts have code in backticks."""

    name: str
    summary: str
    synopsis: str
    paragraphs: Sequence[str]
    arguments: Sequence[tuple[str, str]]
    options: Sequence[tuple[str, str]]

    @property
    def file(self) -> str:
        """The name of its man page, without the section."""
        return self.name.replace(" ", "-")


def pages() -> Iterator[Page]:
    """Yield the page of `iobands` and the pages of its commands, in the order of its help."""
    root = typer.main.get_command(app)
    context = typer.Context(root, info_name="iobands", **root.context_settings)
    yield _page(context, "iobands", synopsis="iobands [OPTION]... COMMAND [ARGUMENT]...")
    for rows in COMMANDS.values():
        for name in rows:
            command = root.get_command(context, name)
            inner = typer.Context(command, info_name=name, parent=context)
            yield _page(inner, f"iobands {name}")
            for verb, part in getattr(command, "commands", {}).items():
                below = typer.Context(part, info_name=verb, parent=inner)
                yield _page(below, f"iobands {name} {verb}")


def _page(context: Any, name: str, synopsis: str = "") -> Page:  # noqa: ANN401
    parameters = context.command.get_params(context)
    arguments = [each for each in parameters if each.param_type_name == "argument"]
    rows = [(each.metavar or each.name.upper(), each.help or "") for each in arguments]
    options = [
        (_without_types(names), said)
        for each in parameters
        if each.param_type_name == "option" and not each.hidden
        for names, said in [each.get_help_record(context)]
    ]
    words = [_in_synopsis(each, shown) for each, (shown, _) in zip(arguments, rows, strict=True)]
    text = cleandoc(context.command.help or "")
    paragraphs = [" ".join(each.split()) for each in text.split("\n\n")]
    first = re.split(r"\.(?= |$)", paragraphs[0])[0]
    return Page(
        name,
        first[:1].lower() + first[1:],
        synopsis or " ".join([name, "[OPTION]...", *words]),
        paragraphs,
        rows,
        options,
    )


def _without_types(names: str) -> str:
    """Return an option's names without click's type markers, which nobody types."""
    return names.replace("<str>", "TEXT").replace("<", "").replace(">", "")


def _in_synopsis(argument: Any, shown: str) -> str:  # noqa: ANN401
    if shown.startswith("["):
        return shown
    many = "..." if argument.nargs == -1 else ""
    return f"{shown}{many}" if argument.required else f"[{shown}]{many}"


def roff(page: Page) -> str:
    """Return the man page."""
    title = page.file.upper()
    lines = [
        f'.TH {_plain(title)} 1 "" "iobands {__version__}" "User Commands"',
        *(".SH NAME", f"{_plain(page.file)} \\- {_text(page.summary)}"),
        *(".SH SYNOPSIS", _bold(page.synopsis)),
        *(".SH DESCRIPTION", *_paragraphs(page.paragraphs)),
    ]
    if page.name == "iobands":
        for heading, rows in COMMANDS.items():
            named = [(f"iobands-{name}(1)", said) for name, (_, _, said) in rows.items()]
            lines += [f".SH {_plain(heading.upper())}", *_rows(named)]
    if page.arguments:
        lines += [".SH ARGUMENTS", *_rows(page.arguments)]
    lines += [".SH OPTIONS", *_rows(page.options)]
    if page.name == "iobands":
        lines += [".SH ENVIRONMENT", *_rows(_ENVIRONMENT), ".SH FILES", *_rows(_FILES)]
        lines += [".SH SEE ALSO", r"\fBbenchio\fR(1), \fBreframe\fR(1)"]
    else:
        lines += [".SH SEE ALSO", r"\fBiobands\fR(1)"]
    return "\n".join(lines) + "\n"


def markdown(page: Page) -> str:
    """Return the command's section of the documentation site."""
    blocks = [f"## {page.name}", f"```\n{page.synopsis}\n```", *page.paragraphs]
    for heading, rows in (("Argument", page.arguments), ("Option", page.options)):
        if rows:
            cells = [f"| `{_cell(name)}` | {_cell(said)} |" for name, said in rows]
            blocks.append("\n".join([f"| {heading} | |", "|---|---|", *cells]))
    return "\n\n".join(blocks) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


def _plain(text: str) -> str:
    return text.replace("\\", "\\e").replace("-", "\\-")


def _text(text: str) -> str:
    """Return a line of roff in which code in backticks is bold."""
    parts = re.split(r"`([^`]+)`", text)
    marked = [
        rf"\fB{_plain(part)}\fR" if odd % 2 else _plain(part) for odd, part in enumerate(parts)
    ]
    line = "".join(marked)
    return rf"\&{line}" if line[:1] in {".", "'"} else line


def _bold(text: str) -> str:
    return rf"\fB{_plain(text)}\fR"


def _paragraphs(paragraphs: Sequence[str]) -> Iterator[str]:
    for each in paragraphs:
        yield from (".PP", _text(each))


def _rows(rows: Sequence[tuple[str, str]]) -> Iterator[str]:
    for name, said in rows:
        yield from (".TP", _bold(name), _text(said))


def write_man_pages(directory: Path) -> list[Path]:
    """Write each page to `directory`, and return the files."""
    directory.mkdir(parents=True, exist_ok=True)
    written = []
    for page in pages():
        path = directory / f"{page.file}.1"
        path.write_text(roff(page), encoding="utf-8")
        written.append(path)
    return written
