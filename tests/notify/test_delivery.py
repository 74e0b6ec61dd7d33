"""Messages by real servers: what arrives, what waits, and that no secret leaks."""

from __future__ import annotations

import json
import re
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from email import message_from_bytes, policy
from functools import partial
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from iobands.model import FileError
from iobands.notify import channels, deliver, outbox
from iobands.notify.deliver import attempt, ping, report, send
from iobands.notify.outbox import (
    NOTIFIED,
    Channel,
    Message,
    Outbox,
    SendError,
    read_settings,
    scrubbed,
    secret,
)
from tests.commands.calling import call
from tests.factory import NOW, daily, write_perflog
from tests.notify.servers import Mails, Web, mail_server, web_server
from tests.sites import levels

MESSAGE = Message(
    "c1-0", "c1", "began", "degraded", "began: degraded ü <b>", "a & b\n```\n", NOW.isoformat()
)
SECRET = "s3cr3t-t0ken"


@pytest.fixture
def mails() -> Iterator[Mails]:
    with mail_server() as server:
        yield server


@pytest.fixture
def web(monkeypatch: pytest.MonkeyPatch) -> Iterator[Web]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("TOKEN", SECRET)
    with web_server() as server:
        yield server


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Perflogs in which one series has dropped, and a directory for config/notify.yaml."""
    monkeypatch.chdir(tmp_path)
    write_perflog(tmp_path / "perflogs", daily(levels((105, 1), (15, 0.6))))
    (tmp_path / "config").mkdir()
    return tmp_path


def configure(site: Path, **channels: object) -> None:
    # JSON is YAML
    text = json.dumps({"schema": 1, "severities": ["degraded"], "channels": channels})
    (site / "config" / "notify.yaml").write_text(text)


def channel(kind: str, **options: object) -> Channel:
    return Channel("x", kind, {"type": kind, **options})


def test_nothing_is_lost_while_the_server_is_down_and_nothing_is_sent_twice(
    site: Path, mails: Mails
) -> None:
    mail = {"type": "mail", "from": "io@a.example", "to": ["team@b.example"], "server": "127.0.0.1"}
    configure(site, team={**mail, "port": 1})
    assert call("notify", "--dry-run")[0] == 0
    assert not (site / "outbox").exists()
    status, said = call("notify")
    assert (status, mails.taken) == (3, [])
    assert "not sent: team: 127.0.0.1:1: Connection refused; kept as " in said
    assert call("notify")[0] == 3  # waits, and is not sent again
    configure(site, team={**mail, "port": mails.port})
    assert call("notify")[0] == 0
    assert call("notify")[0] == 0
    (taken,) = mails.taken
    assert taken["Subject"].startswith("iobands here: began: degraded 1 disk fpp write_bw, ")
    assert (taken["To"], taken["Auto-Submitted"]) == ("team@b.example", "auto-generated")
    assert "\r\nNext step: iobands explain 1\r\n" in taken.get_content()
    (entry,), _ = Outbox(site / "outbox").entries()
    assert (entry.attempts, entry.error, bool(entry.sent)) == (3, "", True)
    assert stat.S_IMODE((site / "outbox").stat().st_mode) == 0o700


def test_killed_between_sending_and_noting_the_repetition_has_the_same_id(
    site: Path, mails: Mails
) -> None:
    mail = {"type": "mail", "from": "io@a.example", "to": ["t@b.example"], "server": "127.0.0.1"}
    configure(site, team={**mail, "port": mails.port})
    script = (
        "import os, sys\nfrom iobands.notify import deliver\n"
        "from iobands.commands.main import app\n"
        "send = deliver.send_mail\n"
        "deliver.send_mail = lambda *given: (send(*given), os._exit(9))\n"
        "sys.argv = ['iobands', 'notify']; app()\n"
    )
    assert subprocess.run([sys.executable, "-c", script], cwd=site, check=False).returncode == 9
    assert call("notify")[0] == 0
    first, again = mails.taken
    assert first["Message-ID"] == again["Message-ID"]
    assert call("notify")[0] == 0
    assert len(mails.taken) == 2


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"server": "nowhere.invalid"}, "nowhere.invalid:25: "),
        ({"ca": "/nowhere/ca.crt"}, "'/nowhere/ca.crt'"),
    ],
)
def test_what_a_mail_needs_and_is_missing_is_named(
    options: dict[str, str], said: str, site: Path
) -> None:
    configure(site, team={"type": "mail", "from": "io@a.example", "to": ["t@b.example"], **options})
    status, found = call("notify", "--test")
    assert status == 3
    assert said in found


def test_a_test_without_channels_says_so(site: Path) -> None:
    configure(site)
    assert call("notify", "--test") == (
        0,
        "config/notify.yaml has no channels, and monitors get no test: nothing was sent.\n",
    )


def test_a_test_mail_refers_to_no_other(site: Path, mails: Mails) -> None:
    mail = {"type": "mail", "from": "io@a.example", "to": ["t@b.example"], "port": mails.port}
    configure(site, team={**mail, "server": "127.0.0.1"})
    assert call("notify", "--test")[0] == 0
    (taken,) = mails.taken
    assert "In-Reply-To" not in str(taken)


def test_a_refused_address_is_said_and_does_not_hold_up_other_channels(
    site: Path, mails: Mails, web: Web
) -> None:
    mails.refused = {"gone@b.example"}
    mail = {"type": "mail", "from": "io@a.example", "to": ["gone@b.example"], "port": mails.port}
    configure(
        site, a={**mail, "server": "127.0.0.1"}, b={"type": "webhook", "url": web.url + "/hook"}
    )
    status, said = call("notify")
    assert (status, mails.taken, len(web.asked)) == (3, [], 1)
    assert "the server refused gone@b.example (550 no such mailbox); correct `to`" in said
    assert web.asked[0].json["title"].startswith("began: degraded")


def test_a_refused_message_holds_up_its_own_topic_and_a_server_that_is_down_is_tried_thrice(
    tmp_path: Path, web: Web
) -> None:
    waiting = [("c1", 0), ("c2", 0), ("c1", 1), ("c3", 0), ("c4", 0)]
    box, settings = Outbox(tmp_path), outbox.Settings((channel("webhook", url=web.url),))
    for place, (cause, event) in enumerate(waiting):
        when = NOW.replace(minute=place).isoformat()
        message = replace(MESSAGE, id=f"{cause}-{event}", cause=cause, when=when)
        box.write(outbox.Delivery(tmp_path / f"{message.id}.x.json", "x", message, 0, "", None))
    for web.refused, tried, sent in (
        ({"c1", "c2", "c3", "c4"}, ["c1-0", "c2-0", "c3-0"], []),
        ({"c1"}, ["c1-0", "c2-0", "c3-0", "c4-0"], ["c2-0", "c3-0", "c4-0"]),
        (set(), ["c1-0", "c1-1"], ["c1-0", "c1-1"]),
    ):
        done = [*deliver.deliver(box, box.entries()[0], settings)]
        assert [each.message.id for each in done] == tried
        assert [each.message.id for each in done if each.sent] == sent
    assert [each.json["id"] for each in web.asked[-2:]] == ["c1-0", "c1-1"]


def test_messages_of_one_time_go_out_in_the_order_of_their_alerts(tmp_path: Path) -> None:
    box = Outbox(tmp_path)
    for name, number in (("a", 10), ("b", 9), ("c", None)):
        message = replace(MESSAGE, id=name, alert=number)
        box.write(outbox.Delivery(tmp_path / f"{name}.x.json", "x", message, 0, "", None))
    assert [each.message.alert for each in box.entries()[0]] == [None, 9, 10]


def test_who_can_be_reached_gets_a_mail_once_whoever_else_is_refused(
    site: Path, mails: Mails
) -> None:
    mails.refused = {"gone@b.example"}
    to = ["gone@b.example", "team@b.example"]
    mail = {"type": "mail", "from": "io@a.example", "to": to, "server": "127.0.0.1"}
    configure(site, team={**mail, "port": mails.port})
    status, said = call("notify")
    assert (status, len(mails.taken)) == (3, 1)
    assert "not sent: team: the server refused gone@b.example (550 " in said
    assert "kept as" not in said
    assert call("notify") == (0, "")
    assert len(mails.taken) == 1


def test_a_temporary_refusal_asks_for_no_other_address(site: Path, mails: Mails) -> None:
    mails.refused, mails.answer = {"full@b.example"}, "452 4.2.2 mailbox full"
    mail = {"type": "mail", "from": "io@a.example", "to": ["full@b.example", "team@b.example"]}
    configure(site, team={**mail, "server": "127.0.0.1", "port": mails.port})
    status, said = call("notify")
    assert (status, len(mails.taken)) == (3, 1)
    assert "full@b.example (452 4.2.2 mailbox full); a server that queues mail " in said


@pytest.mark.parametrize("options", [{"security": "starttls"}, {"user": "io", "security": "none"}])
def test_what_a_mail_server_lacks_is_said_of_that_server(
    options: dict[str, str], mails: Mails
) -> None:
    mail = {"from": "io@a.example", "to": ["t@b.example"], "server": "127.0.0.1"}
    mail |= {"port": mails.port, "password": SECRET, **options}
    with pytest.raises(SendError, match=rf"^127\.0\.0\.1:{mails.port}: .* not supported by server"):
        send(channel("mail", **mail), MESSAGE)


def test_a_mail_by_sendmail_returns_to_its_sender(tmp_path: Path) -> None:
    program, kept = tmp_path / "sendmail", tmp_path / "kept"
    program.write_text(f'#!/bin/sh\necho "$@" > {kept}\ncat >> {kept}\n')
    program.chmod(0o755)
    mail = channel("mail", **{"from": "io@a.example"}, to=["té@b.example"], sendmail=str(program))
    send(mail, MESSAGE)
    options, content = kept.read_bytes().split(b"\n", 1)
    assert options == b"-t -i -f io@a.example"
    assert "\nTo: té@b.example\n".encode() in content  # as it is: no encoding is valid there
    assert message_from_bytes(content, policy=policy.default).get_content() == MESSAGE.text


@pytest.mark.parametrize("refused", [set(), {"gone@b.example"}])
@pytest.mark.parametrize("bye", ["421 too busy", "250 OK"])
def test_a_mail_that_was_accepted_is_sent_once_whatever_the_server_says_at_the_end(
    bye: str, refused: set[str], site: Path, mails: Mails
) -> None:
    mails.bye, mails.refused = bye, refused
    to = ["gone@b.example", "team@b.example"]
    mail = {"type": "mail", "from": "io@a.example", "to": to, "server": "127.0.0.1"}
    configure(site, team={**mail, "port": mails.port})
    status, said = call("notify")
    assert (status, "the server refused gone@b.example" in said) == (
        (3, True) if refused else (0, False)
    )
    assert call("notify") == (0, "")
    assert len(mails.taken) == 1


@pytest.mark.parametrize("form", ["slack", "mattermost", "teams"])
def test_webhooks(web: Web, form: str) -> None:
    hook = channel("webhook", url=f"{web.url}/hook", form=form, token={"env": "TOKEN"})
    send(hook, MESSAGE)
    (asked,) = web.asked
    assert asked.headers["Idempotency-Key"] == "c1-0"
    assert asked.headers["Authorization"] == f"Bearer {SECRET}"
    assert asked.headers["Content-Type"] == "application/json"
    assert "ü" in asked.body  # in UTF-8, as a chat limits the bytes of a message
    if form == "teams":
        (card,) = asked.json["attachments"]
        title, text = (block["text"] for block in card["content"]["body"])
        assert (title, text.replace("\n\n", "\n")) == (MESSAGE.title, MESSAGE.text)
    else:
        # Mattermost shows code as it is; Slack decodes it
        name = "<b>" if form == "mattermost" else "&lt;b&gt;"
        assert f"began: degraded ü {name}" in asked.json["text"]
        assert asked.json["text"].count("```") == 2  # no text closes the code block


@pytest.mark.parametrize(
    ("kind", "header", "issues"),
    [
        ("gitlab", "PRIVATE-TOKEN", "/api/v4/projects/hpc%2Fio/issues"),
        ("github", "Authorization", "/repos/hpc/io/issues"),
    ],
)
def test_an_issue_a_cause_and_a_comment_an_event_each_once(
    web: Web, kind: str, header: str, issues: str
) -> None:
    tracker = channel(kind, url=web.url, project="hpc/io", token={"env": "TOKEN"})
    worse = Message("c1-1", "c1", "worse", "degraded", "worse: it", "b\n", NOW.isoformat())
    over = Message("c1-2", "c1", "recovered", "degraded", "recovered: it", "c\n", NOW.isoformat())
    for message in (MESSAGE, MESSAGE, worse, worse, over):
        send(tracker, message)
    (issue,) = web.issues
    assert (issue["title"], issue["state"]) == (f"iobands: {MESSAGE.title}", "closed")
    assert [note["body"].split("\n")[1] for note in web.comments[7]] == ["b", "c"]
    assert {asked.path.split("/issues")[0] + "/issues" for asked in web.asked} == {issues}
    assert all(SECRET in asked.headers[header] for asked in web.asked)
    other = Message("c2-0", "c2", "began", "degraded", "t", "d\n", NOW.isoformat())
    send(tracker, other)
    assert len(web.issues) == 2


HOSTILE = Message(
    *("c3-0", "c3", "began", "degraded"),
    title="began: @all `@here` [click](http://evil) <!channel> <script>",
    text="@all ```\n/close\n[click](http://evil)\n",
    when=NOW.isoformat(),
)


@pytest.mark.parametrize("form", ["slack", "mattermost"])
def test_a_name_mentions_nobody_in_a_chat(web: Web, form: str) -> None:
    send(channel("webhook", url=web.url, form=form), HOSTILE)
    title, *text = web.asked[0].json["text"].splitlines()
    # all of it is code, and no name closes the code
    names = "<!channel> <script>"
    if form == "slack":  # where <!channel> is a mention even in code
        names = "&lt;!channel&gt; &lt;script&gt;"
    assert title == f"`began: @all '@here' [click](http://evil) {names}`"
    assert text == ["```", "@all '''", "/close", "[click](http://evil)", "```"]


def test_a_name_is_no_link_in_teams(web: Web) -> None:
    send(channel("webhook", url=web.url, form="teams"), HOSTILE)
    said = json.dumps(web.asked[0].json)
    assert said.count("[click] (http://evil)") == 2
    assert "entities" not in said  # without which Teams mentions nobody


def test_teams_shows_the_lines_of_a_message_as_lines(web: Web) -> None:
    """It takes a text as Markdown: a single line break is a space, and four spaces begin code."""
    lines = replace(MESSAGE, text="degraded  it\n    20 Nov\n\nNext step\n")
    send(channel("webhook", url=web.url, form="teams"), lines)
    _, block = web.asked[0].json["attachments"][0]["content"]["body"]
    assert block["text"].split("\n\n") == [
        *("degraded\u00a0 it", "\u00a0 \u00a0 20 Nov", "", "Next step", "")
    ]


@pytest.mark.parametrize("kind", ["gitlab", "github"])
def test_a_name_mentions_nobody_in_a_tracker(web: Web, kind: str) -> None:
    send(channel(kind, url=web.url, project="hpc/io", token={"env": "TOKEN"}), HOSTILE)
    (issue,) = web.issues
    assert not re.search(r"@\w", issue["title"])
    assert issue["title"].replace("\u200b", "") == f"iobands: {HOSTILE.title}"
    assert issue["body"].split("```")[1] == "\n@all '''\n/close\n[click](http://evil)\n"


def test_a_name_with_a_line_break_is_no_header_of_a_mail(mails: Mails) -> None:
    options = {
        "server": "127.0.0.1",
        "port": mails.port,
        "from": "io@a.example",
        "to": ["t@b.example"],
    }
    # nor does it hold up the mails after it
    broken = replace(HOSTILE, title="began: x\nBcc: all@b.example", system="a\u2028b")
    for message in (broken, HOSTILE):
        assert attempt(partial(send, channel("mail", **options), message)) == ("", True)
    first, second = mails.taken
    assert first["Subject"] == "iobands a?b: began: x?Bcc: all@b.example"
    assert (first["Bcc"], first["X-Iobands-System"]) == (None, "a?b")
    assert second["Subject"] == f"iobands: {HOSTILE.title}"


def test_what_a_server_says_upsets_no_terminal_and_shows_no_secret(web: Web) -> None:
    web.answer = lambda _: (403, f"\x1b[2J{SECRET}\n{'x' * 9000}".encode())
    said, _ = attempt(
        lambda: send(channel("webhook", url=web.url, token={"env": "TOKEN"}), MESSAGE)
    )
    assert said.isprintable()
    assert "HTTP status 403: ?[2J…" in said
    assert len(said) < 1000


def test_a_server_that_never_ends_its_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deliver, "_SECONDS", 0.2)
    goes_on = threading.Event()
    try:
        late = ("did not end within 0.2 s", False)
        assert attempt(lambda: goes_on.wait() and None) == late
    finally:
        goes_on.set()


@pytest.mark.parametrize(
    ("answer", "is_sent"),
    [
        ("200 OK\r\nContent-Length: 9\r\n\r\n{}", True),  # the rest never comes
        ("200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab", True),
        ("204 No Content\r\n\r\n", True),
        ("302 Found\r\nContent-Length: 0\r\n\r\n", False),  # without a place
        ("304 Not Modified\r\n\r\n", False),
        ("429 Too Many Requests\r\nContent-Length: 0\r\n\r\n", False),
        ("", False),
    ],
)
def test_the_status_of_an_answer_says_whether_a_message_was_accepted(
    answer: str, is_sent: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            asked, _ = server.accept()
            with asked:
                while b'"iobands-message/1"' not in asked.recv(65536):
                    pass
                asked.sendall(f"HTTP/1.1 {answer}".encode() if answer else b"")

        thread = threading.Thread(target=serve)
        thread.start()
        url = f"http://127.0.0.1:{server.getsockname()[1]}/hook"
        said, _ = attempt(lambda: send(channel("webhook", url=url), MESSAGE))
        thread.join()
    assert (said == "") is is_sent


def test_what_a_command_leaves_running_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(channels, "_MAIL_SECONDS", 5)
    kept = tmp_path / "kept"
    send(channel("command", command=["/bin/sh", "-c", f"cat > {kept}; sleep 20 &"]), MESSAGE)
    assert msgspec.json.decode(kept.read_bytes(), type=Message) == MESSAGE


def test_a_command_gets_the_message(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    send(channel("command", command=["/bin/sh", "-c", f"cat > {kept}"]), MESSAGE)
    assert msgspec.json.decode(kept.read_bytes(), type=Message) == MESSAGE
    with pytest.raises(SendError, match="status 3: why"):
        send(channel("command", command=["/bin/sh", "-c", "echo why >&2; exit 3"]), MESSAGE)
    with pytest.raises(SendError, match=r"ended with status 1$"):
        send(channel("command", command=["/bin/false"]), MESSAGE)
    with pytest.raises(SendError, match="/nowhere/tell"):
        send(channel("command", command=["/nowhere/tell"]), MESSAGE)


def test_a_secret_is_in_no_message_of_an_error_and_in_no_file(
    site: Path, web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOOK", f"{web.url}/{SECRET}")
    web.status = 401
    configure(
        site,
        a={"type": "webhook", "url": {"env": "HOOK"}},
        b={"type": "gitlab", "url": web.url, "project": "hpc/io", "token": {"env": "TOKEN"}},
    )
    status, said = call("notify")
    assert (status, said.count("HTTP status 401")) == (3, 2)
    monkeypatch.setenv("HOOK", f"http://127.0.0.1:1/{SECRET}")
    said += call("notify")[1]
    assert "127.0.0.1:1: ConnectionError: Connection refused" in said
    every = [path.read_text() for path in site.rglob("*") if path.is_file()]
    assert not any(SECRET in text for text in (said, *every))


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o660])
def test_a_secret_that_others_can_read_is_refused(web: Web, tmp_path: Path, mode: int) -> None:
    path = tmp_path / "token"
    path.write_text(f"{SECRET}\n")
    hook = channel("webhook", url=web.url, token={"file": str(path)})
    path.chmod(mode)
    with pytest.raises(SendError, match="chmod 600"):
        send(hook, MESSAGE)
    assert web.asked == []
    path.chmod(0o600)
    send(hook, MESSAGE)
    assert web.asked[0].headers["Authorization"] == f"Bearer {SECRET}"


def test_a_passive_result_with_freshness_and_pings(web: Web) -> None:
    icinga = channel(
        "icinga", url=web.url, host="hpc", user="io", password={"env": "TOKEN"}, fresh_hours=30
    )
    report(icinga, 2, "IOBANDS CRITICAL: 1 degraded")
    nrdp = channel("nrdp", url=f"{web.url}/nrdp/", host="hpc", token={"env": "TOKEN"})
    report(nrdp, 3, "IOBANDS UNKNOWN: x")
    ping(f"{web.url}/ping/uuid", "start")
    ping(f"{web.url}/ping/uuid", "")
    ping(f"{web.url}/ping/uuid", "fail", "why")
    ping(f"{web.url}/ping/key/io/?create=1", "fail", "why")
    first, second, *pings = web.asked
    assert first.path == "/v1/actions/process-check-result"
    assert (first.json["exit_status"], first.json["ttl"]) == (2, 108_000)
    assert first.headers["Authorization"].startswith("Basic ")
    assert "submitcheck" in second.body
    assert [(each.path, each.body) for each in pings] == [
        ("/ping/uuid/start", ""),
        ("/ping/uuid", ""),
        ("/ping/uuid/fail", "why"),
        ("/ping/key/io/fail", "why"),
    ]
    assert pings[-1].query == {"create": ["1"]}


def test_a_service_that_icinga_does_not_know_is_named(web: Web) -> None:
    wrong = channel("icinga", url=web.url, host="hpc", service="io", password={"env": "TOKEN"})
    with pytest.raises(SendError, match=r"^the monitor has no service 'io' on the host 'hpc'$"):
        report(wrong, 0, "IOBANDS OK")


def test_a_token_that_nrdp_does_not_know_is_refused(web: Web) -> None:
    web.token = "another"
    nrdp = channel("nrdp", url=f"{web.url}/nrdp/", host="hpc", token={"env": "TOKEN"})
    with pytest.raises(SendError, match=r"^NRDP: BAD TOKEN$"):
        report(nrdp, 0, "IOBANDS OK")


def test_a_page_of_another_server_is_no_answer_of_nrdp(web: Web) -> None:
    nrdp = channel("nrdp", url=f"{web.url}/none/", host="hpc", token={"env": "TOKEN"})
    with pytest.raises(SendError, match="does not have the form of its API"):
        report(nrdp, 0, "IOBANDS OK")


@pytest.mark.parametrize(
    ("said", "mentions"),
    [
        ({"type": "mail", "to": ["x@y"], "from": "a b"}, "from is 'a b'; write an address"),
        ({"type": "carrier pigeon"}, "write one of mail, webhook"),
        ({"type": "gitlab", "project": "a/b", "token": "s"}, "token cannot be used; write a"),
        ({"type": "command", "command": "tell"}, "write a list"),
        ({"type": "webhook", "url": "ftp://x"}, "url cannot be used; write an address"),
    ],
)
def test_a_mistake_in_the_file_is_named(site: Path, said: object, mentions: str) -> None:
    configure(site, team=said)
    status, text = call("notify")
    assert status == 3
    assert mentions in text
    assert not (site / "outbox").exists()


def test_a_torn_file_is_named_and_the_rest_is_sent(site: Path, web: Web) -> None:
    configure(site, a={"type": "webhook", "url": web.url})
    (site / "outbox").mkdir()
    (site / "outbox" / "x-0.a.json").write_text('{"sch')
    status, said = call("notify")
    assert (status, len(web.asked)) == (3, 1)
    assert "x-0.a.json: cannot be read" in said
    (site / "outbox" / "causes.json").write_text("{}")
    status, said = call("notify")
    assert (status, len(web.asked)) == (3, 1)
    assert "move it away" in said


def test_an_outbox_of_a_newer_version_is_sent(site: Path, web: Web) -> None:
    configure(site, a={"type": "webhook", "url": web.url})
    web.status = 500
    assert call("notify")[0] == 3
    for path in (site / "outbox").glob("*.json"):
        text = re.sub(r'("(?:id|attempts)":)', r'"mood": "calm", \1', path.read_text())
        assert "calm" in text
        path.write_text(text)
    web.status = 200
    assert call("notify")[0] == 0
    first, last = web.asked
    assert first.json == last.json


def test_what_waits_for_a_channel_that_is_gone_is_removed_at_once(site: Path, web: Web) -> None:
    hook = {"type": "webhook", "url": web.url}
    web.status = 500
    configure(site, a=hook)
    assert call("notify")[0] == 3
    (first,) = (site / "outbox").glob("*.a.json")
    other = first.read_text("utf-8").replace('"cause": "', '"cause": "of-another-')
    (site / "outbox" / "x-1.a.json").write_text(other, "utf-8")
    web.status = 200
    configure(site, b=hook)
    status, said = call("notify")
    assert (status, len(web.asked)) == (3, 1)
    gone = "no longer has the channel a; put it back, or remove outbox/*.a.json;"
    assert said.count(gone) == 1
    found = [*(site / "outbox").glob("*.a.json")]
    assert len(found) == 2
    for each in found:
        each.unlink()
    assert call("notify") == (0, "")


def test_without_settings_it_says_what_they_are_for(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="no such file; write one that names"):
        read_settings(tmp_path / "notify.yaml")


def test_the_documented_files_are_right(tmp_path: Path) -> None:
    page = Path(__file__).resolve().parents[2] / "docs" / "howto" / "tell-people.md"
    people, monitors = re.findall(r"```yaml\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    path = tmp_path / "notify.yaml"
    path.write_text(people + monitors, encoding="utf-8")
    found = read_settings(path)
    assert [each.type for each in found.channels] == ["mail", "webhook", "gitlab", "command"]
    assert [each.type for each in found.monitors] == ["icinga", "nrdp"]
    assert found.severities == NOTIFIED


def test_of_an_address_without_a_path_the_host_alone_is_hidden(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(outbox, "_secrets", set())
    secret("https://hook.example.org")
    assert scrubbed("https://hook.example.org/ does not answer; is it down?") == (
        "…/ does not answer; is it down?"
    )
