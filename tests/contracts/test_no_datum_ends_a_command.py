"""No single bad datum ends a command: only the datum is lost, and all else is judged as before.

One system has a healthy series and a low one; another has an input that is replaced by hostile
bytes, extreme values, or a file that cannot be read.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from iobands.measure.run_directories import new_note
from iobands.model import CRITICAL, UNKNOWN, WARNING
from iobands.snapshot import ACKNOWLEDGE, Action, Snapshot, State
from iobands.snapshot.stored import to_json
from iobands.source.action_log import append
from iobands.views.digest import explanation
from tests.contracts.test_hostile_input import VALUES, bounded, changed, damaged
from tests.factory import (
    COLUMNS,
    NOW,
    ROW,
    case,
    daily,
    write_bands,
    write_perflog,
    write_report,
    write_session,
)
from tests.snapshot.read_back import from_json
from tests.views.sites import dropped, healthy, look
from tests.views.test_digest import text

RUNS = 40
CELLS = st.sampled_from(
    ["1e308", "1e-308", "-0", "9" * 400, "nan", "inf", "null", "", "../..", "\x1b[2J", "2066-01-01"]
) | VALUES.map(str)


@dataclass(frozen=True)
class Input:
    """A file of the other system, and the exit statuses if nothing else is wrong.

    WARNING is about a left-over run directory: the input is not used, and this is reported.
    """

    path: str
    is_json: bool = True
    unread: int = UNKNOWN
    damaged: int = WARNING


NOTE = "iobands-BenchioFPP-0123456789"
INPUTS = {
    "perflog": Input("perflogs/there/local/BenchioFPP.log", is_json=False),
    "run report": Input("perflogs/there/reports/run-report-0.json"),
    "bands": Input("bands/there.yaml", damaged=UNKNOWN),
    "actions": Input("alerts/there.jsonl"),
    "note of a run directory": Input(f"perflogs/there/leftovers/{NOTE}", unread=WARNING),
    "last session": Input("perflogs/last-session.json"),
}


#: Each example looks at a whole site.
few = settings(bounded, max_examples=max(12, bounded.max_examples // 40))


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a site in which each input is valid."""
    root = tmp_path_factory.mktemp("site")
    perflogs = root / "perflogs"
    low = daily(dropped(0.4, 2, runs=RUNS), file_system="low")
    write_perflog(perflogs, [*daily(healthy(RUNS)), *low])
    there = daily(healthy(RUNS, 3), system="there", file_system="there")
    write_perflog(perflogs, there, system="there")
    passed = {"result": "pass", "fail_phase": None, "fail_reason": None}
    values = {"there:local:write_bw": [1.5]}
    report = write_report(
        perflogs, [case(system="there", file_system="there", perfvalues=values, **passed)]
    )
    report.parent.rename(perflogs / "there" / "reports")
    bands = write_bands(root / "bands")
    bands.with_name("there.yaml").write_text(bands.read_text().replace('"here"', '"there"'))
    match = {"file_system": "there"}
    action = Action(
        ACKNOWLEDGE, NOW, "me", "known", (match,), since=NOW, until=NOW, direction="down"
    )
    append(root / "alerts", "there", [action])
    note = new_note(Path("/scratch"), "BenchioFPP", "slurm", "lustre /scratch").staying("busy", 1)
    replace(note, path=Path("/scratch", NOTE)).write(perflogs / "there" / "leftovers")
    write_session(perflogs, NOW)
    return root


