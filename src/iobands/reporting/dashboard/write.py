"""Writes the dashboard: only files whose content has changed are replaced."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from errno import EEXIST
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType
from typing import Final

from iobands.model.replaced import replace_file
from iobands.reporting.dashboard.details import details
from iobands.reporting.dashboard.names import by_job, series_id
from iobands.reporting.dashboard.overview import overview
from iobands.reporting.dashboard.runs import COLUMNS, packed, parts_of
from iobands.reporting.format import printable
from iobands.reporting.verdicts import judged
from iobands.results.speeds import slowest
from iobands.site.site import Site

# Whatever the umask: a web server reads them as another user.
_READABLE: Final = 0o644
_ENTERED: Final = 0o755
#: Says that a directory is a dashboard, whose files may be replaced and removed.
_MARK: Final = ".iobands-dashboard"
#: What could end a script, or a line of one, inside of a text.
_UNSAFE: Final = {"<": "\\u003c", ">": "\\u003e", "\u2028": "\\u2028", "\u2029": "\\u2029"}
_DATA: Final = "data"
#: How our data files begin; others are not ours to remove.
_RECEIVE: Final = b"iobands.receive("


@dataclass(frozen=True)
class Written:
    """The page, and how many of the files were replaced."""

    page: Path
    files: int
    replaced: int


def write_dashboard(
    site: Site,
    directory: Path,
    *,
    paths: Mapping[tuple[str, str], str] = MappingProxyType({}),
    public: bool = False,
    past: bool = False,
    progress: Callable[[int, int], None] = lambda _done, _of: None,
) -> Written:
    """Write the dashboard below `directory`; `paths` are those of each system's file systems.

    With `public` it says nothing of paths, people, nodes, jobs and reasons. `past` says that the
    site is shown as it was. `progress` is given how many of the parts are written.

    The page comes last: a reader meanwhile finds all that it names. Files of an earlier dashboard
    that are no part of this one are removed.

    Raises:
        OSError: the directory cannot be written, or is something else.
    """
    prepare_directory(directory)
    made: set[Path] = set()
    replaced = 0
    for name, content in _contents(site, paths, public, past, progress):
        path = directory / name
        _make(path.parent)
        replaced += replace_file(path, content)
        made.add(path)
    for path in list((directory / _DATA).rglob("*.js")):
        if path not in made and path.read_bytes().startswith(_RECEIVE):
            path.unlink()
            with contextlib.suppress(OSError):  # not empty
                path.parent.rmdir()
    return Written(directory / "index.html", len(made), replaced)


def prepare_directory(directory: Path) -> None:
    """Make and mark the directory of a dashboard.

    Raises:
        FileExistsError: something else is there that would be replaced, or a symbolic link.
        OSError: it cannot be made.
    """
    _make(directory)
    mark = directory / _MARK
    for name in ("index.html", "app", _DATA, _MARK):
        path = directory / name
        if path.is_symlink():
            raise FileExistsError(EEXIST, "is a symbolic link; remove it", str(path))
        if path.exists() and not mark.exists():
            problem = "is there and no dashboard of iobands; name another directory"
            raise FileExistsError(EEXIST, problem, str(path))
    mark.touch()
    mark.chmod(_READABLE)


def _make(directory: Path) -> None:
    """Make a directory and its parents that others can read."""
    if not directory.is_dir():
        if directory.parent != directory:
            _make(directory.parent)
        directory.mkdir(exist_ok=True)
        directory.chmod(_ENTERED)


def _contents(
    site: Site,
    paths: Mapping[tuple[str, str], str],
    public: bool,
    past: bool,
    progress: Callable[[int, int], None],
) -> Iterator[tuple[str, bytes]]:
    """Yield the name and the content of each file."""
    assets = files("iobands.reporting.dashboard") / "assets"
    for asset in sorted(assets.iterdir(), key=lambda each: each.name):
        if asset.name != "index.html":
            yield f"app/{asset.name}", asset.read_bytes()
    for name in ("uPlot.iife.js", "uPlot.min.css"):
        yield f"app/{name}", (files("uplot") / "static" / name).read_bytes()
    verdicts = {series_id(each.key): judged(each) for each in site.series}
    groups = by_job(site.series)
    slow = slowest(site.speeds)
    for done, (job, group) in enumerate(groups.items()):
        progress(done, len(groups))
        of_series = [
            details(site, each, verdicts[series_id(each.key)], public=public) for each in group
        ]
        parts = []
        for part, runs in parts_of(group, site.now, slow, public=public):
            parts.append(part)
            yield f"{_DATA}/{job}/{part}.js", _call(f"{job}/{part}", runs)
        about = packed(_printable({"parts": parts, "columns": COLUMNS, "series": of_series}))
        yield f"{_DATA}/{job}/series.js", _call(f"{job}/series", about)
    found = overview(site, verdicts, paths, public=public, past=past)
    yield f"{_DATA}/site.js", _call("site", found)
    yield "index.html", (assets / "index.html").read_bytes()
    progress(len(groups), len(groups))


def _call(name: str, data: object) -> bytes:
    """Return a script that hands plain data to data.js under a name."""
    text = json.dumps(_printable(data), separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    for character, escaped in _UNSAFE.items():
        text = text.replace(character, escaped)
    return _RECEIVE + f'"{name}",{text});\n'.encode("utf-8", "replace")


def _printable(value: object) -> object:
    """Return plain data whose texts have nothing that could upset a page."""
    match value:
        case str():
            return printable(value)
        case Mapping():
            return {str(name): _printable(each) for name, each in value.items()}
        case list() | tuple():
            return [_printable(each) for each in value]
    return value
