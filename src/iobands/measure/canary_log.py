"""The logs of canaries, `perflogs/<system>/canaries/<node>.log`, in the format of perflogs.

Only canaries read them, to compare a node with its peers: a node may add hundreds of samples a day.
A log keeps only the newest runs of its node.
"""

from __future__ import annotations

import csv
import fcntl
import os
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Final

from iobands import model

_MOST_BYTES: Final = 1 << 20
_KEPT_LINES: Final = 1200
#: How many samples of a series are used, the newest of all peers together.
MOST: Final = 400
_NODES: Final = 10  # the logs of this many peers are read in any case
_RECENT: Final = 24 * 3600
#: If samples collapsed on this many nodes, the new level counts as normal.
_MANY: Final = 3

CanaryRow = Mapping[str, str]


def log_of(perflogs: Path, system: str, node: str) -> Path:
    """Return the path of a node's log."""
    return perflogs / model.path_part(system) / "canaries" / f"{model.path_part(node)}.log"


@contextmanager
def held_log(path: Path, until: float) -> Iterator[int]:
    """Open and lock the log of this node, so that its canaries run one at a time.

    Raises SessionError if another canary of the node still holds it at the monotonic time `until`.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
    with model.naming(path):
        descriptor = os.open(path, flags, 0o644)
    try:
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > until:
                    raise model.SessionError("another canary is measuring on this node") from None
                time.sleep(0.2)
            except OSError:  # without locks, two canaries may measure at once
                break
        yield descriptor
    finally:
        os.close(descriptor)


def add_rows(descriptor: int, rows: Sequence[Mapping[str, object]]) -> None:
    """Append rows to the locked log; if it has become too long, keep only its newest lines."""
    size = os.fstat(descriptor).st_size
    text = os.pread(descriptor, size, 0).decode("utf-8", "replace")
    header, *lines = text.splitlines() or [""]
    new = [model.perflog_line(row) for row in rows]
    if header == model.PERFLOG_HEADER and size < _MOST_BYTES:
        new[:0] = [] if text.endswith("\n") else [""]
    else:  # too long, or with the columns of another version, which are dropped
        kept = lines[-_KEPT_LINES:] if header == model.PERFLOG_HEADER else []
        new[:0] = [model.PERFLOG_HEADER, *kept]
        os.ftruncate(descriptor, 0)
    os.write(descriptor, "".join(f"{line}\n" for line in new).encode())


def rows_of_peers(own: Path, series: int) -> dict[str, list[CanaryRow]]:
    """Return each peer's rows, oldest first; stops at enough samples for `series` series."""
    found: dict[str, list[CanaryRow]] = {}
    with suppress(OSError):
        paths = [Path(each) for each in os.scandir(own.parent) if each.name.endswith(".log")]
        for path in sorted(paths, key=lambda path: -path.stat().st_mtime):
            if len(found) >= _NODES and sum(map(len, found.values())) > 2 * MOST * series:
                break
            if path != own:
                with suppress(OSError, csv.Error):
                    content = model.read_small(path, 2 * _MOST_BYTES).replace(b"\0", b"")
                    text = content.decode("utf-8", "replace")
                    rows = csv.DictReader(text.splitlines(), delimiter="|", quoting=csv.QUOTE_NONE)
                    # None stands for the cells that an incomplete line lacks, or has too many
                    found[path.stem] = [e for e in rows if None not in (*e, *e.values())]
    return found


def samples_of_peers(
    peers: Mapping[str, Sequence[CanaryRow]], row: Mapping[str, object]
) -> tuple[dict[str, list[float]], tuple[str, ...]]:
    """Return the peers' rates by node, in the series of `row`, and the names of the slow peers.

    A peer is slow if its newest run collapsed within the last day. The rates leave out collapsed
    samples, unless three nodes have some, and repeats, which only low runs cause.
    """
    series = _series(row)
    same = {
        node: [
            each
            for each in reversed(rows)
            if _series(each) == series and model.number(each.get(model.VALUE, ""))
        ]
        for node, rows in peers.items()
    }
    slow = tuple(
        node for node, rows in same.items() if rows and _is_low(rows[0]) and _age(rows[0]) < _RECENT
    )
    has_shifted = sum(any(map(_is_low, rows)) for rows in same.values()) >= _MANY
    found: dict[str, list[float]] = defaultdict(list)
    counting = [
        (turn, node, float(each[model.VALUE]))
        for node, rows in same.items()
        for turn, each in enumerate(rows)
        if each.get("purpose") != model.REPEAT and (has_shifted or not _is_low(each))
    ]
    for _, node, rate in sorted(counting)[:MOST]:
        found[node].append(rate)
    return dict(found), slow


def _series(row: Mapping[str, object]) -> list[object]:
    return [model.canonical(row.get(name)) for name in (*model.SERIES_FIELDS, model.VARIABLE)]


def _is_low(row: CanaryRow) -> bool:
    return f"{row[model.VARIABLE]}=collapsed" in row.get("band_verdict", "").split(",")


def _age(row: CanaryRow) -> float:
    try:
        return time.time() - datetime.fromisoformat(row[model.TIME]).timestamp()
    except ValueError:
        return float("inf")
