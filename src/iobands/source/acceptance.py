"""The directory of an acceptance (contract 11): its raw results, and the checksums of all files.

The runs are in the site's perflogs too. This is a copy that site and vendor can exchange: lines and
run reports as they were written, the contract, and `SHA256SUMS`, which `sha256sum -c` reads.
"""

from __future__ import annotations

import hashlib
import io
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from datetime import datetime, timezone
from itertools import zip_longest
from pathlib import Path
from typing import Any, Final, Literal

import msgspec
import polars as pl

from iobands.bands.contract import Contract, ContractLine, MeasuredBy
from iobands.measure import Cost, costs_of, load_report, read_run_reports, report_files
from iobands.model import (
    ACCEPTANCE,
    SERIES_FIELDS,
    TIME,
    VALUE,
    VARIABLE,
    FileError,
    Steps,
    Unusable,
    __version__,
    canonical,
    parse_time,
    path_part,
    read_content,
    read_small,
    replace_file,
    unknown,
    utc_text,
)
from iobands.source.perflog import PACKED, perflog_files, read_perflogs

CONTRACT_NAME: Final = "contract.yaml"
BEGUN_NAME: Final = "begun.json"
SUMS_NAME: Final = "SHA256SUMS"
REPORT_NAME: Final = "report.md"
_PERFLOGS: Final = "perflogs"
_LARGEST: Final = 1 << 30  # bytes of a perflog


@dataclass(frozen=True)
class Begun:
    """What was fixed when an acceptance began: the time, the contract, and the check of each line.

    `contract` is the digest of the contract, `version` the version of iobands.
    """

    schema: Literal[1] = field(default=1, kw_only=True)
    system: str
    began: str
    contract: str
    version: str
    lines: tuple[MeasuredBy, ...]

    @property
    def since(self) -> datetime:
        """The time from which runs count."""
        return parse_time(self.began)


def read_begun(directory: Path) -> Begun | None:
    """Return what was fixed, None if no acceptance has begun in the directory.

    Raises:
        FileError: the file is damaged.
    """
    path = directory / BEGUN_NAME
    try:
        found = msgspec.json.decode(read_small(path), type=Begun)
        parse_time(found.began)
    except FileNotFoundError:
        return None
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise FileError(
            f"{path}: is damaged, or of another version of iobands ({error}); restore it, use that "
            "version, or begin another acceptance with --results"
        ) from error
    return found


def begun_of(
    directory: Path, contract: Contract, content: bytes, lines: tuple[MeasuredBy, ...], *, dry: bool
) -> Begun:
    """Begin the acceptance, unless it has begun; return what was fixed. `dry` writes nothing.

    Raises:
        FileError: the contract or the checks have changed, or the directory has other files.
        OSError: the directory cannot be written.
    """
    begun = read_begun(directory)
    if begun is None:
        now = utc_text(datetime.now(timezone.utc).replace(microsecond=0))
        begun = Begun(contract.system, now, contract.digest, __version__, lines)
        if not dry:
            directory.mkdir(parents=True, exist_ok=True)
            if any(directory.iterdir()):
                raise FileError(
                    f"{directory}: has other files; name an empty directory with --results"
                )
            replace_file(directory / CONTRACT_NAME, content)
            text = msgspec.json.format(msgspec.json.encode(begun), indent=1)
            replace_file(directory / BEGUN_NAME, text + b"\n")
            seal(directory)
        return begun
    if begun.system != contract.system:
        raise FileError(f"{directory}: has results of {begun.system}; name another with --results")
    anew = "begin another acceptance with --results"
    if begun.contract != contract.digest:
        how = _difference(read_content(directory / CONTRACT_NAME), content)
        raise FileError(
            f"{contract.document.source}: has changed since the acceptance began at {begun.began}: "
            f"{how}; restore it, or {anew}"
        )
    for line, now_by, was_by in zip(contract.lines, lines, begun.lines, strict=True):
        if now_by != was_by:
            raise FileError(
                f"{line.name}: was measured by {was_by}, and the site file now gives {now_by}; "
                f"restore the site file, or {anew}"
            )
    return begun


def _difference(before: bytes, after: bytes) -> str:
    old, new = (text.decode(errors="replace").splitlines() for text in (before, after))
    for number, (was, now) in enumerate(zip_longest(old, new, fillvalue=""), 1):
        if was != now:
            return f"line {number} is {now.strip()!r} and was {was.strip()!r}"
    return "in its line endings"


