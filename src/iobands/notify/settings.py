"""The settings in `config/notify.yaml`: channels, monitors, and where the secrets are."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlsplit

from iobands.model import OK, load_schema, parse_yaml, read_content, read_small
from iobands.snapshot import LASTING, Severity

_SCHEMA_FILE: Final = Path(__file__).with_name("notify.schema.yaml")
#: The default subjects of messages: alerts with another exit status than 0.
NOTIFIED: Final = frozenset(each.value for each in Severity if each.exit_status != OK)
_MOST_BYTES: Final = 4096  # of a secret
# The forms in which libraries may print a secret.
_secrets: set[str] = set()


class SendError(Exception):
    """A message could not be sent; the text says why."""


@dataclass(frozen=True)
class Channel:
    """A way to send messages; `options` are the ones of its type."""

    name: str
    type: str
    options: Mapping[str, Any]
    severities: frozenset[str] = NOTIFIED


@dataclass(frozen=True)
class Settings:
    """The receivers. `monitors` get the state of the site each time, `ping` each session's."""

    channels: tuple[Channel, ...] = ()
    monitors: tuple[Channel, ...] = ()
    page: str = ""
    ping: str | Mapping[str, str] | None = None
    severities: frozenset[str] = NOTIFIED


def read_settings(path: Path) -> Settings:
    """Read the file at `path`.

    Raises:
        FileError: the file cannot be read, or breaks the schema.
    """
    document = parse_yaml(read_content(path), path)
    document.check(load_schema(_SCHEMA_FILE))
    said = document.value
    every = _severities(said.get("severities", NOTIFIED))
    channels = []
    for name, options in said.get("channels", {}).items():
        own = _severities(options.get("severities", every))
        channels.append(Channel(name, options["type"], options, own))
        every |= own
    monitors = tuple(
        Channel(name, options["type"], options)
        for name, options in said.get("monitors", {}).items()
    )
    return Settings(tuple(channels), monitors, said.get("page", ""), said.get("ping"), every)


def _severities(names: Iterable[str]) -> frozenset[str]:
    """Return severities; `degraded` stands for every lasting change for the worse."""
    found = frozenset(names)
    return found | {each.value for each in LASTING} if Severity.DEGRADED.value in found else found


def secret(where: str | Mapping[str, str]) -> str:
    """Return a secret from the environment or a file that only its owner can read.

    `scrubbed` removes it from texts from now on.

    Raises:
        SendError: it is missing, others could read it, or it is not one line of ASCII.
    """
    if isinstance(where, str):
        return _noted(where)
    if "env" in where:
        name = f"the variable {where['env']}"
        found = os.environ.get(where["env"], "").strip()
    else:
        name = where["file"]
        found = _content(Path(name)).decode(errors="replace").strip()
    if not found:
        raise SendError(f"{name} is empty or not set")
    if not (found.isascii() and found.isprintable()):
        raise SendError(f"{name} must hold only the secret: one line, ASCII, no control character")
    return _noted(found)


def scrubbed(text: str) -> str:
    """Return `text` without the secrets that were used."""
    for each in sorted(_secrets, key=len, reverse=True):
        text = text.replace(each, "…")
    return text


def _noted(found: str) -> str:
    forms = {found, repr(found)[1:-1], quote(found)}
    _secrets.update(forms)
    if "://" in found:  # an address: libraries print its parts
        parts = urlsplit(found)
        _secrets.update(
            {parts.path, f"{parts.path}?{parts.query}", parts.password or ""} - {"", "/"}
        )
    return found


def _content(path: Path) -> bytes:
    """Return the content of a secret's file, without waiting for a pipe or a device."""
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
        content = read_small(path, _MOST_BYTES)
    except OSError as error:
        raise SendError(f"{path}: {error.strerror or error}") from None
    if mode not in (0o600, 0o400):
        raise SendError(
            f"{path} has mode {mode:04o}, so others could read it; run chmod 600 {path}"
        )
    return content
