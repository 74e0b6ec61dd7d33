"""Webhooks and other requests over HTTP."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

import requests
import urllib3

from iobands.notify.news import Message
from iobands.notify.settings import SendError, secret

_SECONDS: Final = 30
_MOST_BYTES: Final = 32 << 20  # of an answer: a hundred issues have less
QUOTE: Final = "'"
_ESCAPED: Final = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


_Json = TypeVar("_Json", list[Any], dict[str, Any])


@dataclass(frozen=True)
class Headers(requests.auth.AuthBase):
    """Headers that entries of ~/.netrc do not replace."""

    headers: Mapping[str, str]

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        """Add the headers to a request."""
        request.headers.update(self.headers)
        return request


def refuse_clear(url: str, options: Mapping[str, Any]) -> None:
    """Refuse to send the secrets of a channel or monitor unencrypted.

    Raises:
        SendError: the address has no TLS, and the settings do not say `security: none`.
    """
    parts = urlsplit(url)
    is_here = parts.hostname == "localhost" or str(parts.hostname).startswith("127.")
    if parts.scheme == "http" and not is_here and options.get("security") != "none":
        for name in {"token", "password"} & options.keys():
            raise SendError(
                f"the {name} would be sent unencrypted: use https, or set security to none if the "
                "network is trusted"
            )


def call(method: str, url: str, **options: Any) -> str:  # noqa: ANN401
    """Call a server, and return its answer if it accepted the request.

    Raises:
        SendError: it did not; the text names only the host, as an address may be a secret.
    """
    host = urlsplit(url).netloc.rpartition("@")[2]
    # A redirection would hand the token to another server.
    options |= {"allow_redirects": False, "stream": True}
    try:
        with requests.request(method, url, timeout=_SECONDS, **options) as answer:
            content = answer.raw.read(_MOST_BYTES, decode_content=True)
    except (requests.RequestException, urllib3.exceptions.HTTPError) as error:
        raise SendError(f"{host}: {type(error).__name__}") from None
    said = content.decode(errors="replace")
    if not answer.ok or answer.is_redirect:
        raise SendError(f"{host}: HTTP status {answer.status_code}: {said}")
    return said


def ask(method: str, url: str, kind: type[_Json], **options: Any) -> _Json:  # noqa: ANN401
    """Call a server, and return its JSON answer, which must be of a kind: a list or a dict.

    Raises:
        SendError: it did not accept the request, or answered something else, such as the page of a
            proxy.
    """
    said = call(method, url, **options)
    try:
        found = json.loads(said)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, kind):
        host = urlsplit(url).netloc.rpartition("@")[2]
        raise SendError(f"{host}: the answer does not have the form of its API: {said}")
    return found


def post_message(message: Message, options: Mapping[str, Any]) -> None:
    """Send a message to a webhook.

    Raises:
        SendError: the server did not accept it.
    """
    url = secret(options["url"])
    refuse_clear(url, options)
    headers = {"Idempotency-Key": message.id}
    if "token" in options:
        headers["Authorization"] = f"Bearer {secret(options['token'])}"
    body = payload(message, options.get("form", "json"))
    call("POST", url, json=body, auth=Headers(headers))


def payload(message: Message, form: str) -> dict[str, Any]:
    """Return the body in the form of Slack, Mattermost or Teams, or the whole message."""
    if form == "json":
        return asdict(message)
    if form == "teams":
        # "](" would make a link of a name
        title, text = (each.replace("](", "] (") for each in (message.title, message.text))
        blocks = [
            {"type": "TextBlock", "text": title, "weight": "Bolder", "wrap": True},
            {"type": "TextBlock", "text": text, "fontType": "Monospace", "wrap": True},
        ]
        card = {
            "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
            "type": "AdaptiveCard",
            "version": "1.4",
            "body": blocks,
        }
        kind = "application/vnd.microsoft.card.adaptive"
        return {"type": "message", "attachments": [{"contentType": kind, "content": card}]}
    # as code, in which nothing is a mention or a link
    title, text = (each.translate(_ESCAPED) for each in (message.title, message.text))
    return {"text": f"`{title.replace('`', QUOTE)}`\n```\n{text.replace('```', QUOTE * 3)}```"}
