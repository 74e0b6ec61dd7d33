"""Webhooks and what else goes over HTTP."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final
from urllib.parse import urlsplit

import requests

from iobands.notify.message import Message
from iobands.notify.settings import SendError, secret

_SECONDS: Final = 30
_SAID: Final = 200
_ESCAPED: Final = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


@dataclass(frozen=True)
class Headers(requests.auth.AuthBase):
    """Headers that no entry of ~/.netrc replaces."""

    headers: Mapping[str, str]

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        """Add the headers to a request."""
        request.headers.update(self.headers)
        return request


def call(method: str, url: str, **options: Any) -> requests.Response:  # noqa: ANN401
    """Call a server, and return its answer if it took the request.

    Raises:
        SendError: it did not; the text names the host alone, as an address may be a secret.
    """
    host = urlsplit(url).netloc.rpartition("@")[2]
    try:
        # A redirection would hand the token to another server.
        answer = requests.request(method, url, timeout=_SECONDS, allow_redirects=False, **options)
    except requests.RequestException as error:
        raise SendError(f"{host}: {type(error).__name__}") from None
    if not answer.ok or answer.is_redirect:
        said = " ".join(answer.text.split())[:_SAID].replace(url, "…")
        raise SendError(f"{host}: HTTP status {answer.status_code}: {said}")
    return answer


def send(message: Message, options: Mapping[str, Any]) -> None:
    """Send a message to a webhook.

    Raises:
        SendError: it was not taken.
    """
    headers = {"Idempotency-Key": message.id}
    if "token" in options:
        headers["Authorization"] = f"Bearer {secret(options['token'])}"
    body = payload(message, options.get("form", "json"))
    call("POST", secret(options["url"]), json=body, auth=Headers(headers))


def payload(message: Message, form: str) -> dict[str, Any]:
    """Return the body in the form of Slack, Mattermost or Teams, or all of the message."""
    if form == "json":
        return asdict(message)
    if form == "teams":
        blocks = [
            {"type": "TextBlock", "text": message.title, "weight": "Bolder", "wrap": True},
            {"type": "TextBlock", "text": message.text, "fontType": "Monospace", "wrap": True},
        ]
        card = {
            "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
            "type": "AdaptiveCard",
            "version": "1.4",
            "body": blocks,
        }
        kind = "application/vnd.microsoft.card.adaptive"
        return {"type": "message", "attachments": [{"contentType": kind, "content": card}]}
    said = (message.title, message.text)
    title, text = (each.translate(_ESCAPED).replace("```", "'''") for each in said)
    mark = "*" if form == "slack" else "**"
    return {"text": f"{mark}{title}{mark}\n```\n{text}```"}
