"""The state of the site for a monitoring system, and pings for a dead man's switch.

Only the newest state counts, so nothing waits in the outbox.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Mapping, Sequence
from typing import Final

from iobands.notify.settings import Channel, SendError, secret
from iobands.notify.web import Headers, ask, call, refuse_clear

_SERVICE: Final = "iobands"
_FRESH_HOURS: Final = 26.0
_MOST: Final = 10_000


def report(monitor: Channel, status: int, output: str, performance: Sequence[str] = ()) -> None:
    """Send a monitor the exit status, the first line of the digest, and performance data.

    Raises:
        SendError: the monitor did not accept them.
    """
    options = monitor.options
    refuse_clear(options["url"], options)
    verify = options.get("ca", True)
    service = options.get("service", _SERVICE)
    if monitor.type == "icinga":
        url = f"{options['url'].rstrip('/')}/v1/actions/process-check-result"
        names = {"host": options["host"], "service": service}
        body = {
            "type": "Service",
            "filter": "host.name == wanted_host && service.name == wanted_service",
            "filter_vars": {f"wanted_{name}": value for name, value in names.items()},
            "exit_status": status,
            "plugin_output": output,
            "performance_data": [*performance],
            "check_source": socket.gethostname(),
            # Without a newer result Icinga calls the service UNKNOWN.
            "ttl": round(options.get("fresh_hours", _FRESH_HOURS) * 3600),
        }
        password = secret(options["password"]) if "password" in options else ""
        answer = ask(
            "POST",
            url,
            dict,
            json=body,
            auth=(options.get("user", ""), password),
            headers={"Accept": "application/json"},
            verify=verify,
        )
        if not answer.get("results"):
            raise SendError(
                f"the monitor has no service {service!r} on the host {options['host']!r}"
            )
    else:
        result = {
            "checkresult": {"type": "service"},
            "hostname": options["host"],
            "servicename": service,
            "state": str(status),
            "output": " | ".join(filter(None, (output.replace("|", "/"), " ".join(performance)))),
        }
        token = secret(options["token"]) if "token" in options else ""
        form = {"cmd": "submitcheck", "token": token}
        form["json"] = json.dumps({"checkresults": [result]})
        said = call("POST", options["url"], data=form, auth=Headers({}), verify=verify)
        if "error" in said.lower():
            raise SendError(f"NRDP: {said}")


def ping(where: str | Mapping[str, str], step: str, text: str = "") -> None:
    """Ping that a session is at `step`: `start`, `fail`, or empty for success.

    Raises:
        SendError: the server did not accept it.
    """
    url = secret(where).rstrip("/") + (f"/{step}" if step else "")
    call("POST", url, data=text[:_MOST].encode("utf-8", "replace"), auth=Headers({}))
