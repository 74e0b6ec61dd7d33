"""The ways to send a message: webhooks, mail, any command, and issue trackers.

A tracker gets one issue for a topic and a comment for each later event; the issue is closed when
the topic is over.
"""

from __future__ import annotations

import json
import smtplib
import ssl
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from email.message import EmailMessage
from email.policy import EmailPolicy
from email.utils import format_datetime
from tempfile import TemporaryFile
from typing import Any, Final, TypeVar
from urllib.parse import quote, urlsplit

import msgspec
import requests
import urllib3
from msgspec.structs import asdict

from iobands.model import naming, printable
from iobands.notify import outbox
from iobands.notify.outbox import ENDED, Message, PartlySentError, SendError, secret

_SECONDS: Final = 30
_MAIL_SECONDS: Final = 60
_FINAL: Final = 500  # and above: codes of a mail server that will not change its mind
_ACCEPTED: Final = range(200, 300)
_MOST_BYTES: Final = 32 << 20  # of an answer: a hundred issues have less
_MOST_ERRORS: Final = 4096  # bytes of what a command says
_QUOTE: Final = "'"
_ESCAPED: Final = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
_TRUSTED: Final = "to none if the network is trusted"
_Json = TypeVar("_Json", list[dict[str, Any]], dict[str, Any])


@dataclass(frozen=True)
class Headers(requests.auth.AuthBase):
    """Headers that entries of ~/.netrc do not replace."""

    headers: Mapping[str, str]

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        """Add the headers to a request."""
        request.headers.update(self.headers)
        return request


def refuse_clear(url: str, options: Mapping[str, Any]) -> None:
    """Raise SendError if secrets would go unencrypted, and the settings lack `security: none`."""
    parts = urlsplit(url)
    is_here = parts.hostname == "localhost" or str(parts.hostname).startswith("127.")
    if parts.scheme == "http" and not is_here and options.get("security") != "none":
        for name in {"token", "password"} & options.keys():
            raise SendError(
                f"the {name} would be sent unencrypted: use https, or set security {_TRUSTED}"
            )


def call(method: str, url: str, **options: Any) -> str:  # noqa: ANN401
    """Call a server, and return its answer if it accepted the request, or raise SendError.

    The error names only the host, as an address may be a secret.
    """
    # A redirection would hand the token to another server.
    options |= {"allow_redirects": False, "stream": True}
    if "json" in options:  # `requests` would write a character such as ü in six bytes
        text = json.dumps(options.pop("json"), ensure_ascii=False)
        options["data"] = text.encode("utf-8", "replace")
        options["headers"] = {"Content-Type": "application/json", **options.get("headers", {})}
    content = b""
    try:
        with (
            requests.request(method, url, timeout=_SECONDS, **options) as answer,
            suppress(urllib3.exceptions.HTTPError),  # its status is known
        ):
            content = answer.raw.read(_MOST_BYTES, decode_content=True)
    except (requests.RequestException, urllib3.exceptions.HTTPError) as error:
        raise SendError(f"{_host(url)}: {_why(error)}") from None
    said = content.decode(errors="replace")
    if answer.status_code not in _ACCEPTED:
        raise SendError(f"{_host(url)}: HTTP status {answer.status_code}: {said}")
    return said


def _why(error: BaseException) -> str:
    """Return why no answer came, in the words of the system; the others contain the address."""
    inner = error
    while cause := inner.__cause__ or inner.__context__:
        inner = cause
    said = getattr(inner, "verify_message", None) or getattr(inner, "strerror", None)
    return ": ".join(filter(None, [type(error).__name__, said]))


def ask(method: str, url: str, kind: type[_Json], **options: Any) -> _Json:  # noqa: ANN401
    """Call a server, and return its JSON answer, which must be of a kind: a list or a dict.

    Raises SendError for anything else, such as the page of a proxy.
    """
    said = call(method, url, **options)
    try:
        return msgspec.json.decode(said, type=kind)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        problem = "the answer does not have the form of its API"
        raise SendError(f"{_host(url)}: {problem}: {said}") from None


def _host(url: str) -> str:
    return urlsplit(url).netloc.rpartition("@")[2]


