"""The samples of canaries: `perflogs/<system>/canaries/<node>.log`, in the form of perflogs.

Only canaries read them, for the band of a node's peers: one node may leave hundreds a day. A file
has the newest runs of its node.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Final

from iobands.model import (
    PERFLOG_HEADER,
    REPEAT,
    SERIES_FIELDS,
    TIME,
    VALUE,
    VARIABLE,
    SessionError,
    canonical,
    naming,
    number,
    path_part,
    perflog_line,
    read_small,
)

_MOST_BYTES: Final = 1 << 20
_KEPT_LINES: Final = 1200
#: The newest samples of a series that count, of all peers.
MOST: Final = 400
_NODES: Final = 10  # all rows of this many peers are read
_RECENT: Final = 24 * 3600
#: From this many nodes on, collapsed samples are the new normal.
_MANY: Final = 3

CanaryRow = Mapping[str, str]


def log_of(perflogs: Path, system: str, node: str) -> Path:
    """Return the file of a node."""
    return perflogs / path_part(system) / "canaries" / f"{path_part(node)}.log"


@contextmanager
def held_log(path: Path, until: float) -> Iterator[int]:
    """Open the file of this node, which makes its canaries wait for each other.

    Raises:
        SessionError: another canary of the node has it until the monotonic time `until`.
        OSError: it cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
    with naming(path):
        descriptor = os.open(path, flags, 0o644)
    try:
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > until:
                    raise SessionError("another canary is measuring on this node") from None
                time.sleep(0.2)
            except OSError:  # a file system without locks: both measure
                break
        yield descriptor
    finally:
        os.close(descriptor)


def add_rows(descriptor: int, rows: Sequence[Mapping[str, object]]) -> None:
    """Add lines to the file that is held, and shorten it if it has become long."""
    size = os.fstat(descriptor).st_size
    text = os.pread(descriptor, size, 0).decode("utf-8", "replace")
    header, *lines = text.splitlines() or [""]
    new = [perflog_line(row) for row in rows]
    if header == PERFLOG_HEADER and size < _MOST_BYTES:
        new[:0] = [] if text.endswith("\n") else [""]
    else:  # columns of another version begin anew
        kept = lines[-_KEPT_LINES:] if header == PERFLOG_HEADER else []
        new[:0] = [PERFLOG_HEADER, *kept]
        os.ftruncate(descriptor, 0)
    os.write(descriptor, "".join(f"{line}\n" for line in new).encode())


def _rows_in(text: str) -> Iterator[CanaryRow]:
    """Yield the complete lines of a file by column; others do not count."""
    head, _, rest = text.partition("\n")
    names = head.split("|")
    for line in rest.splitlines():
        cells = line.split("|")
        if len(cells) == len(names):
            yield dict(zip(names, cells, strict=True))


def rows_of_peers(own: Path, series: int) -> dict[str, list[CanaryRow]]:
    """Return rows of other nodes, the oldest first; the newest nodes for that many series."""
    found: dict[str, list[CanaryRow]] = {}
    with suppress(OSError):
        paths = [Path(each) for each in os.scandir(own.parent) if each.name.endswith(".log")]
        for path in sorted(paths, key=lambda path: -path.stat().st_mtime):
            if len(found) >= _NODES and sum(map(len, found.values())) > 2 * MOST * series:
                break
            if path != own:
                with suppress(OSError):
                    text = read_small(path, 2 * _MOST_BYTES).decode("utf-8", "replace")
                    found[path.stem] = [*_rows_in(text)]
    return found


def samples_of_peers(
    peers: Mapping[str, Sequence[CanaryRow]], row: Mapping[str, object]
) -> tuple[dict[str, list[float]], tuple[str, ...]]:
    """Return samples of the peers by node, of the series of `row`, and the nodes that are slow.

    These are the ones whose newest run of a day was collapsed. What collapsed does not count as
    normal, unless it did on three nodes. Neither do second runs, which low ones asked for.
    """
    series = _series(row)
    same = {
        node: [
            each
            for each in reversed(rows)
            if _series(each) == series and number(each.get(VALUE, ""))
        ]
        for node, rows in peers.items()
    }
    slow = tuple(
        node for node, rows in same.items() if rows and _is_low(rows[0]) and _age(rows[0]) < _RECENT
    )
    has_shifted = sum(any(map(_is_low, rows)) for rows in same.values()) >= _MANY
    found: dict[str, list[float]] = defaultdict(list)
    counting = [
        (turn, node, float(each[VALUE]))
        for node, rows in same.items()
        for turn, each in enumerate(rows)
        if each.get("purpose") != REPEAT and (has_shifted or not _is_low(each))
    ]
    for _, node, rate in sorted(counting)[:MOST]:
        found[node].append(rate)
    return dict(found), slow


def _series(row: Mapping[str, object]) -> list[object]:
    return [canonical(row.get(name)) for name in (*SERIES_FIELDS, VARIABLE)]


def _is_low(row: CanaryRow) -> bool:
    return f"{row[VARIABLE]}=collapsed" in row.get("band_verdict", "").split(",")


def _age(row: CanaryRow) -> float:
    try:
        return time.time() - datetime.fromisoformat(row[TIME]).timestamp()
    except ValueError:
        return float("inf")
