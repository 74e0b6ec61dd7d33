"""Faults in delivery: each message waits, is named, and is sent once the fault is repaired."""

from __future__ import annotations

import json
import os
import re
import ssl
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from iobands.model import FileError
from iobands.notify import channels as calls
from iobands.notify.outbox import Outbox, SendError, read_settings, secret
from tests.conftest import Command
from tests.factory import daily, write_perflog
from tests.fault_table import Observed
from tests.notify.servers import Mails, Web, mail_server, web_server
from tests.sites import levels


@dataclass
class Place:
    """A site with one drop, and the servers that it notifies by."""

    root: Path
    mails: Mails
    web: Web

    def tell(self, **channel: object) -> None:
        # JSON is YAML
        text = json.dumps({"schema": 1, "severities": ["degraded"], "channels": {"team": channel}})
        (self.root / "config" / "notify.yaml").write_text(text)

    def tell_three(self, bad: dict[str, object]) -> None:
        """Configure a bad channel, then a good one, and a monitor."""
        tracker = {"type": "gitlab", "url": self.web.url, "project": "hpc/io"}
        good = {"type": "webhook", "url": f"{self.web.url}/good"}
        monitor = {"type": "icinga", "url": self.web.url, "host": "hpc"}
        said = {"schema": 1, "severities": ["degraded"], "monitors": {"m": monitor}}
        said["channels"] = {"bad": bad if "type" in bad else {**tracker, **bad}, "good": good}
        (self.root / "config" / "notify.yaml").write_text(json.dumps(said))

    def by_mail(self, port: int, **options: object) -> None:
        address = {"from": "io@a.example", "to": ["team@b.example"], "server": "127.0.0.1"}
        self.tell(type="mail", port=port, **address, **options)

    def by_web(self, **options: object) -> None:
        self.tell(type="webhook", url=self.web.url, **options)

    @property
    def outbox(self) -> Path:
        return self.root / "outbox"

    @property
    def sent(self) -> int:
        return sum(bool(entry.sent) for entry in Outbox(self.outbox).entries()[0])


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    write_perflog(tmp_path / "perflogs", daily(levels((105, 1), (15, 0.6))))
    (tmp_path / "config").mkdir()
    with mail_server() as mails, web_server() as web:
        yield Place(tmp_path, mails, web)


def server_down(place: Place) -> Callable[[], None]:
    place.by_mail(1)
    return lambda: place.by_mail(place.mails.port)


def mailbox_gone(place: Place) -> Callable[[], None]:
    place.mails.refused = {"team@b.example"}
    place.by_mail(place.mails.port)
    return place.mails.refused.clear


def web_broken(place: Place) -> Callable[[], None]:
    place.web.status = 500
    place.by_web()
    return lambda: setattr(place.web, "status", 200)


def web_silent(place: Place) -> Callable[[], None]:
    goes_on = threading.Event()
    answer = place.web.answer

    def wait(request: Any) -> tuple[int, Any]:
        goes_on.wait(60)
        return answer(request)

    place.web.answer = wait  # type: ignore[method-assign]
    place.by_web()
    calls._SECONDS = 1  # of 30; the fixture puts them back

    def lift() -> None:
        place.web.answer = answer  # type: ignore[method-assign]
        goes_on.set()

    return lift


def secret_open(place: Place) -> Callable[[], None]:
    token = place.root / "token"
    token.write_text("t0ken\n")
    token.chmod(0o644)
    place.by_web(token={"file": str(token)})
    return lambda: token.chmod(0o600)


def secret_missing(place: Place) -> Callable[[], None]:
    place.by_web(token={"file": str(place.root / "token")})

    def lift() -> None:
        (place.root / "token").touch(0o600)
        (place.root / "token").write_text("t0ken\n")

    return lift


def state_damaged(place: Place) -> Callable[[], None]:
    place.by_web()
    place.outbox.mkdir()
    (place.outbox / "causes.json").write_text('{"causes": [')
    return (place.outbox / "causes.json").unlink


def message_damaged(place: Place) -> Callable[[], None]:
    place.by_web()
    place.outbox.mkdir()
    (place.outbox / "x-0.team.json").write_text('{"sch')
    return (place.outbox / "x-0.team.json").unlink


def message_a_pipe(place: Place) -> Callable[[], None]:
    place.by_web()
    place.outbox.mkdir()
    os.mkfifo(place.outbox / "x-0.team.json")
    return (place.outbox / "x-0.team.json").unlink


