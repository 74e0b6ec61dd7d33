"""Any command, which gets the message as JSON on its standard input."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Final

from iobands.notify.message import Message
from iobands.notify.settings import SendError

_SECONDS: Final = 60


def send(message: Message, options: Mapping[str, Any]) -> None:
    """Run the command with a message.

    Raises:
        SendError: it could not be run, did not end in time, or failed.
    """
    program = options["command"][0]
    try:
        done = subprocess.run(
            options["command"],
            input=json.dumps(asdict(message)).encode(),
            capture_output=True,
            timeout=_SECONDS,
            check=False,
        )
    except OSError as error:
        raise SendError(f"{program}: {error.strerror}") from None
    if done.returncode:
        said = done.stderr.decode(errors="replace")
        raise SendError(f"{program} ended with status {done.returncode}: {said}")