def collect(perflogs: Path, directory: Path, begun: Begun) -> None:
    """Copy the lines and run reports of the acceptance from the perflogs of the site.

    Lines that were copied before stay, except in copies that do not match their checksums: somebody
    has changed these. A copy has the lines of a perflog and its rotated files under one header.

    Raises:
        OSError: a file cannot be read or written.
    """
    checks, copies = {each.check for each in begun.lines}, directory / _PERFLOGS
    try:
        changed = changed_since(directory)
    except FileNotFoundError:
        changed = [*_digests(directory)]
    before = perflog_files(copies)
    paths = [(copies, e) for e in before if e.relative_to(directory).as_posix() not in changed]
    paths += [
        (perflogs, path)
        for path in perflog_files(perflogs)
        if path.suffix not in PACKED and path.is_file()
    ]
    known = set[tuple[str, str]]()  # a perflog may lie beside a copy of itself
    texts: defaultdict[Path, dict[str, str]] = defaultdict(dict)
    for root, path in paths:
        name = path.relative_to(root)
        by_header = texts[name.with_name(path.name.partition(".log")[0])]
        is_own = name.parts[0] == path_part(begun.system)
        with nullcontext() if is_own else suppress(OSError):  # no other system stops this one
            for header, line in _lines_of(path, begun, checks):
                if (header, line) not in known:
                    known.add((header, line))
                    by_header[header] = by_header.get(header, header) + line
    found = {
        copies / f"{name}.log{f'.h{number}' if number else ''}": text.encode()
        for name, by_header in texts.items()
        for number, text in enumerate(by_header.values())
    }
    for path in report_files(perflogs, begun.system):
        is_new = path.is_file() and path.stat().st_mtime >= begun.since.timestamp()
        if is_new and _is_ours(path, begun, checks):
            found[copies / path.relative_to(perflogs)] = read_small(path)
    for path, content in found.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, content)
    for path in {*before} - found.keys():
        path.unlink()


def _lines_of(path: Path, begun: Begun, checks: Collection[str]) -> Iterator[tuple[str, str]]:
    """Yield (header, line) for each line of the acceptance in a perflog."""
    header, columns = "", list[str]()
    for line in io.StringIO(read_small(path, _LARGEST).decode(errors="replace"), newline="\n"):
        cells = line.rstrip("\n").split("|")
        if TIME in cells and VALUE in cells:
            header, columns = line, cells
        elif columns and len(cells) == len(columns) and line.endswith("\n"):
            row = dict(zip(columns, cells, strict=True))
            if _is_of(row, begun, checks):
                with suppress(ValueError):
                    if parse_time(row[TIME]) >= begun.since:
                        yield header, line


def _is_ours(path: Path, begun: Begun, checks: Collection[str]) -> bool:
    with suppress(Unusable):
        return any(_is_of(each, begun, checks) for each in load_report(path).cases)
    return False


def _is_of(run: Mapping[str, object], begun: Begun, checks: Collection[str]) -> bool:
    is_there = (run.get("purpose"), run.get("system")) == (ACCEPTANCE, begun.system)
    return is_there and run.get("display_name") in checks


def runs_of_lines(
    directory: Path, contract: Contract, begun: Begun
) -> Sequence[tuple[tuple[Mapping[str, Any], ...], tuple[str, ...]]]:
    """Return for each line its runs, and the reasons of its runs without a rate.

    They come from the copies in `directory`. Runs are in the order of time.

    Raises:
        FileError: a copy is damaged, or of another system.
    """
    copies = directory / _PERFLOGS
    if not copies.is_dir():
        return [((), ()) for _ in contract.lines]
    samples, reports = read_perflogs(copies), read_run_reports(copies)
    for rejected in (*samples.rejected, *reports.rejected):
        raise FileError(str(rejected))
    systems = {*samples.measured["system"].cast(pl.String), *(run.system for run in reports.runs)}
    if others := sorted(systems - {begun.system}):
        raise FileError(f"{copies}: has results of {others[0]}; the contract is of {begun.system}")
    ours = samples.measured.filter(pl.col(TIME) >= begun.since, pl.col("purpose") == ACCEPTANCE)
    rows = ours.with_columns(pl.col(pl.Categorical).cast(pl.String)).to_dicts()
    failed = [run for run in reports.runs if run.purpose == ACCEPTANCE]
    return [
        (
            tuple(
                row
                for row in rows
                if MeasuredBy(row["display_name"], row["partition"], row["environ"]) == by
                and row[VARIABLE] == line.variable
                and line.is_of(row)
            ),
            tuple(
                run.reason or "no rate"
                for run in failed
                if MeasuredBy(run.name, run.partition, run.environ) == by
                and line.variable not in run.recorded
            ),
        )
        for line, by in zip(contract.lines, begun.lines, strict=True)
    ]


