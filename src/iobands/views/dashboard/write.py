"""Writes the dashboard, and replaces only files whose content has changed.

The runs of series are in parts of half a year. A part is deflated JSON, as base64 in a script,
because a page opened from a disk can load only scripts. Runs before the previous half-year make up
most of a dashboard, so they keep less: fewer digits, and no jobs, targets or nodes.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import os
import re
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime, timezone
from errno import EEXIST
from functools import partial
from importlib.resources import files
from itertools import chain, pairwise
from pathlib import Path, PurePath
from types import MappingProxyType
from typing import Final
from urllib.parse import unquote

import polars as pl

from iobands import model
from iobands.snapshot import SLOWEST, WHERE, BeforeAfter, Series, Snapshot, is_constant, slowest
from iobands.views.dashboard.alert_page import alert_pages
from iobands.views.dashboard.overview import Cluster, clusters_page, overview
from iobands.views.dashboard.series import details_of, job_id, seconds
from iobands.views.maintenance import page_about, page_of_maintenance
from iobands.views.writing import Block

# Modes of files and directories, whatever the umask: a web server reads them as another user.
_READABLE: Final = 0o644
_ENTERED: Final = 0o755
#: The file that marks a directory as a dashboard, whose files may be replaced and removed.
_MARK: Final = ".iobands-dashboard"
#: Characters that could end a script, or a line of one.
_UNSAFE: Final = str.maketrans(
    {"<": "\\u003c", ">": "\\u003e", "\u2028": "\\u2028", "\u2029": "\\u2029"}
)
_DATA: Final = "data"
#: The first bytes of files that we may remove; no other file is ever removed.
_RECEIVE: Final = b"iobands.receive("
_BEGINNINGS: Final = (_RECEIVE, b'<!DOCTYPE html>\n<html lang="en" class="iobands-alert">')
#: The directories below a dashboard in which our files are.
_OURS: Final = ("app", _DATA, "alerts", "maintenances")
_PAGE: Final = "index.html"
#: A link from the page of several sites to the dashboard of a site; the group is its directory.
_LINKED: Final = re.compile('href="([^"/.][^"/]*)/index.html"')
_STYLE: Final = "clusters.css"
_SCRIPT: Final = "clusters.js"
#: The names that a dashboard uses in its directory.
_TAKEN: Final = (_PAGE, *_OURS, _MARK)
_LONGEST: Final = 255  # bytes of a name
#: The name of an unfinished file that a killed report leaves.
_UNFINISHED: Final = re.compile(r"\..+\.[0-9a-f]{16}")
_INTERVAL: Final = re.compile(r"\([\d.]+–(?=\d)")
_PATIENCE_SECONDS: Final = 60
_ASSETS: Final = files("iobands.views.dashboard") / "assets"
_json: Final = partial(json.dumps, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
#: The level of compression: a higher one takes twice as long and saves a fiftieth.
_DEFLATION: Final = 5


def write_dashboard(
    site: Snapshot,
    directory: Path,
    *,
    paths: Mapping[tuple[str, str], str] = MappingProxyType({}),
    several: bool = False,
    keeps_alerts: bool = False,
    users: Sequence[Block] = (),
    maintenances: Sequence[BeforeAfter] = (),
) -> int:
    """Write the dashboard below `directory`, and return how many files have new content.

    `paths` maps systems and file systems to the paths that users know. `several` means that the
    page of several sites is in the directory above. With `keeps_alerts`, earlier pages of alerts
    stay, as while alerts have no numbers. `users` is shown first to the users of the site. Each of
    `maintenances` gets a page.

    `index.html` is written last, so a reader finds all files that it names. Files of an earlier
    dashboard that are not part of this one are removed, as are dashboards of several sites here.
    Raises OSError if the directory cannot be written, or is not a dashboard.
    """
    with _alone(directory):
        _remove_sites(directory, kept=set())
        made: set[Path] = set()
        replaced = 0
        about = overview(site, paths, users=users, maintenances=maintenances)
        about["several"] = several
        front = {f"{_DATA}/site.js": _call("site", about), _PAGE: (_ASSETS / _PAGE).read_bytes()}
        pages = chain(
            alert_pages(site, several=several),
            ((page_about(e), page_of_maintenance(e, several=several)) for e in maintenances),
        )
        written = ((name, _html(page)) for name, page in pages)
        for name, content in chain(_app(), _runs(site), written, front.items()):
            path = directory / name
            with model.opened_below(directory, PurePath(name).parts[:-1], _ENTERED) as parent:
                replaced += model.replace_file(path, content, mode=_READABLE, directory=parent)
            made.add(path)
        if keeps_alerts:
            made.update((directory / "alerts").glob("*"))
        _remove_others(directory, made)
    return replaced


def write_clusters(
    directory: Path,
    clusters: Sequence[Cluster],
    now: datetime,
    *,
    past: bool = False,
    public: bool = False,
) -> Path:
    """Write the page of several sites, whose dashboards are below `directory`; return the page.

    `past` means that they are shown as of an earlier time, so the age of the page does not count.
    The dashboard of a single site in `directory` itself is removed, as are dashboards to which the
    earlier page links and that belong to no site now; with `public`, also those of sites without
    `href`. Raises OSError if the directory cannot be written, or is not a dashboard.
    """
    contents = {
        _STYLE: (_ASSETS / "dashboard.css").read_bytes(),
        _SCRIPT: (_ASSETS / _SCRIPT).read_bytes(),
        _PAGE: _html(clusters_page(clusters, now, past=past)),
    }
    kept = {directory_of(each.name) for each in clusters if each.href or not public}
    with _alone(directory), model.opened_below(directory, (), _ENTERED) as parent:
        _remove_sites(directory, kept)
        for name, content in contents.items():
            model.replace_file(directory / name, content, mode=_READABLE, directory=parent)
        _remove_others(directory, set())  # the dashboard of a single site
    return directory / _PAGE


def directory_of(name: str) -> str:
    """Return the name of the directory of a site's dashboard, beside the page of several sites.

    Whoever may push to a store chooses the names of sites: a name that cannot be a directory, or
    that the page itself uses, is replaced by its hash.
    """
    is_free = name not in (*_TAKEN, _STYLE, _SCRIPT) and len(name.encode()) <= _LONGEST
    if is_free and re.fullmatch(model.PATH_PART, name):
        return name
    return hashlib.sha256(name.encode()).hexdigest()[:12]


@contextmanager
def _alone(directory: Path) -> Iterator[None]:
    """Make and mark the directory of a dashboard, and hold it while no other report writes there.

    Raises:
        FileExistsError: what would be replaced is not of a dashboard, or is a symbolic link.
        TimeoutError: another report is still being written after `_PATIENCE_SECONDS`.
        OSError: it cannot be made.
    """
    if not directory.is_dir():
        missing = [each.name for each in directory.parents if not each.exists()]
        top = directory.parents[len(missing)]
        with model.opened_below(top, [*reversed(missing), directory.name], _ENTERED):
            pass
    with model.opened_below(directory, (), _ENTERED) as opened:
        for name in _TAKEN:
            path = directory / name
            model.refuse_link(path, opened)
            if path.exists() and not (directory / _MARK).exists():
                problem = "already exists and is not a dashboard of iobands; name another directory"
                raise FileExistsError(EEXIST, problem, str(path))
        model.replace_file(directory / _MARK, b"", mode=_READABLE, directory=opened)
    with model.held(directory / _MARK, _PATIENCE_SECONDS), model.naming(directory):
        for name in (_PAGE, _MARK, _STYLE, _SCRIPT):  # left by a killed report
            for path in directory.glob(f".{name}.{16 * '[0-9a-f]'}"):
                path.unlink(missing_ok=True)
        yield


def _remove_sites(directory: Path, kept: set[str]) -> None:
    """Remove the dashboards to which a page of several sites here links, except those in `kept`."""
    page = directory / _PAGE
    before = page.read_text(encoding="utf-8", errors="replace") if page.exists() else ""
    gone = {*map(unquote, _LINKED.findall(before))} - kept
    for name in gone:
        if (directory / name / _MARK).is_file():
            with _alone(directory / name):
                _remove_others(directory / name, set())
                (directory / name / _PAGE).unlink(missing_ok=True)
    for name in (_STYLE, _SCRIPT) if gone and not kept else ():
        (directory / name).unlink(missing_ok=True)


def _remove_others(directory: Path, made: set[Path]) -> None:
    """Remove our files in the directories `_OURS`, except those in `made`."""
    for name in _OURS:
        if (directory / name).is_dir():
            with model.opened_below(directory, [name], _ENTERED) as below:
                _remove_below(directory / name, below, made)


def _remove_below(path: Path, data: int, made: set[Path]) -> None:
    """Remove our files below `path` that are not in `made`; `data` is its descriptor."""
    for where, _, names, parent in os.fwalk(dir_fd=data, topdown=False):
        for name in names:
            if path / where / name in made:
                continue
            begins = (b"",) if _UNFINISHED.fullmatch(name) else _BEGINNINGS
            with suppress(FileNotFoundError):
                content = model.read_regular(name, parent, max(map(len, begins)))
                if content is not None and content.startswith(begins):
                    os.unlink(name, dir_fd=parent)
        if where != ".":
            with suppress(OSError):  # not empty
                os.rmdir(where, dir_fd=data)


def _app() -> Iterator[tuple[str, bytes]]:
    for name in sorted({each.name for each in _ASSETS.iterdir()} - {_PAGE, _SCRIPT}):
        yield f"app/{name}", (_ASSETS / name).read_bytes()
    for name in ("uPlot.iife.js", "uPlot.min.css"):
        yield f"app/{name}", (files("uplot") / "static" / name).read_bytes()


def _html(page: str) -> bytes:
    """Return a page as UTF-8; no line breaks at the dash of an interval, as in text.js."""
    return _INTERVAL.sub("\\g<0>\N{WORD JOINER}", page).encode("utf-8", "replace")


def _runs(site: Snapshot) -> Iterator[tuple[str, bytes]]:
    """Yield the path and content of the files with runs and details, for each group of jobs."""
    slow, rows = slowest(site.speeds), site.samples.select(*_OF_RUN, model.VALUE, *_ABOUT)
    same = rows[:1].select(name for name in _ABOUT if is_constant(rows[name]))
    rows = rows.drop(same.columns)
    for job, group in model.grouped_by(site.series, lambda each: job_id(each.key)).items():
        parts = _parts_of(rows, same, group, slow, site.now)
        for part, tables in parts.items():
            yield f"{_DATA}/{job}/{part}.js", _call(f"{job}/{part}", _packed(tables))
        of_series = [details_of(site, each) for each in group]
        about = {"parts": [*parts], "columns": _COLUMNS, "series": of_series}
        yield f"{_DATA}/{job}/series.js", _call(f"{job}/series", _packed(_plain(about)))


def _call(name: str, data: object) -> bytes:
    """Return a script that passes data to data.js under a name."""
    text = _json(_plain(data)).translate(_UNSAFE)
    return _RECEIVE + f'"{name}",{text});\n'.encode("utf-8", "replace")


def _plain(value: object) -> object:
    """Return data with printable texts, string keys, lists, and times in seconds since 1970."""
    match value:
        case str():
            return model.printable(value)
        case datetime():
            return seconds(value)
        case Mapping():
            return {str(name): _plain(each) for name, each in value.items()}
        case list() | tuple():
            return [_plain(each) for each in value]
    return value


def _packed(data: object) -> str:
    """Return plain data as deflated JSON in base64."""
    text = _json(data).encode("utf-8", "replace")
    return base64.b64encode(zlib.compress(text, _DEFLATION)).decode("ascii")


_EVIDENCE: Final = {
    field.name: field for field in model.FIELDS if field.role in {"in_effect", "covariate"}
}
# The columns of a run besides its value, the most useful first.
_COLUMNS: Final = (
    *("jobid", "job_nodelist", *SLOWEST.values(), "attempt"),
    *sorted(
        _EVIDENCE, key=lambda name: (_EVIDENCE[name].role == "in_effect", name.endswith("version"))
    ),
)
# Runs of several series that agree in these columns are from one job.
_OF_RUN: Final = (model.TIME, "jobid")
_ABOUT: Final = ("job_nodelist", "attempt", *_EVIDENCE)
_NONE: Final = pl.Series(dtype=pl.Null)
_DIGITS: Final = 3  # significant digits of a covariate
_FIRST: Final = 35  # code of the character for the commonest value of a column; see data.js
_MOST_REPEATED: Final = 20_000  # different values for which a column uses characters

_Table = dict[str, object]


def _parts_of(
    rows: pl.DataFrame,
    same: pl.DataFrame,
    group: Sequence[Series],
    slow: Mapping[tuple[object, ...], pl.DataFrame],
    now: datetime,
) -> dict[str, list[_Table]]:
    """Return the tables of each part in which a series of `group` has runs.

    Parts are this half-year and the previous one, such as `2026-1`, and `earlier` for all before.
    Series with samples of the same runs share a table. `rows` are all samples of the site without
    the columns `same`, in which all agree, and `slow` is the result of `slowest`.
    """
    frames: list[pl.DataFrame] = []  # with a column for each variable
    for series in group:
        runs, variable = rows[series.rows], series.key.variable
        values, times = runs[model.VALUE].alias(variable), runs.select(_OF_RUN)
        known = slow.get(tuple(getattr(series.key, name) for name in WHERE))
        alike = (place for place, frame in enumerate(frames) if frame.select(_OF_RUN).equals(times))
        if (place := next(alike, None)) is not None:
            frames[place] = frames[place].with_columns(values)
        elif len(runs):
            if known is not None:
                runs = runs.join(known, on=model.TIME, how="left", maintain_order="left")
            frames.append(runs.with_columns(values))
    this = 2 * now.year + (now.month - 1) // 6  # half-years since year 0
    halves = [(half // 2, half % 2) for half in (this - 1, this)]
    begins = [datetime(year, 1 + 6 * half, 1, tzinfo=timezone.utc) for year, half in halves]
    names = ("earlier", *(f"{year}-{half + 1}" for year, half in halves))
    parts: dict[str, list[_Table]] = {name: [] for name in names}
    for frame in frames:
        ends = [0, *frame[model.TIME].search_sorted(pl.Series(begins)), len(frame)]
        for name, (begin, end) in zip(names, pairwise(ends), strict=True):
            if begin < end:
                parts[name].append(_table(frame[begin:end], same, is_early=name == "earlier"))
    return {name: tables for name, tables in parts.items() if tables}


def _table(frame: pl.DataFrame, same: pl.DataFrame, *, is_early: bool) -> _Table:
    """Return a table of runs by column; times are the first time and the differences.

    Values have more digits than a page shows, since rounding twice may change the last digit. Runs
    that are early keep fewer columns and digits.
    """
    columns: dict[str, object] = {}
    for name in _EVIDENCE if is_early else _COLUMNS:
        column = frame.get_column(name, default=same.get_column(name, default=_NONE))
        if column.null_count() == len(column):
            continue
        if column.dtype.is_float():
            largest = float(column.abs().drop_nulls().to_numpy().max())
            size = math.floor(math.log10(largest or 1))
            # a constant takes no room, and must be equal in all parts
            shown = _DIGITS - (is_early and not is_constant(column))
            column = column.round(max(0, shown - 1 - size))
        columns[name] = _column(column)
    times = frame[model.TIME].dt.epoch("s")
    digits = 3 if is_early else 6
    variables = [name for name in frame.columns if name in model.VARIABLE_UNITS]
    rates = {name: _column(frame[name].round_sig_figs(digits)) for name in variables}
    return {"times": [times[0], *times.diff()[1:].to_list()], "values": rates, "columns": columns}


def _column(column: pl.Series) -> object:
    """Return a column as its only value, as few values and a character per run, or as a list."""
    if is_constant(column):
        return column[0]
    cells = column.to_list()
    counts = Counter(cells)
    if len(counts) > min(len(cells) / 4, _MOST_REPEATED):
        return cells
    marks = {value: chr(_FIRST + place) for place, (value, _) in enumerate(counts.most_common())}
    return {"of": [*marks], "at": "".join(map(marks.__getitem__, cells))}