@pytest.fixture(scope="module")
def calm(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the same site without the low series."""
    calm = tmp_path_factory.mktemp("calm") / "site"
    shutil.copytree(root, calm)
    write_perflog(calm / "perflogs", daily(healthy(RUNS)))
    site = looked_at(calm)
    assert (site.exit_status, site.alerts, len(site.leftovers)) == (WARNING, (), 1)
    return calm


@pytest.fixture(scope="module")
def expected(root: Path) -> dict[str, tuple[State, str, int, float | None]]:
    """Return the judgements without any fault."""
    found = judged(look(root))
    states = sorted((state.value, runs) for state, _, runs, _ in found.values())
    assert states == [("degraded", RUNS), ("healthy", RUNS)]
    return found


def judged(site: Snapshot) -> dict[str, tuple[State, str, int, float | None]]:
    """Return the judgements of the system without a fault."""
    return {
        str(each.key): (each.status.state, each.status.verdict, each.status.runs, each.status.value)
        for each in site.series
        if each.key.system == "here"
    }


def looked_at(root: Path) -> Snapshot:
    """Return the site after making each view of it."""
    site = look(root)
    assert text(site, every=True)
    assert from_json(to_json(site)) == site
    assert site.ledger.real == 0
    for each in site.series[:5]:
        assert explanation(site, each)
    return site


def injected(root: Path, path: Path, inject: Callable[[Path], object]) -> Snapshot:
    """Return the site with a fault at `path`, which is restored afterwards."""
    before = path.read_bytes()
    try:
        inject(path)
        return looked_at(root)
    finally:
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
        path.write_bytes(before)


@pytest.mark.parametrize("name", INPUTS)
@few
@given(data=st.data())
def test_hostile_bytes_cost_what_they_are(
    root: Path, expected: object, name: str, data: st.DataObject
) -> None:
    path = root / INPUTS[name].path
    content = path.read_bytes()
    hostile = st.binary(max_size=200) | damaged(content)
    if INPUTS[name].is_json:
        hostile |= changed(content.decode())
    drawn = data.draw(hostile)
    site = injected(root, path, lambda path: path.write_bytes(drawn))
    assert judged(site) == expected
    assert site.exit_status == CRITICAL


@few
@given(number=st.integers(1, RUNS), column=st.sampled_from(sorted(ROW)), cell=CELLS)
def test_one_cell_costs_one_sample(
    root: Path, expected: object, number: int, column: str, cell: str
) -> None:
    path = root / INPUTS["perflog"].path
    header, *lines = path.read_text().splitlines()
    cells = lines[number - 1].split("|")
    cells[COLUMNS.split("|").index(column)] = cell.replace("|", "").replace("\n", "")
    lines[number - 1] = "|".join(cells)
    content = "\n".join([header, *lines, ""]).encode(errors="replace")
    site = injected(root, path, lambda path: path.write_bytes(content))
    assert judged(site) == expected
    assert site.exit_status == CRITICAL
    assert max(each.status.runs for each in site.series if each.key.system != "here") >= RUNS - 1


def unreadable(path: Path) -> None:
    path.unlink()
    path.symlink_to("/proc/self/mem")  # reading it at 0 gives EIO


@pytest.mark.parametrize("name", INPUTS)
def test_an_input_that_cannot_be_read_is_named(
    root: Path, calm: Path, expected: object, name: str
) -> None:
    each = INPUTS[name]
    site = injected(root, root / each.path, unreadable)
    assert judged(site) == expected
    assert site.exit_status == CRITICAL
    site = injected(calm, calm / each.path, unreadable)
    assert site.exit_status == each.unread
    why = "Input/output error" if each.unread == UNKNOWN else "unreadable note"
    (said,) = (
        *(f"{alert.subject} {alert.reason}" for alert in site.alerts),
        *(f"{left.path} {left.why}" for left in site.leftovers if left.why != "busy"),
    )
    assert str(calm / each.path) in said
    assert why in said


@pytest.mark.parametrize("name", INPUTS)
def test_an_input_that_is_no_text_is_named(calm: Path, name: str) -> None:
    each = INPUTS[name]
    site = injected(calm, calm / each.path, lambda path: path.write_bytes(b"\xff\xff\n"))
    assert site.exit_status == each.damaged
    said = (
        *(alert.reason for alert in site.alerts),
        *(str(rejected.path) for rejected in site.rejected),
        *(str(left.path) for left in site.leftovers),
    )
    assert any(str(calm / each.path) in text for text in said)
