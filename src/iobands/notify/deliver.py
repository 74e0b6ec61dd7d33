"""Makes messages from the state of a site, sends the outbox, and reports to monitors.

Monitors get only the newest state, so nothing for them waits in the outbox.
"""

from __future__ import annotations

import json
import socket
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta, timezone
from functools import partial
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec
from msgspec.structs import replace

from iobands.model import in_time
from iobands.notify import channels
from iobands.notify.changes import changes, message_of
from iobands.notify.channels import Headers, refuse_clear, send_mail
from iobands.notify.outbox import (
    Channel,
    Delivery,
    Message,
    Outbox,
    OutboxState,
    PartlySentError,
    SendError,
    Settings,
    scrubbed,
    secret,
)
from iobands.snapshot import Snapshot, printable

# The limit for a whole exchange, as a server may answer one byte at a time.
_SECONDS: Final = 300
_MOST: Final = 500  # characters of a server's answer
# A channel that fails for this many topics is down; one message may be refused for its content.
_DOWN: Final = 3
# No judgement takes longer; a larger difference means that a clock was set back.
_OVERTAKEN: Final = timedelta(hours=1)


def news(site: Snapshot, settings: Settings, state: OutboxState) -> OutboxState:
    """Return the new state of the outbox: open topics, and messages about changes since `state`.

    If `state` is from a later judgement, by a call that overtook this one, it is returned as it is.
    """
    if state.judged and timedelta(0) < state.judged - site.now < _OVERTAKEN:
        return state
    topics, events = changes(state.causes, site, settings.severities)
    pending = list(state.pending)
    for event in events:
        heard = {event.topic.severity, *event.topic.severities}
        if names := tuple(each.name for each in settings.channels if heard & each.severities):
            pending.append((message_of(event, site, settings.page), names))
    return OutboxState(tuple(topics), tuple(pending), judged=site.now)


def test(settings: Settings, now: datetime) -> Iterator[tuple[str, str]]:
    """Send a test message to each channel; yield its name, and why it failed or "".

    The message is not kept in the outbox.
    """
    text = "This is a test. Messages from iobands arrive here.\n"
    cause, title = uuid.uuid4().hex, "test: messages arrive"
    message = Message(f"{cause}-0", cause, "test", "test", title, text, now.isoformat())
    for channel in settings.channels:
        yield channel.name, attempt(partial(send, channel, message))[0]


def deliver(outbox: Outbox, entries: Sequence[Delivery], settings: Settings) -> Iterator[Delivery]:
    """Send what was not sent yet, and yield each message in its new state.

    After a failure, later messages of the topic wait for the next call, in order. After several
    failures, all messages of the channel wait.
    """
    known = {each.name: each for each in settings.channels}
    failed: defaultdict[str, set[str]] = defaultdict(set)
    for entry in entries:
        topics = failed[entry.channel]
        most = _DOWN if entry.channel in known else 1
        if entry.sent or entry.message.cause in topics or len(topics) >= most:
            continue
        tried = replace(entry, attempts=entry.attempts + 1, error="")
        outbox.write(tried)
        is_sent = False
        if channel := known.get(entry.channel):
            error, is_sent = attempt(partial(send, channel, entry.message))
        else:
            error = f"config/notify.yaml no longer has the channel {entry.channel}"
            waiting = outbox.directory / f"*.{entry.channel}.json"
            error = f"{error}; put it back, or remove {waiting}"
        if not is_sent:
            topics.add(entry.message.cause)
        sent = datetime.now(timezone.utc) if is_sent else None
        tried = replace(tried, error=error, sent=sent)
        outbox.write(tried)
        yield tried


def attempt(act: Callable[[], None]) -> tuple[str, bool]:
    """Call `act`, which talks to a server; return why it failed, or "", and if it reached anybody.

    An exception or a timeout counts as an error of this server alone. The text has no secrets and
    no control characters.
    """
    said, is_sent = "", True
    try:
        in_time(_SECONDS, act, SendError(f"did not end within {_SECONDS} s"))
    except SendError as error:
        said, is_sent = str(error), isinstance(error, PartlySentError)
    except Exception as error:
        said, is_sent = f"{type(error).__name__}: {error}", False
    return printable(" ".join(scrubbed(said).split()))[:_MOST], is_sent


def send(channel: Channel, message: Message) -> None:
    """Send a message by a channel, or raise SendError."""
    if channel.type == "mail":
        send_mail(message, channel.options)
    elif channel.type == "webhook":
        channels.post_message(message, channel.options)
    elif channel.type == "command":
        channels.hand_to(channel.options["command"], msgspec.json.encode(message))
    else:
        channels.send_issue(message, channel.options, channel.type)


_FRESH_HOURS: Final = 26.0
_MOST_OF_PING: Final = 10_000  # characters
# How Icinga 2.13 answers, with status 500, if it knows no such service.
_NO_RESULTS: Final = '{"results":[]}'


def report(monitor: Channel, status: int, output: str, performance: Sequence[str] = ()) -> None:
    """Send a monitor the exit status, the first line of the digest, and performance data.

    Raises SendError if the monitor does not accept them.
    """
    options = monitor.options
    refuse_clear(options["url"], options)
    host, service = options["host"], options.get("service", "iobands")
    verify = options.get("ca", True)
    name = "password" if monitor.type == "icinga" else "token"
    own = secret(options[name]) if name in options else ""
    if monitor.type == "icinga":
        body = {
            "type": "Service",
            "filter": "host.name == wanted_host && service.name == wanted_service",
            "filter_vars": {"wanted_host": host, "wanted_service": service},
            "exit_status": status,
            "plugin_output": output,
            "performance_data": [*performance],
            "check_source": socket.gethostname(),
            # Without a newer result Icinga calls the service UNKNOWN.
            "ttl": round(options.get("fresh_hours", _FRESH_HOURS) * 3600),
        }
        url = f"{options['url'].rstrip('/')}/v1/actions/process-check-result"
        how = {"auth": (options.get("user", ""), own), "verify": verify}
        how["headers"] = {"Accept": "application/json"}
        try:
            found = channels.ask("POST", url, dict[str, Any], json=body, **how).get("results")
        except SendError as error:
            if not str(error).endswith(_NO_RESULTS):
                raise
            found = []
        if not found:
            raise SendError(f"the monitor has no service {service!r} on the host {host!r}")
        return
    result = {
        "checkresult": {"type": "service"},
        "hostname": host,
        "servicename": service,
        "state": str(status),
        "output": " | ".join(filter(None, (output.replace("|", "/"), " ".join(performance)))),
    }
    # NRDP answers a wrong token with HTTP status 200, too; its own status is a text before 2.0
    form = {"cmd": "submitcheck", "token": own, "JSONDATA": json.dumps({"checkresults": [result]})}
    how = {"data": form, "auth": Headers({}), "verify": verify}
    said = channels.ask("POST", options["url"], dict[str, dict[str, Any]], **how).get("result", {})
    if str(said.get("status")) != "0":
        raise SendError(f"NRDP: {said.get('message')}")


def ping(where: str | Mapping[str, str], step: str, text: str = "") -> None:
    """Ping that a session is at `step`: `start`, `fail`, empty for success; or raise SendError."""
    parts = urlsplit(secret(where))  # of Healthchecks, `?create=1` may be its end
    url = parts._replace(path=parts.path.rstrip("/") + (step and f"/{step}")).geturl()
    body = text[:_MOST_OF_PING].encode("utf-8", "replace")
    channels.call("POST", url, data=body, auth=Headers({}))
