"""The output of commands fits 80 columns, on a terminal and in a pipe, and breaks no word."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timezone
from itertools import product
from pathlib import Path

import pytest

from iobands.commands import judging
from iobands.commands.main import entry
from iobands.judge.site import JudgedSite
from iobands.source.known import Known
from iobands.views.writing import blocks, folded
from tests.factory import daily, write_perflog
from tests.sites import whole_demo
from tests.views.sites import acknowledge, dropped

#: Names as long as a site may choose them, with wide words and with characters of the shell.
HOSTILE = {
    "file_system": "lustre-scratch-of-the-national-service-with-a-very-long-name-that-nobody-types",
    "pattern": "ssf",
    "hints": "more aggregators 'and' $(quotes)",
    "environ": "PrgEnv-cray-aocc-8.4.0-with-craype-network-ucx",
    "transport": "ucx",
}
COMMANDS = (
    ("status",),
    ("status", "--all"),
    ("alerts",),
    ("explain", "1"),
    ("advise",),
    ("compare", "transport"),
    ("targets",),
    ("targets", "--nodes"),
    ("calibrate", "--dry-run"),
    ("explain",),
)
#: A word that has no room in a line may be broken; a path or a word of a command never is.
WIDTH = 80


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("sites") / "demo"
    whole_demo(root, datetime.now(timezone.utc))
    return root


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("sites") / "hostile"
    rows = []
    for seed, (variable, transport) in enumerate(
        (variable, transport)
        for variable in ("write_bw", "read_bw")
        for transport in ("ucx", "ofi")
    ):
        fields = HOSTILE | {"transport": transport, "environ": f"{HOSTILE['environ']}-{transport}"}
        rows += daily(dropped(0.5, seed), perf_var=variable, **fields)
    rows += daily(dropped(0.5, 9), file_system="a " * 60 + "z", pattern="fpp")
    write_perflog(root / "perflogs", rows)
    for name in ("bands", "alerts", "systems"):
        (root / "config" / name).mkdir(parents=True)
    acknowledge(root / "config", file_system=HOSTILE["file_system"])
    return root


#: What was read and judged, by directory: all commands of a site print the same judgement.
KNOWN: dict[Path, Known] = {}
JUDGED: dict[tuple[Path, bool], JudgedSite] = {}


def known_of(
    *given: object, real: Callable[..., Known] = judging.known_of, **options: object
) -> Known:
    return KNOWN.get(Path.cwd()) or KNOWN.setdefault(Path.cwd(), real(*given, **options))


def judged(
    known: Known, options: object, with_power: bool, *_: object,
    real: Callable[..., JudgedSite] = judging._judged,
) -> JudgedSite:  # fmt: skip
    key = Path.cwd(), with_power
    return JUDGED.get(key) or JUDGED.setdefault(key, real(known, options, with_power))


def printed(root: Path, *command: str, terminal: bool) -> list[str]:
    """Return the lines that a command prints, called in this process."""
    ours, theirs = pty.openpty() if terminal else os.pipe()
    with ThreadPoolExecutor(1) as beside, pytest.MonkeyPatch.context() as patch:
        text = beside.submit(lambda: b"".join(_read(ours)))
        with os.fdopen(theirs, "w", encoding="utf-8") as stream:
            patch.chdir(root)
            for name, value in {"LINES": "24", "NO_COLOR": "1", "TERM": "dumb"}.items():
                patch.setenv(name, value)
            patch.setenv("COLUMNS", str(WIDTH))
            patch.setattr(judging, "known_of", known_of)
            patch.setattr(judging, "_judged", judged)
            patch.setattr(sys, "argv", ["iobands", *command])
            patch.setattr(sys, "stdout", stream)
            patch.setattr(sys, "stderr", stream)
            with pytest.raises(SystemExit):
                entry()
            stream.flush()
    return text.result().decode().replace("\r\n", "\n").splitlines()


def _read(descriptor: int) -> Iterator[bytes]:
    try:
        while chunk := os.read(descriptor, 1 << 16):
            yield chunk
    except OSError:  # the other end of a terminal is closed
        return
    finally:
        os.close(descriptor)


def label(root: Path) -> str:
    """Return the name of the last row of the digest."""
    found = printed(root, "status", "--format", "json", terminal=False)
    return re.findall(r'"label": ?"((?:[^"\\]|\\.)*)"', " ".join(found))[-1]


@pytest.mark.parametrize("terminal", [True, False], ids=["terminal", "pipe"])
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("name", ["demo", "hostile"])
def test_no_line_is_wider_than_eighty_columns(
    name: str, command: tuple[str, ...], terminal: bool, request: pytest.FixtureRequest
) -> None:
    root = request.getfixturevalue(name)
    if command == ("explain",):
        command = ("explain", label(root))
    lines = printed(root, *command, terminal=terminal)
    assert len(lines) > 1 or command == ("compare", "transport")
    # a monitor takes the first line of a digest as it is
    first = 0 if terminal or command[0] != "status" else 1
    wide = [line for line in lines[first:] if len(line) > WIDTH]
    assert not [line for line in wide if not is_a_word_of_a_command(line)]


@pytest.mark.parametrize(
    ("kind", "command"),
    [*product(("dumb", "xterm"), ("status", "alerts")), ("dumb", "targets")],
)
def test_a_narrow_terminal_of_any_kind_gets_narrow_lines(
    kind: str, command: str, demo: Path
) -> None:
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("4H", 24, 60, 0, 0))
    known = {name: os.environ[name] for name in os.environ.keys() - {"COLUMNS", "LINES"}}
    with ThreadPoolExecutor(1) as beside:
        text = beside.submit(lambda: b"".join(_read(ours)))
        subprocess.run(
            [sys.executable, "-m", "iobands", command],
            cwd=demo,
            env={**known, "TERM": kind, "NO_COLOR": "1"},
            stdout=theirs,
            check=False,
        )
        os.close(theirs)
    lines = re.sub(r"\x1b\[[0-9;]*m", "", text.result().decode()).splitlines()
    assert lines
    # one line says how to see what is left out
    wide = [line for line in lines if len(line) > 60 and not line.endswith(" status --all")]
    assert not [line for line in wide if not is_a_word_of_a_command(line)]


def is_a_word_of_a_command(line: str) -> bool:
    return line.lstrip().startswith(("iobands ", "reframe ", "'")) or line.endswith("\\")


@pytest.mark.parametrize("width", [40, 60, 80])
def test_folding_breaks_no_word(width: int) -> None:
    text = "Newest       52.6 GiB/s at 03:48: collapsed; 5 of 180 runs were lower, −45 % and 0.53 ×"
    lines = folded(text, width)
    assert max(map(len, lines)) <= width
    assert " ".join(" ".join(lines).split()) == " ".join(text.split())
    # the lines are below the text of their heading, and a number stays with its unit
    assert all(line.startswith(" " * 13) for line in lines[1:])
    assert not any(line.endswith(("52.6", "−45", "0.53")) for line in lines)
    assert folded("degraded since 18 Nov", 17) == ["degraded since", "  18 Nov"]


def test_a_folded_command_is_the_same_command() -> None:
    options = "-E 'file_system == \"a b\"' -S BenchioFPP.target=7 --system=made-up-site"
    line = f"To confirm: reframe -C config/site.py -c checks -R -r {options}"
    said, *command = folded(line, 40)
    assert said == "To confirm:"
    assert len(command) > 2
    assert max(map(len, command)) <= 40
    shell = "reframe() { printf '%s\\0' \"$@\"; }; " + "\n".join(command)
    done = subprocess.run(["sh", "-c", shell], capture_output=True, text=True, check=True)
    assert done.stdout.split("\0")[:-1] == [
        *("-C", "config/site.py", "-c", "checks", "-R", "-r", "-E", 'file_system == "a b"'),
        *("-S", "BenchioFPP.target=7", "--system=made-up-site"),
    ]


def test_a_sentence_about_a_program_is_no_command() -> None:
    for said in ("failed: reframe is not on PATH; install it", "aborted: iobands run has ended"):
        lines = folded(said, 24)
        assert len(lines) > 1
        assert " ".join(" ".join(lines).split()) == said


def test_a_column_continues_below_itself() -> None:
    long = "a" * 60
    rows = [("CHECK", "WRITE"), (f"{long} two three", "1 GiB/s")]
    assert [*blocks(rows, 76, right=(1,), indent="")] == [
        [f"{'CHECK':64}    WRITE"],
        [f"{long} two  1 GiB/s", "  three"],
    ]
    # on a narrow terminal a name stays whole
    rows = [("CHECK", "WRITE"), ("one two three four five", "1 GiB/s")]
    assert [*blocks(rows, 24, right=(1,), indent="")] == [
        ["CHECK", "      WRITE"],
        ["one two three four five", "      1 GiB/s"],
    ]
    # so does a name after other columns
    rows = [("AT", "CHANGE", "SUBJECT"), ("18 Nov", "−31 %", "one two three four five")]
    assert [*blocks(rows, 29, wrapped=(2,), indent="")] == [
        ["AT  CHANGE", "      SUBJECT"],
        ["18 Nov  −31 %", "      one two three four five"],
    ]
