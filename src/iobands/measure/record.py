"""`perflogs/last-session.json`: when the newest `iobands run` began and how it ended.

It is written when a session begins and again when it ends. A record without an end is of a session
that was killed, or lost with its machine.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, fields, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Final

from iobands.measure.lock import Holder, read_holder
from iobands.model import (
    KILLED,
    LastSession,
    Rejected,
    SessionError,
    not_read,
    parse_time,
    read_small,
    replace_file,
)

RECORD_NAME: Final = "last-session.json"
_SCHEMA: Final = 1
_LARGEST: Final = 1e15


def begin_record(perflogs: Path, holder: Holder, tag: str, system: str | None) -> LastSession:
    """Record that a session has begun.

    Raises:
        OSError: the record cannot be written.
    """
    began = parse_time(holder.began)
    record = LastSession(holder.session, tag, system, holder.host, began)
    _write(perflogs, record)
    return record


def end_record(
    perflogs: Path,
    record: LastSession,
    how: str,
    counts: Mapping[str, int],
    reason: str | None,
    seconds: Mapping[str, float] | None = None,
) -> None:
    """Record how a session ended.

    Raises:
        OSError: the record cannot be written.
    """
    now = datetime.now(timezone.utc).replace(microsecond=0)
    ended = replace(record, ended=now, how=how, counts=counts, reason=reason)
    _write(perflogs, replace(ended, seconds=seconds or {}))


def restore_record(perflogs: Path, former: LastSession | None) -> None:
    """Put the former record back: no session took place.

    Raises:
        OSError: the record cannot be written.
    """
    if former:
        _write(perflogs, former)
    else:
        (perflogs / RECORD_NAME).unlink()


def read_last_session(perflogs: Path, rejected: list[Rejected] | None = None) -> LastSession | None:
    """Return the record, None if it does not exist or is damaged; `rejected` gets the reason.

    A session without an end whose processes have ended, as far as is known here, was `killed`.
    """
    path = perflogs / RECORD_NAME
    failed = [] if rejected is None else rejected
    if not path.exists():
        return None
    try:
        record = _record(json.loads(read_small(path)))
    except OSError as error:
        failed.append(not_read(path, error))
        return None
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        failed.append(
            Rejected(path, 0, "not the record of a session; the next session replaces it")
        )
        return None
    if record.ended is None and not _runs(perflogs, record):
        return replace(record, how=KILLED, reason=f"by a signal, or {record.host} restarted")
    return record


def _record(said: dict[str, Any]) -> LastSession:
    """Return the record with these fields; raise any error if they are not valid."""
    if said["schema"] < _SCHEMA:
        raise ValueError("of another version")
    said = {each.name: said[each.name] for each in fields(LastSession) if each.name in said}
    ended = said.pop("ended")
    record = LastSession(
        **{**said, "began": parse_time(said["began"])}, ended=parse_time(ended) if ended else None
    )
    texts = (record.session, record.tag, record.host, record.how)
    may_lack = (record.system, record.reason)
    numbers = [*record.counts.values(), *record.seconds.values()]
    if not (
        all(isinstance(text, str) for text in texts)
        and all(isinstance(text, str | None) for text in may_lack)
        and all(type(number) in (int, float) and abs(number) < _LARGEST for number in numbers)
    ):
        raise ValueError("of another form")
    return record


def _runs(perflogs: Path, record: LastSession) -> bool:
    try:
        holder = read_holder(perflogs)
    except SessionError:
        return False
    return holder is not None and holder.session == record.session and not holder.is_stale


def _write(perflogs: Path, record: LastSession) -> None:
    times = {
        "began": record.began.isoformat(),
        "ended": record.ended.isoformat() if record.ended else None,
    }
    text = json.dumps({"schema": _SCHEMA, **asdict(record), **times}, indent=2)
    replace_file(perflogs / RECORD_NAME, f"{text}\n".encode("utf-8", "replace"))
