"""Mail by an SMTP server or sendmail, and any other command that takes a message."""

from __future__ import annotations

import smtplib
import ssl
import subprocess
from collections.abc import Mapping, Sequence
from datetime import datetime
from email.message import EmailMessage
from email.utils import format_datetime
from typing import Any, Final

from iobands.notify.news import Message
from iobands.notify.settings import SendError, secret

_SECONDS: Final = 60


def send_mail(message: Message, options: Mapping[str, Any]) -> None:
    """Send a message.

    Raises:
        SendError: the server did not accept it.
    """
    mail = as_mail(message, options)
    try:
        if "sendmail" in options:
            hand_to([options["sendmail"], "-t", "-i"], mail.as_bytes())
        else:
            _by_server(mail, options)
    except smtplib.SMTPResponseException as error:
        said = error.smtp_error
        text = said.decode(errors="replace") if isinstance(said, bytes) else str(said)
        raise SendError(f"{error.smtp_code} {text}") from None


def as_mail(message: Message, options: Mapping[str, Any]) -> EmailMessage:
    """Return the mail: a repetition has the same Message-ID, and a cause is a thread."""
    domain = options["from"].rpartition("@")[2]
    mail = EmailMessage()
    mail["From"] = options["from"]
    mail["To"] = ", ".join(options["to"])
    mail["Subject"] = f"{' '.join(filter(None, ('iobands', message.system)))}: {message.title}"
    mail["Date"] = format_datetime(datetime.fromisoformat(message.when))
    mail["Message-ID"] = f"<{message.id}@{domain}>"
    first = f"<{message.cause}-0@{domain}>"
    if mail["Message-ID"] != first:
        mail["In-Reply-To"] = mail["References"] = first
    mail["Auto-Submitted"] = "auto-generated"
    for name, value in fields_of(message).items():
        mail[f"X-Iobands-{name.capitalize()}"] = value
    mail.set_content(message.text)
    return mail


def fields_of(message: Message) -> dict[str, str]:
    """Return the headers for programs, by the end of their names; those of contract 9."""
    names = ("schema", "kind", "severity", "system", "alert", "subject", "found", "since", "page")
    fields = {name: getattr(message, name) for name in names}
    return {name: str(value) for name, value in fields.items() if value not in ("", None)}


def hand_to(command: Sequence[str], content: bytes) -> None:
    """Run a command with `content` on its standard input.

    Raises:
        SendError: it could not be run, or failed.
    """
    program = command[0]
    try:
        done = subprocess.run(
            command, input=content, capture_output=True, timeout=_SECONDS, check=False
        )
    except OSError as error:
        raise SendError(f"{program}: {error.strerror}") from None
    if done.returncode:
        said = done.stderr.decode(errors="replace")
        raise SendError(f"{program} ended with status {done.returncode}: {said}")


def _by_server(mail: EmailMessage, options: Mapping[str, Any]) -> None:
    security = options.get("security", "none")
    if "password" in options and "security" not in options:
        raise SendError(
            "the password would be sent unencrypted: set security to starttls or tls, or to none "
            "if the network is trusted"
        )
    usual = {"none": 25, "starttls": 587, "tls": 465}[security]
    server, port = options.get("server", "localhost"), options.get("port", usual)
    context = ssl.create_default_context(cafile=options.get("ca"))
    if security == "tls":
        link: smtplib.SMTP = smtplib.SMTP_SSL(server, port, timeout=_SECONDS, context=context)
    else:
        link = smtplib.SMTP(server, port, timeout=_SECONDS)
    with link:
        if security == "starttls":
            link.starttls(context=context)
        if "password" in options:
            link.login(options.get("user", ""), secret(options["password"]))
        refused = link.send_message(mail)
    if refused:
        raise SendError(f"the server refused {', '.join(sorted(refused))}; correct `to`")
