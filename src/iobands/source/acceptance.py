"""The directory of an acceptance (contract 10): its raw results, and the checksums of all of it.

The runs are in the site's perflogs too. Here is a copy that goes from hand to hand: lines and run
reports as they were written, the contract, and `SHA256SUMS`, which `sha256sum -c` reads.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Final

import polars as pl

from iobands.bands.contract import Contract, ContractLine
from iobands.measure import Cost, costs_of, load_report, read_run_reports, report_files
from iobands.model import (
    ACCEPTANCE,
    SERIES_FIELDS,
    TIME,
    VALUE,
    VARIABLE,
    FileError,
    Unusable,
    canonical,
    parse_time,
    read_content,
    read_small,
    replace_file,
    unknown,
    utc_text,
)
from iobands.source.perflog import perflog_files, read_perflogs

CONTRACT_NAME: Final = "contract.yaml"
BEGUN_NAME: Final = "begun.json"
SUMS_NAME: Final = "SHA256SUMS"
REPORT_NAME: Final = "report.md"
PERFLOGS_NAME: Final = "perflogs"
_SCHEMA: Final = 1
_PACKED: Final = frozenset({".gz", ".bz2", ".xz", ".zst", ".Z"})


@dataclass(frozen=True)
class MeasuredBy:
    """The check of a line: its name in ReFrame, and where it runs."""

    check: str
    partition: str
    environ: str


@dataclass(frozen=True)
class Begun:
    """What was fixed when an acceptance began: the time, the contract, and the check of each line.

    `version` is of the iobands that began it.
    """

    system: str
    began: str
    contract: str
    version: str
    lines: tuple[MeasuredBy, ...]

    @property
    def since(self) -> datetime:
        """From when on runs count."""
        return parse_time(self.began)


def read_begun(directory: Path) -> Begun | None:
    """Return what was fixed, None if no acceptance has begun there.

    Raises:
        FileError: the file is damaged.
    """
    path = directory / BEGUN_NAME
    try:
        said = json.loads(read_small(path))
        if said.pop("schema") != _SCHEMA:
            raise FileError(f"{path}: is of another iobands; use that one")
        found = Begun(**{**said, "lines": tuple(MeasuredBy(**each) for each in said["lines"])})
        parse_time(found.began)
        texts = (found.system, found.began, found.contract, found.version)
        if not all(isinstance(text, str) for text in texts):
            raise ValueError
    except FileNotFoundError:
        return None
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        if isinstance(error, FileError):
            raise
        raise FileError(f"{path}: is damaged; restore it, or begin anew elsewhere") from error
    return found


def begun_of(
    directory: Path,
    contract: Contract,
    content: bytes,
    lines: tuple[MeasuredBy, ...],
    version: str,
    *,
    dry: bool,
) -> Begun:
    """Return what was fixed when the acceptance began: before, or now, which `dry` does not write.

    Raises:
        FileError: the contract or the checks have changed, or the directory has something else.
        OSError: the directory cannot be written.
    """
    begun = read_begun(directory)
    if begun is None:
        now = utc_text(datetime.now(timezone.utc).replace(microsecond=0))
        begun = Begun(contract.system, now, contract.digest, version, lines)
        if not dry:
            _begin(directory, begun, content)
        return begun
    if begun.system != contract.system:
        raise FileError(f"{directory}: has results of {begun.system}; name another with --results")
    if begun.contract != contract.digest:
        raise FileError(
            f"{contract.document.source}: has changed since the acceptance began at {begun.began}: "
            f"{_difference(read_content(directory / CONTRACT_NAME), content)}; restore it, or "
            "begin another acceptance with --results"
        )
    for line, now_by, was_by in zip(contract.lines, lines, begun.lines, strict=True):
        if now_by != was_by:
            raise FileError(
                f"{line.name}: was measured by {was_by.check} on {was_by.partition} with "
                f"{was_by.environ}, and the site file now gives {now_by.check} on "
                f"{now_by.partition} with {now_by.environ}; restore the site file, or begin "
                "another acceptance with --results"
            )
    return begun


def _difference(before: bytes, after: bytes) -> str:
    """Return the first line in which two texts differ."""
    old, new = (text.decode(errors="replace").splitlines() for text in (before, after))
    pairs = zip([*old, *[""] * len(new)], [*new, *[""] * len(old)], strict=True)
    for number, (was, now) in enumerate(pairs, 1):
        if was != now:
            return f"line {number} is {now.strip()!r} and was {was.strip()!r}"
    return "in its line ends"


def _begin(directory: Path, begun: Begun, contract: bytes) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    if any(directory.iterdir()):
        raise FileError(f"{directory}: has other files; name an empty directory with --results")
    text = json.dumps({"schema": _SCHEMA, **asdict(begun)}, indent=1)
    replace_file(directory / CONTRACT_NAME, contract)
    replace_file(directory / BEGUN_NAME, f"{text}\n".encode())
    seal(directory)


def collect(perflogs: Path, directory: Path, begun: Begun, trusted: Collection[str]) -> None:
    """Copy the lines and run reports of the acceptance from the perflogs of the site.

    Lines that were copied before stay, except of files that are not among the `trusted`: somebody
    may have changed those.

    Raises:
        OSError: a file cannot be read or written.
    """
    checks = {each.check for each in begun.lines}
    for path in perflog_files(perflogs, begun.system):
        if path.suffix in _PACKED or path.parent.parent.parent != perflogs:
            continue
        copy = directory / PERFLOGS_NAME / path.relative_to(perflogs)
        former = [copy] if _name(copy, directory) in trusted else []
        lines: dict[str, None] = {}
        for source in (*former, path):
            lines |= dict.fromkeys(_lines_of(source, checks, begun.since))
        if lines:
            copy.parent.mkdir(parents=True, exist_ok=True)
            replace_file(copy, "".join(lines).encode())
    for path in report_files(perflogs, begun.system):
        if path.stat().st_mtime >= begun.since.timestamp() and _is_ours(path, checks):
            copy = directory / PERFLOGS_NAME / path.relative_to(perflogs)
            copy.parent.mkdir(parents=True, exist_ok=True)
            replace_file(copy, read_small(path))


def _lines_of(path: Path, checks: Collection[str], since: datetime) -> list[str]:
    """Return the lines of an acceptance in a perflog, after their headers."""
    found: list[str] = []
    header, columns = "", list[str]()
    for line in read_small(path, 1 << 30).decode(errors="replace").splitlines(keepends=True):
        cells = line.rstrip("\n").split("|")
        if TIME in cells and VALUE in cells:
            header, columns = line, cells
        elif columns and len(cells) == len(columns) and line.endswith("\n"):
            row = dict(zip(columns, cells, strict=True))
            try:
                is_ours = row.get("purpose") == ACCEPTANCE and parse_time(row[TIME]) >= since
            except ValueError:
                continue
            if is_ours and row.get("display_name") in checks:
                found += [line] if header in found else [header, line]
    return found


def _is_ours(path: Path, checks: Collection[str]) -> bool:
    try:
        return any(
            entry.get("purpose") == ACCEPTANCE and entry.get("display_name") in checks
            for entry in load_report(path).cases
        )
    except Unusable:
        return False


@dataclass(frozen=True)
class LineRuns:
    """The runs of a line in the order of time, and why others gave no rate."""

    runs: tuple[Mapping[str, Any], ...]
    failures: tuple[str, ...]


def runs_of_lines(directory: Path, contract: Contract, begun: Begun) -> tuple[LineRuns, ...]:
    """Return the runs of each line, by the copies in the directory.

    Raises:
        FileError: a copy is damaged, or of another system.
    """
    copies = directory / PERFLOGS_NAME
    if not copies.is_dir():
        return tuple(LineRuns((), ()) for _ in contract.lines)
    samples, reports = read_perflogs(copies), read_run_reports(copies)
    for rejected in (*samples.rejected, *reports.rejected):
        raise FileError(str(rejected))
    systems = {*samples.measured["system"].cast(pl.String), *(run.system for run in reports.runs)}
    if others := sorted(systems - {begun.system}):
        raise FileError(f"{copies}: has results of {others[0]}; the contract is of {begun.system}")
    frame = samples.measured.filter(
        pl.col(TIME) >= begun.since, pl.col("purpose") == ACCEPTANCE
    ).with_columns(pl.col(pl.Categorical).cast(pl.String))
    rows = frame.to_dicts()
    found = []
    for line, by in zip(contract.lines, begun.lines, strict=True):
        where = (by.check, by.partition, by.environ)
        runs = tuple(row for row in rows if _where(row) == where and _is_of_line(row, line))
        failures = tuple(
            run.reason or "no rate"
            for run in reports.runs
            if (run.name, run.partition, run.environ) == where
            and run.purpose == ACCEPTANCE
            and line.variable not in run.recorded
        )
        found.append(LineRuns(runs, failures))
    return tuple(found)


def _where(row: Mapping[str, Any]) -> tuple[str, str, str]:
    return row["display_name"], row["partition"], row["environ"]


def _is_of_line(row: Mapping[str, Any], line: ContractLine) -> bool:
    return row[VARIABLE] == line.variable and line.is_of(row)


def seal(directory: Path) -> str:
    """Write the checksums of all files but the report, and return the checksum of the list."""
    text = "".join(f"{digest}  {name}\n" for name, digest in _digests(directory).items())
    replace_file(directory / SUMS_NAME, text.encode())
    return hashlib.sha256(text.encode()).hexdigest()


def changed_since(directory: Path) -> list[str]:
    """Return the files that are not as the checksums say, are missing, or are not listed."""
    listed = {}
    for line in read_small(directory / SUMS_NAME).decode(errors="replace").splitlines():
        digest, _, name = line.partition("  ")
        listed[name] = digest
    found = _digests(directory)
    return sorted(name for name in {*listed, *found} if listed.get(name) != found.get(name))


def sealed(directory: Path) -> Sequence[str]:
    """Return the files that are as the checksums say."""
    return sorted({*_digests(directory)} - {*changed_since(directory)})


def hash_of(directory: Path) -> str:
    """Return the checksum of the list of checksums."""
    return hashlib.sha256(read_small(directory / SUMS_NAME)).hexdigest()


def _digests(directory: Path) -> dict[str, str]:
    """Return the SHA-256 of each file below the directory, but of the report and the list."""
    apart = {directory / SUMS_NAME, directory / REPORT_NAME}
    files = sorted(path for path in directory.rglob("*") if path.is_file() or path.is_symlink())
    return {
        _name(path, directory): hashlib.sha256(read_small(path, 1 << 30)).hexdigest()
        for path in files
        if path not in apart
    }


def _name(path: Path, directory: Path) -> str:
    return path.relative_to(directory).as_posix()


def check_of(
    contract: Contract, number: int, described: Sequence[Mapping[str, Any]]
) -> tuple[MeasuredBy, Cost]:
    """Return the one check that measures a line, and what a run of it costs.

    Raises:
        FileError: there is no acceptance, or more than one; the message says what to write.
    """
    line = contract.lines[number]
    every = [
        {**check, "partition": place.partition(":")[2], "environ": environ}
        | {"valid_systems": [place], "valid_prog_environs": [environ]}
        for check in described
        if check.get("tool") and "gib" in check
        for place in check["valid_systems"]
        for environ in check["valid_prog_environs"]
    ]
    found = [each for each in every if line.is_of(each)]
    if len(found) == 1:
        (one,) = found
        by = MeasuredBy(one["display_name"], one["partition"], one["environ"])
        return by, costs_of(found)[0]
    raise _several(contract, number, found) if found else _none(contract, number, line, every)


def _several(contract: Contract, number: int, found: Sequence[Mapping[str, Any]]) -> FileError:
    open_ = [
        f"{name} ({', '.join(values)})"
        for name in SERIES_FIELDS
        if len(values := sorted({_text(each.get(name)) for each in found})) > 1
    ]
    problem = f"selects {len(found)} measurements; also name {' and '.join(open_)}"
    return contract.document.error(["lines", number, "match"], problem)


def _none(
    contract: Contract, number: int, line: ContractLine, every: Sequence[Mapping[str, Any]]
) -> FileError:
    """Return the error for a field with a value that no check has, or for their combination."""
    steps: list[str | int] = ["lines", number, "match"]
    others = [name for name in line.match if name != "variable"]
    for name in others:
        values = {_text(each.get(name)) for each in every}
        if _text(line.match[name]) not in values:
            return contract.document.error(
                [*steps, name], unknown(line.match[name], sorted(values))
            )

    def lacking(each: Mapping[str, Any]) -> list[str]:
        return [name for name in others if canonical(each.get(name)) != canonical(line.match[name])]

    near = min(every, key=lambda each: len(lacking(each)))
    has = ", ".join(f"{name} {_text(near.get(name))}" for name in lacking(near) or ["case"])
    problem = f"selects no measurement of this site; the nearest one has {has}"
    return contract.document.error(steps, problem)


def _text(value: object) -> str:
    known = canonical(value)
    return "null" if known is None else f"{known:g}" if isinstance(known, float) else known