def outbox_a_file(place: Place) -> Callable[[], None]:
    place.by_web()
    place.outbox.touch()
    return place.outbox.unlink


def device_full(place: Place) -> Callable[[], None]:
    place.by_web()
    place.outbox.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k,mode=700", "none", str(place.outbox)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("mounts a file system: needs root")
    (place.outbox / "filler").write_bytes(bytes(60 * 1024))
    return (place.outbox / "filler").unlink


def settings_damaged(place: Place) -> Callable[[], None]:
    place.by_web()
    path = place.root / "config" / "notify.yaml"
    right = path.read_text()
    path.write_text(right[:-3])
    return lambda: path.write_text(right) and None


WAITS = "unknown; it waits, and is sent once"
FAULTS = {
    "mail server is down": (WAITS, server_down, "Connection refused"),
    "mail server refuses an address": (WAITS, mailbox_gone, "team@b.example"),
    "webhook answers with status 500": (WAITS, web_broken, "HTTP status 500"),
    "webhook does not answer": (WAITS, web_silent, "ReadTimeout"),
    "file of a secret can be read by others": (WAITS, secret_open, "chmod 600"),
    "file of a secret is missing": (WAITS, secret_missing, "token: No such file"),
    "state of the outbox is damaged": ("unknown; nothing is sent", state_damaged, "move it away"),
    "a message in the outbox is damaged": (
        *("unknown; it is named, and the others are sent", message_damaged),
        "x-0.team.json: cannot be read",
    ),
    "a pipe in place of a message": (
        *("unknown; it is not waited for, and the others are sent", message_a_pipe),
        "x-0.team.json: cannot be read",
    ),
    "a file in place of the outbox": ("unknown; nothing is sent", outbox_a_file, "outbox"),
    "device of the outbox is full": ("unknown; nothing is sent", device_full, "No space left"),
    "notify.yaml is cut off": ("unknown; its place", settings_damaged, "notify.yaml"),
}


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(name, marks=pytest.mark.fault("people", name, expected))
        for name, (expected, *_) in FAULTS.items()
    ],
)
def test_no_message_is_lost_or_sent_twice(
    fault: str,
    place: Place,
    iobands: Command,
    observed: Observed,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(calls, "_SECONDS", calls._SECONDS)
    _, inject, said = FAULTS[fault]
    try:
        lift = inject(place)
        done = iobands("notify")
        assert done.returncode == 3
        assert said in done.stderr
        assert "Traceback" not in done.stderr
        lift()
        again = iobands("notify")
        assert (again.returncode, place.sent) == (0, 1), again.stderr
        assert len(place.mails.taken) + len({each.body for each in place.web.asked}) == 1
    finally:
        if place.outbox.is_mount():
            subprocess.run(["umount", place.outbox], check=True)
    observed(**done.cells(done.stderr.strip().splitlines()[-1]), next_run=again.returncode == 0)


@pytest.mark.fault("people", "certificate of the mail server is not trusted", WAITS)
def test_a_mail_by_starttls(place: Place, iobands: Command, observed: Observed) -> None:
    key, own = place.root / "key.pem", place.root / "own.pem"
    command = f"openssl req -x509 -newkey rsa:2048 -nodes -keyout {key} -out {own} -days 2"
    wanted = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run([*command.split(), *wanted], capture_output=True, check=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(own, key)
    with mail_server(tls_context=context, require_starttls=True) as mails:
        place.by_mail(mails.port)
        plain = iobands("notify")
        place.by_mail(mails.port, security="starttls")
        done = iobands("notify")
        assert (plain.returncode, done.returncode, mails.taken) == (3, 3, [])
        assert "CERTIFICATE_VERIFY_FAILED" in done.stderr
        place.by_mail(mails.port, security="starttls", ca=str(own))
        again = iobands("notify")
        assert (again.returncode, len(mails.taken)) == (0, 1), again.stderr
    observed(
        message=done.stderr.strip(),
        exit_status=done.returncode,
        left=[place.outbox],
        next_run=again.returncode == 0,
    )


@pytest.mark.fault("people", "two `iobands notify` at once", "each message is sent once")
def test_two_at_once(place: Place, iobands: Command, observed: Observed) -> None:
    place.by_mail(place.mails.port)
    command = [sys.executable, "-m", "iobands", "notify"]
    both = [
        subprocess.Popen(command, cwd=place.root, text=True, stderr=subprocess.PIPE)
        for _ in range(2)
    ]
    said = [each.communicate()[1] for each in both]
    assert [each.returncode for each in both] == [0, 0], said
    assert len(place.mails.taken) == 1
    again = iobands("notify")
    assert len(place.mails.taken) == 1
    observed(message="", exit_status=0, left=[place.outbox], next_run=again.returncode == 0)


SECRET = "s3cr3t-t0ken"
PAGE = b"<html>Please log in</html>"


def answers(odd: object) -> Callable[[Place], dict[str, object]]:
    """Make the tracker answer with something other than its documentation shows."""

    def inject(place: Place) -> dict[str, object]:
        usual = place.web.answer

        def answer(request: Any) -> tuple[int, Any]:
            is_tracker = "/api/" in request.path
            return (200, odd) if is_tracker else usual(request)

        place.web.answer = answer  # type: ignore[method-assign]
        return {"token": {"file": str(token(place))}}

    return inject


def token(place: Place, content: bytes = SECRET.encode()) -> Path:
    path = place.root / "token"
    path.touch(0o600)
    path.write_bytes(content)
    return path


def holds(content: bytes) -> Callable[[Place], dict[str, object]]:
    return lambda place: {"token": {"file": str(token(place, content))}}


def named_pipe(place: Place) -> dict[str, object]:
    os.mkfifo(place.root / "pipe", 0o600)
    return {"token": {"file": str(place.root / "pipe")}}


def device(_place: Place) -> dict[str, object]:
    return {"token": {"file": "/dev/zero"}}


def no_issue_number(place: Place) -> dict[str, object]:
    options = answers({"title": "an issue"})(place)
    odd = place.web.answer

    def answer(request: Any) -> tuple[int, Any]:
        return (200, []) if request.method == "GET" else odd(request)

    place.web.answer = answer  # type: ignore[method-assign]
    return options


def password_in_clear(place: Place) -> dict[str, object]:
    mail = {"type": "mail", "from": "io@a.example", "to": ["team@b.example"], "user": "io"}
    server = {"server": "127.0.0.1", "port": place.mails.port}
    return {**mail, **server, "password": {"file": str(token(place))}}


def token_in_clear(place: Place) -> dict[str, object]:
    """No server is asked: there is no such host."""
    return {"url": "http://tracker.invalid", "token": {"file": str(token(place))}}


OTHERS = "unknown; this channel is named, all others get their messages"
ODD: dict[str, tuple[Callable[[Place], dict[str, object]], str]] = {
    "a server answers with a page": (answers(PAGE), "Please log in"),
    "a server answers with other JSON": (
        answers({"no": "list"}),
        "does not have the form of its API",
    ),
    "a server answers with a list of lists": (answers([[1], 2, None]), "does not have the form"),
    "a tracker gives an issue without its number": (no_issue_number, "'iid'"),
    "file of a secret has two lines": (holds(f"{SECRET}\n{SECRET}x\n".encode()), "one line"),
    "a secret that no header can hold": (holds(f"{SECRET}€".encode()), "ASCII"),
    "a secret that is not text": (holds(SECRET.encode() + b"\xff\x00"), "ASCII"),
    "file of a secret is a pipe": (named_pipe, "is not a regular file"),
    "file of a secret is a device": (device, "is not a regular file"),
    "file of a secret is a gigabyte": (holds(bytes(1 << 20)), "File too large"),
    "password of mail without TLS": (password_in_clear, "the password would be sent unencrypted"),
    "token of a tracker without TLS": (token_in_clear, "the token would be sent unencrypted"),
}


@pytest.mark.parametrize(
    "fault", [pytest.param(name, marks=pytest.mark.fault("people", name, OTHERS)) for name in ODD]
)
def test_a_bad_channel_is_named_and_all_others_get_their_messages(
    fault: str, place: Place, iobands: Command, observed: Observed
) -> None:
    inject, said = ODD[fault]
    place.tell_three(inject(place))
    done = iobands("notify")
    assert done.returncode == 3
    (problem,) = done.stderr.splitlines()
    assert problem.startswith("IOBANDS UNKNOWN: not sent: bad: ")
    assert said in problem
    good = [each.path for each in place.web.asked if "/api/" not in each.path]
    assert good == ["/good", "/v1/actions/process-check-result"]
    kept = [each.read_text() for each in place.outbox.glob("*.json")]
    assert not any(SECRET in text for text in (done.stdout, done.stderr, *kept))
    assert place.mails.taken == []
    place.tell_three({"type": "webhook", "url": f"{place.web.url}/bad"})
    again = iobands("notify")
    observed(**done.cells(problem), next_run=again.returncode == 0)


def test_secrets_go_in_clear_where_the_settings_say_so(place: Place, iobands: Command) -> None:
    options = password_in_clear(place)
    place.tell(**options)
    assert "unencrypted" in iobands("notify").stderr
    place.tell(**options, security="none")
    # the server of this test takes no password, but it was asked
    assert "SMTP AUTH extension not supported" in iobands("notify").stderr
    options = token_in_clear(place)
    for said, expected in ({}, "unencrypted"), ({"security": "none"}, "tracker.invalid: "):
        place.tell(type="gitlab", project="hpc/io", **options, **said)
        assert expected in iobands("notify").stderr
    place.tell(type="webhook", **options)
    assert "unencrypted" in iobands("notify").stderr
    secret = {"file": str(token(place))}
    for options in {"type": "icinga", "password": secret}, {"type": "nrdp", "token": secret}:
        monitor = {"url": "http://monitor.invalid", "host": "hpc", **options}
        text = json.dumps({"schema": 1, "monitors": {"m": monitor}})
        (place.root / "config" / "notify.yaml").write_text(text)
        assert "unencrypted" in iobands("notify").stderr


@pytest.mark.fault("people", "a name that mentions everybody", "it mentions nobody")
def test_a_file_system_named_all(place: Place, iobands: Command, observed: Observed) -> None:
    write_perflog(place.root / "perflogs", daily(levels((105, 1), (15, 0.6)), file_system="@all"))
    place.tell(
        type="gitlab", url=place.web.url, project="hpc/io", token={"file": str(token(place))}
    )
    done = iobands("notify")
    (issue,) = place.web.issues
    assert "@\u200ball" in issue["title"]
    outside = issue["title"] + "".join(issue["description"].split("```")[::2])
    assert not re.search(r"@\w", outside)
    observed(
        **done.cells(issue["title"].replace("\u200b", "")),
        next_run=iobands("notify").returncode == 0,
    )


def test_a_test_that_fails_is_not_kept(place: Place, iobands: Command) -> None:
    place.by_mail(1)
    assert iobands("notify", "--test").returncode == 3
    assert not place.outbox.exists()
    place.by_mail(place.mails.port)
    assert iobands("notify", "--test").returncode == 0
    assert len(place.mails.taken) == 1


@pytest.mark.parametrize(
    "written",
    [
        "{type: mail, from: a@b.org, to: [c@d.org], password: s3cr3t}",
        "{type: gitlab, url: 'https://git.example.org', project: '1', token: 53cr3t-s3cr3t}",
        "{type: webhook, url: 'htps://hooks.example.org/T0/s3cr3t'}",
        "{type: gitlab, project: a/b, token: {env: glpat, file: /s3cr3t}}",
        "{type: gitlab, project: a/b, token: {s3cr3t}}",
    ],
)
def test_a_secret_in_the_wrong_place_is_not_repeated(tmp_path: Path, written: str) -> None:
    said = refused(tmp_path, written)
    assert re.search(r"channel 'team': \w+ cannot be used; write a", said)
    assert "{'env': 'IOBANDS_" in said


@pytest.mark.parametrize(
    ("written", "wanted"),
    [
        ("{file: glpat-s3cr3t}", "file cannot be used; write an absolute path"),
        ("{env: glpat-s3cr3t}", "env cannot be used; write the name of a variable"),
        ('{env: "s3cr3t\\n"}', "env cannot be used; write the name of a variable"),
    ],
)
def test_a_secret_in_place_of_where_to_find_it_is_not_repeated(
    tmp_path: Path, written: str, wanted: str
) -> None:
    said = refused(tmp_path, f"{{type: gitlab, project: a/b, token: {written}}}")
    assert said.endswith(f"channel 'team', token: {wanted}")


def test_a_token_that_could_name_a_variable_is_not_repeated() -> None:
    with pytest.raises(SendError, match="the variable that `env` names is empty or not set"):
        secret({"env": "ghp_s3cr3t"})


def refused(tmp_path: Path, written: str) -> str:
    """Return the error about a channel, without the secret in it."""
    path = tmp_path / "notify.yaml"
    path.write_text(f"schema: 1\nchannels:\n  team: {written}\n")
    with pytest.raises(FileError) as error:
        read_settings(path)
    assert "s3cr3t" not in str(error.value)
    return str(error.value)