def seal(directory: Path) -> str:
    """Write the checksums of all files but the report, and return the checksum of the list."""
    text = "".join(f"{digest}  {name}\n" for name, digest in _digests(directory).items())
    replace_file(directory / SUMS_NAME, text.encode())
    return hash_of(directory)


def changed_since(directory: Path) -> list[str]:
    """Return the files that do not match their checksums, are missing, or are not listed.

    Raises:
        FileNotFoundError: there are no checksums.
    """
    lines = read_small(directory / SUMS_NAME).decode(errors="replace").splitlines()
    listed = {name: digest for digest, _, name in (line.partition("  ") for line in lines)}
    found = _digests(directory)
    return sorted(name for name in {*listed, *found} if listed.get(name) != found.get(name))


def hash_of(directory: Path) -> str:
    """Return the checksum of the list of checksums."""
    return hashlib.sha256(read_small(directory / SUMS_NAME)).hexdigest()


def _digests(directory: Path) -> dict[str, str]:
    """Return the SHA-256 of each file below the directory except the report and the list."""
    return {
        name: hashlib.sha256(read_small(path, _LARGEST)).hexdigest()
        for path in sorted(directory.rglob("*"))
        if path.is_file() or path.is_symlink()
        if (name := path.relative_to(directory).as_posix()) not in {SUMS_NAME, REPORT_NAME}
    }


def check_of(
    contract: Contract, number: int, described: Sequence[Mapping[str, Any]]
) -> tuple[MeasuredBy, Cost]:
    """Return the one check that measures a line, and what a run of it costs.

    Raises:
        FileError: no check measures it, or more than one; the message says what to write.
    """
    line = contract.lines[number]
    steps: Steps = ["lines", number, "match"]
    every = [
        {**check, "partition": place.partition(":")[2], "environ": environ}
        | {"valid_systems": [place], "valid_prog_environs": [environ]}
        for check in described
        if check.get("tool") and "gib" in check
        for place in check["valid_systems"]
        for environ in check["valid_prog_environs"]
    ]
    if not (found := [each for each in every if line.is_of(each)]):
        raise contract.document.error(*_unmatched(line, steps, every))
    if len(found) > 1:
        values = {name: sorted({_text(each.get(name)) for each in found}) for name in SERIES_FIELDS}
        differ = [f"{name} ({', '.join(some)})" for name, some in values.items() if len(some) > 1]
        problem = f"selects {len(found)} measurements; also name {' and '.join(differ)}"
        raise contract.document.error(steps, problem)
    (one,) = found
    return MeasuredBy(one["display_name"], one["partition"], one["environ"]), costs_of(found)[0]


def _unmatched(
    line: ContractLine, steps: Steps, every: Sequence[Mapping[str, Any]]
) -> tuple[Steps, str]:
    """Return where a line fits no check (a value, or the whole `match`), and what is wrong."""
    wanted = {name: value for name, value in line.match.items() if name != "variable"}
    for name, value in wanted.items():
        values = {_text(each.get(name)) for each in every}
        if _text(value) not in values:
            return [*steps, name], unknown(value, sorted(values))
    lacking = [
        [n for n, value in wanted.items() if canonical(each.get(n)) != canonical(value)]
        for each in every
    ]
    names, near = min(zip(lacking, every, strict=True), key=lambda pair: len(pair[0]))
    has = ", ".join(f"{name} {_text(near.get(name))}" for name in names or ["case"])
    return steps, f"selects no measurement of this site; the nearest one has {has}"


def _text(value: object) -> str:
    known = canonical(value)
    return "null" if known is None else f"{known:g}" if isinstance(known, float) else known
