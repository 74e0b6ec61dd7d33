"""From the state of a site to messages, and from the outbox to people."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timezone

from iobands.notify import command, mail, tracker, web
from iobands.notify.changes import changes
from iobands.notify.message import Message, message_of
from iobands.notify.outbox import Entry, Outbox, State
from iobands.notify.settings import Channel, SendError, Settings
from iobands.site.site import Site


def news(site: Site, settings: Settings, state: State) -> State:
    """Return the causes now, and the messages about what has changed since `state`."""
    causes, events = changes(state.causes, site, settings.severities)
    pending = list(state.pending)
    for event in events:
        names = tuple(
            each.name for each in settings.channels if event.cause.severity in each.severities
        )
        if names:
            pending.append((message_of(event, site, settings.page), names))
    return State(tuple(causes), tuple(pending))


def test(settings: Settings, now: datetime) -> Iterator[tuple[str, str]]:
    """Send each channel a message that says nothing; yield its name, and why it failed or "".

    It is not kept: only news waits for a channel that is down.
    """
    text = "Messages of iobands arrive here. Nothing has happened.\n"
    ident, title = uuid.uuid4().hex, "test: messages arrive"
    message = Message(ident, ident, "test", "test", title, text, now.isoformat())
    for channel in settings.channels:
        try:
            send(channel, message)
            yield channel.name, ""
        except SendError as error:
            yield channel.name, str(error)


def deliver(outbox: Outbox, entries: Sequence[Entry], settings: Settings) -> Iterator[Entry]:
    """Send what was not sent yet, and yield each message as it is then.

    After a failure the other messages of the channel wait for the next time, in their order.
    """
    channels = {each.name: each for each in settings.channels}
    failed: set[str] = set()
    for entry in entries:
        if entry.sent or entry.channel in failed:
            continue
        tried = replace(entry, attempts=entry.attempts + 1, error="")
        outbox.write(tried)
        try:
            if entry.channel not in channels:
                raise SendError(
                    f"there is no channel {entry.channel} any more; remove {entry.path}"
                )
            send(channels[entry.channel], entry.message)
            tried = replace(tried, sent=datetime.now(timezone.utc).isoformat())
        except SendError as error:
            tried = replace(tried, error=str(error))
            failed.add(entry.channel)
        outbox.write(tried)
        yield tried


def send(channel: Channel, message: Message) -> None:
    """Send a message by a channel.

    Raises:
        SendError: it was not taken.
    """
    if channel.type == "mail":
        mail.send(message, channel.options)
    elif channel.type == "webhook":
        web.send(message, channel.options)
    elif channel.type == "command":
        command.send(message, channel.options)
    else:
        tracker.send(message, channel.options, channel.type)