def post_message(message: Message, options: Mapping[str, Any]) -> None:
    """Send a message to a webhook, or raise SendError."""
    url = secret(options["url"])
    refuse_clear(url, options)
    headers = {"Idempotency-Key": message.id}
    if "token" in options:
        headers["Authorization"] = f"Bearer {secret(options['token'])}"
    call("POST", url, json=_body(message, options.get("form", "json")), auth=Headers(headers))


def _body(message: Message, form: str) -> dict[str, Any]:
    """Return the body in the form of Slack, Mattermost or Teams, or the whole message."""
    if form == "json":
        return asdict(message)
    if form == "teams":
        # "](" would make a link of a name
        title, text = (each.replace("](", "] (") for each in (message.title, message.text))
        # in Markdown a single line break is a space, and four spaces begin code
        text = text.replace("  ", "\u00a0 ").replace("\n", "\n\n")
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
    title, text = message.title.replace("`", _QUOTE), message.text.replace("```", _QUOTE * 3)
    if form == "slack":  # which alone decodes code
        title, text = title.translate(_ESCAPED), text.translate(_ESCAPED)
    return {"text": f"`{title}`\n```\n{text}```"}


def send_mail(message: Message, options: Mapping[str, Any]) -> None:
    """Send a message by mail, or raise SendError."""
    mail = as_mail(message, options)
    try:
        if "sendmail" in options:
            # A mail that cannot be delivered returns to `from`, as it does from a server.
            command = [options["sendmail"], "-t", "-i", "-f", options["from"]]
            # An address of other characters than ASCII is valid only as it is.
            is_ascii = f"{mail['From']}{mail['To']}".isascii()
            hand_to(command, mail.as_bytes(policy=EmailPolicy(utf8=not is_ascii)))
        else:
            _by_server(mail, options)
    except smtplib.SMTPResponseException as error:
        said = error.smtp_error
        text = said.decode(errors="replace") if isinstance(said, bytes) else str(said)
        raise SendError(f"{error.smtp_code} {text}") from None


def as_mail(message: Message, options: Mapping[str, Any]) -> EmailMessage:
    """Return the mail; if sent twice, it has the same Message-ID, and a topic is a thread."""
    domain = options["from"].rpartition("@")[2]
    mail = EmailMessage()
    mail["From"] = options["from"]
    mail["To"] = ", ".join(options["to"])
    subject = f"{' '.join(filter(None, ('iobands', message.system)))}: {message.title}"
    mail["Subject"] = printable(subject)
    mail["Date"] = format_datetime(datetime.fromisoformat(message.when))
    mail["Message-ID"] = f"<{message.id}@{domain}>"
    first = f"<{message.cause}-0@{domain}>"
    if mail["Message-ID"] != first:
        mail["In-Reply-To"] = mail["References"] = first
    mail["Auto-Submitted"] = "auto-generated"
    names = ("schema", "kind", "severity", "system", "alert", "subject", "found", "since", "page")
    for name in names:  # for programs, as contract 9 defines them
        if (value := getattr(message, name)) not in ("", None):
            mail[f"X-Iobands-{name.capitalize()}"] = printable(str(value))
    mail.set_content(message.text)
    return mail


def hand_to(command: Sequence[str], content: bytes) -> None:
    """Run a command with `content` on its standard input, or raise SendError."""
    program = command[0]
    try:
        with TemporaryFile() as errors:  # a pipe would wait for processes that it leaves running
            done = subprocess.run(
                command,
                input=content,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                timeout=_MAIL_SECONDS,
                check=False,
            )
            errors.seek(0)
            said = errors.read(_MOST_ERRORS).decode(errors="replace").strip()
    except OSError as error:
        raise SendError(f"{program}: {error.strerror}") from None
    if done.returncode:
        raise SendError(f"{program} ended with status {done.returncode}{said and f': {said}'}")


