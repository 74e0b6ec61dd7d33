"""A mail server and an HTTP server on this machine, which keep what they receive."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import msgspec
from aiosmtpd.controller import Controller


@dataclass
class Mails:
    """The mails that the server took; it rejects the addresses in `refused` with `answer`."""

    port: int = 0
    taken: list[EmailMessage] = field(default_factory=list)
    refused: set[str] = field(default_factory=set)
    answer: str = "550 no such mailbox"
    bye: str = "221 bye"

    async def handle_RCPT(self, _server, _session, envelope, address, _options) -> str:
        if address in self.refused:
            return self.answer
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, _server, _session, envelope) -> str:
        self.taken.append(message_from_bytes(envelope.content, policy=policy.default))
        return "250 OK"

    async def handle_QUIT(self, _server, _session, _envelope) -> str:
        return self.bye


class AnyPort(Controller):
    """A controller of a server at any free port."""

    def _trigger_server(self) -> None:
        self.port = self.server.sockets[0].getsockname()[1]
        super()._trigger_server()


@contextmanager
def mail_server(**options: object) -> Iterator[Mails]:
    """Start a mail server; `options` are those of aiosmtpd."""
    mails = Mails()
    controller = AnyPort(mails, hostname="127.0.0.1", port=0, ready_timeout=60, **options)
    controller.start()
    mails.port = controller.port
    try:
        yield mails
    finally:
        controller.stop()


@dataclass
class Request:
    method: str
    path: str
    query: dict[str, list[str]]
    headers: dict[str, str]
    body: str

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Web:
    """The requests to the HTTP server, which answers as a tracker, or with `status`.

    Messages of the topics in `refused` are rejected as too large. NRDP knows one `token`.
    """

    def __init__(self) -> None:
        self.asked: list[Request] = []
        self.status = 200
        self.refused: set[str] = set()
        self.token = "s3cr3t-t0ken"
        self.issues: list[dict[str, Any]] = []
        self.comments: dict[int, list[dict[str, Any]]] = {}
        self.url = ""

    def answer(self, request: Request) -> tuple[int, Any]:  # noqa: PLR0911
        """Return an answer with the fields that GitLab's and GitHub's documents show."""
        self.asked.append(request)
        if self.status != 200:
            return self.status, {"message": "401 Unauthorized"}
        if self.refused and request.json["cause"] in self.refused:
            return 413, {"message": "Payload Too Large"}
        parts = request.path.strip("/").split("/")
        if parts[-1] == "process-check-result":
            if request.json["filter_vars"]["wanted_service"] != "iobands":
                return 500, {"results": []}  # as Icinga 2.13 answers
            return 200, {"results": [{"code": 200.0, "status": "Successfully processed"}]}
        if parts[-1] == "nrdp":  # as NRDP 2.0.5 answers
            is_known = parse_qs(request.body)["token"] == [self.token]
            status, text = (0, "OK") if is_known else (-1, "BAD TOKEN")
            return 200, {"result": {"status": status, "message": text}}
        if "issues" not in parts:
            return 200, {"ok": True}
        number = int(parts[parts.index("issues") + 1]) if parts[-1] != "issues" else None
        if number is None and request.method == "GET":
            return 200, self.issues
        if number is None:
            said = request.json
            text = said.get("description", said.get("body"))
            issue = {"iid": 7 + len(self.issues), "number": 7 + len(self.issues)}
            issue |= {"title": said["title"], "description": text, "body": text}
            issue |= {"state": "opened", "labels": said["labels"]}
            self.issues.append(issue)
            return 201, issue
        if parts[-1] in ("notes", "comments"):
            notes = self.comments.setdefault(number, [])
            if request.method == "GET":
                return 200, notes
            notes.append({"id": 300 + len(notes), "body": request.json["body"]})
            return 201, notes[-1]
        (issue,) = (each for each in self.issues if each["iid"] == number)
        issue["state"] = "closed"
        return 200, issue


@contextmanager
def web_server() -> Iterator[Web]:
    web = Web()

    class Handler(BaseHTTPRequestHandler):
        def handle_any(self) -> None:
            size = int(self.headers.get("Content-Length") or 0)
            body = self.rfile.read(size).decode()
            address = urlsplit(self.path)
            request = Request(
                self.command, address.path, parse_qs(address.query), dict(self.headers), body
            )
            status, answer = web.answer(request)
            content = answer if isinstance(answer, bytes) else msgspec.json.encode(answer)
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_PUT = do_PATCH = handle_any

        def log_message(self, *_arguments: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    web.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield web
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
