"""Issue trackers: one issue for a cause, a comment for each later event, closed when it is over."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

from iobands.notify.news import ENDED, Message
from iobands.notify.settings import SendError, secret
from iobands.notify.web import QUOTE, Headers, ask, call, refuse_clear

_MOST_PAGES: Final = 10
_PAGE: Final = 100
# After an @ it keeps `@all` from being a mention, as titles have no code.
_ZERO_WIDTH: Final = "\u200b"


@dataclass(frozen=True)
class Api:
    """The addresses and names of an API; `issues` is the address of a project's issues."""

    issues: str
    auth: Headers
    number: str
    text: str
    comments: str
    closing: tuple[str, dict[str, str]]
    labels: object


def send_issue(message: Message, options: Mapping[str, Any], kind: str) -> None:
    """Open the issue of a message's cause, comment on it or close it, each once.

    An issue and a comment carry the ids of cause and event, and are searched for before they are
    made.

    Raises:
        SendError: the tracker did not accept it.
    """
    refuse_clear(options.get("url", ""), options)
    api = (gitlab if kind == "gitlab" else github)(options)
    label = options.get("label", "iobands")
    issue = _found(api, f"{api.issues}", {"labels": label, "state": "all"}, message.cause)
    if issue is None:
        title = f"iobands: {message.title}".replace("@", f"@{_ZERO_WIDTH}")
        said = _text(message, message.cause)
        body: dict[str, object] = {"title": title, api.text: said, "labels": api.labels}
        issue = ask("POST", api.issues, dict, json=body, auth=api.auth)
    number = issue.get(api.number)
    if not isinstance(number, int):
        raise SendError(f"the tracker returned an issue without {api.number!r}")
    place = f"{api.issues}/{number}"
    opened = _mark(message.id) in str(issue.get(api.text))
    if not opened and _found(api, f"{place}/{api.comments}", {}, message.id) is None:
        body = {"body": _text(message, message.id)}
        call("POST", f"{place}/{api.comments}", json=body, auth=api.auth)
    if message.kind == ENDED:
        method, change = api.closing
        call(method, place, json=change, auth=api.auth)


def gitlab(options: Mapping[str, Any]) -> Api:
    """Return the addresses and names of GitLab's API v4."""
    url = options.get("url", "https://gitlab.com").rstrip("/")
    project = quote(options["project"], safe="")
    return Api(
        issues=f"{url}/api/v4/projects/{project}/issues",
        auth=Headers({"PRIVATE-TOKEN": secret(options["token"])}),
        number="iid",
        text="description",
        comments="notes",
        closing=("PUT", {"state_event": "close"}),
        labels=options.get("label", "iobands"),
    )


def github(options: Mapping[str, Any]) -> Api:
    """Return the addresses and names of GitHub's REST API."""
    url = options.get("url", "https://api.github.com").rstrip("/")
    headers = {
        "Authorization": f"Bearer {secret(options['token'])}",
        "Accept": "application/vnd.github+json",
        "X-GitHub-Api-Version": "2022-11-28",
    }
    return Api(
        issues=f"{url}/repos/{options['project']}/issues",
        auth=Headers(headers),
        number="number",
        text="body",
        comments="comments",
        closing=("PATCH", {"state": "closed"}),
        labels=[options.get("label", "iobands")],
    )


def _found(api: Api, url: str, query: dict[str, str], ident: str) -> dict[str, Any] | None:
    """Return the issue or the comment that carries `ident`, or None."""
    for page in range(1, _MOST_PAGES + 1):
        asked = {**query, "per_page": str(_PAGE), "page": str(page)}
        entries = ask("GET", url, list, params=asked, auth=api.auth)
        if not all(isinstance(each, dict) for each in entries):
            raise SendError("the tracker's list of issues does not have the form of its API")
        for entry in entries:
            if _mark(ident) in f"{entry.get(api.text)} {entry.get('body')}":
                return dict(entry)
        if len(entries) < _PAGE:
            break
    return None


def _text(message: Message, ident: str) -> str:
    marks = "".join(_mark(each) for each in dict.fromkeys((ident, message.id)))
    text = message.text.replace("```", QUOTE * 3)
    return f"```\n{text}```\n{marks}"


def _mark(ident: str) -> str:
    return f"<!-- iobands {ident} -->"
