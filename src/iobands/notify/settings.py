"""What `config/notify.yaml` says: whom to tell, how, and where the secrets are."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from iobands.alerts.alert import CRITICAL, UNKNOWN, Severity
from iobands.model.yaml_document import load_schema, parse_yaml, read_content

_SCHEMA_FILE: Final = Path(__file__).with_name("notify.schema.yaml")
#: What messages are about unless the file says otherwise: alerts with exit status 2 or 3.
NOTIFIED: Final = frozenset(
    each.value for each in Severity if each.exit_status in (CRITICAL, UNKNOWN)
)


class SendError(Exception):
    """A message could not be sent; the text says why, without any secret."""


@dataclass(frozen=True)
class Channel:
    """A way to tell people; `options` are those of its type."""

    name: str
    type: str
    options: Mapping[str, Any]
    severities: frozenset[str] = NOTIFIED


@dataclass(frozen=True)
class Settings:
    """Whom to tell. `monitors` get the state of the site each time, `ping` each session's."""

    channels: tuple[Channel, ...] = ()
    monitors: tuple[Channel, ...] = ()
    page: str = ""
    ping: str | Mapping[str, str] | None = None
    severities: frozenset[str] = NOTIFIED


def read_settings(path: Path) -> Settings:
    """Read the file at `path`.

    Raises:
        FileError: it cannot be read, or says something that it may not.
    """
    document = parse_yaml(read_content(path), path)
    document.check(load_schema(_SCHEMA_FILE))
    said = document.value
    every = frozenset(said.get("severities", NOTIFIED))
    channels = []
    for name, options in said.get("channels", {}).items():
        own = frozenset(options.get("severities", every))
        channels.append(Channel(name, options["type"], options, own))
        every |= own
    monitors = tuple(
        Channel(name, options["type"], options)
        for name, options in said.get("monitors", {}).items()
    )
    return Settings(tuple(channels), monitors, said.get("page", ""), said.get("ping"), every)


def secret(where: str | Mapping[str, str]) -> str:
    """Return a secret from the environment or a file that only its owner can read.

    Raises:
        SendError: it is not there, or others could read it.
    """
    if isinstance(where, str):
        return where
    if "env" in where:
        found = os.environ.get(where["env"], "").strip()
        if not found:
            raise SendError(f"the variable {where['env']} is not set")
        return found
    path = Path(where["file"])
    try:
        with path.open(encoding="utf-8") as stream:
            mode = stat.S_IMODE(os.fstat(stream.fileno()).st_mode)
            if mode not in (0o600, 0o400):
                raise SendError(f"{path} has mode {mode:04o}; chmod 600 it")
            found = stream.read().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise SendError(f"{path}: {getattr(error, 'strerror', None) or 'not UTF-8'}") from None
    if not found:
        raise SendError(f"{path} is empty")
    return found