def _by_server(mail: EmailMessage, options: Mapping[str, Any]) -> None:
    security = options.get("security", "none")
    if "password" in options and "security" not in options:
        remedy = f"set security to starttls or tls, or {_TRUSTED}"
        raise SendError(f"the password would be sent unencrypted: {remedy}")
    server, port = options.get("server", "localhost"), options.get("port", outbox.PORTS[security])
    with naming(options.get("ca", "")):
        context = ssl.create_default_context(cafile=options.get("ca"))
    link: smtplib.SMTP
    try:
        if security == "tls":
            link = smtplib.SMTP_SSL(server, port, timeout=_MAIL_SECONDS, context=context)
        else:
            link = smtplib.SMTP(server, port, timeout=_MAIL_SECONDS)
        try:
            if security == "starttls":
                link.starttls(context=context)
            if "password" in options:
                link.login(options.get("user", ""), secret(options["password"]))
            try:
                refused = link.send_message(mail)
                kind: type[SendError] = PartlySentError
            except smtplib.SMTPRecipientsRefused as error:  # all of them
                refused, kind = error.recipients, SendError
        finally:
            # the mail was accepted or refused before, whatever the server answers to QUIT
            with suppress(smtplib.SMTPException):
                link.quit()
    except smtplib.SMTPResponseException:
        raise
    except OSError as error:
        raise SendError(f"{server}:{port}: {error.strerror or error}") from None
    if refused:
        answers = (
            f"{name} ({code} {said.decode(errors='replace')})"
            for name, (code, said) in sorted(refused.items())
        )
        is_final = any(code >= _FINAL for code, _ in refused.values())
        remedy = "correct `to`" if is_final else "a server that queues mail would try again"
        raise kind(f"the server refused {', '.join(answers)}; {remedy}")


_MOST_PAGES: Final = 10
_PAGE: Final = 100
# After an @ it keeps `@all` from being a mention, as titles have no code.
_ZERO_WIDTH: Final = "\u200b"


def send_issue(message: Message, options: Mapping[str, Any], kind: str) -> None:
    """Open the issue of a message's topic, comment on it or close it, each once.

    An issue and a comment contain the ids of topic and event, so that an existing one is found
    before it is made again. Raises SendError if the tracker does not accept it.
    """
    refuse_clear(options.get("url", ""), options)
    project, label = options["project"], options.get("label", "iobands")
    token, labels = secret(options["token"]), [label]
    if kind == "gitlab":  # version 4
        path = f"api/v4/projects/{quote(project, safe='')}/issues"
        headers, labels = {"PRIVATE-TOKEN": token}, label
        number_of, text_of, comments_of = "iid", "description", "notes"
        method, closing = "PUT", {"state_event": "close"}
    else:
        path = f"repos/{project}/issues"
        headers = {"Authorization": f"Bearer {token}", "Accept": "application/vnd.github+json"}
        headers["X-GitHub-Api-Version"] = "2022-11-28"
        number_of, text_of, comments_of = "number", "body", "comments"
        method, closing = "PATCH", {"state": "closed"}
    address = options.get("url", outbox.TRACKERS[kind]).rstrip("/")
    issues, auth = f"{address}/{path}", Headers(headers)

    def search(url: str, query: Mapping[str, str], ident: str) -> dict[str, Any] | None:
        """Return the issue or the comment that carries `ident`, or None."""
        for page in range(1, _MOST_PAGES + 1):
            asked = {**query, "per_page": str(_PAGE), "page": str(page)}
            entries = ask("GET", url, list[dict[str, Any]], params=asked, auth=auth)
            for entry in entries:
                if _mark(ident) in f"{entry.get(text_of)} {entry.get('body')}":
                    return entry
            if len(entries) < _PAGE:
                break
        return None

    issue = search(issues, {"labels": label, "state": "all"}, message.cause)
    if issue is None:
        body = {
            "title": f"iobands: {message.title}".replace("@", f"@{_ZERO_WIDTH}"),
            text_of: _text(message, message.cause),
            "labels": labels,
        }
        issue = ask("POST", issues, dict[str, Any], json=body, auth=auth)
    number = issue.get(number_of)
    if not isinstance(number, int):
        raise SendError(f"the tracker returned an issue without {number_of!r}")
    comments = f"{issues}/{number}/{comments_of}"
    opened = _mark(message.id) in str(issue.get(text_of))
    if not opened and search(comments, {}, message.id) is None:
        call("POST", comments, json={"body": _text(message, message.id)}, auth=auth)
    if message.kind == ENDED:
        call(method, f"{issues}/{number}", json=closing, auth=auth)


def _text(message: Message, ident: str) -> str:
    marks = "".join(_mark(each) for each in dict.fromkeys((ident, message.id)))
    text = message.text.replace("```", _QUOTE * 3)
    return f"```\n{text}```\n{marks}"


def _mark(ident: str) -> str:
    return f"<!-- iobands {ident} -->"
