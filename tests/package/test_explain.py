"""What `iobands explain` tells, of perflogs in which it is known what moved."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest

from iobands.reporting.explain import chosen, explain, explanation_text
from iobands.reporting.figures import evidence
from iobands.reporting.format import nearest
from iobands.model.series import slug
from iobands.status.survey import Survey, take_survey
from tests.package.conftest import Command
from tests.package.factory import NOW, daily, write_perflog
from tests.package.test_states import dropped, healthy

SLOW = 15


def site(tmp_path: Path, moving: tuple[str, ...], **since: object) -> Survey:
    """Survey two file systems with two series each; those named drop by 30 % 15 runs ago."""
    rows = []
    for seed, name in enumerate(("a fpp", "a ssf", "b fpp", "b ssf")):
        file_system, pattern = name.split()
        fields = {"file_system": file_system, "pattern": pattern}
        values = dropped(120, SLOW, 0.7 if name in moving else 1.0, seed)
        rows += daily(values[:-SLOW], last=0.25 + SLOW, **fields)
        rows += daily(values[-SLOW:], **fields, **since)
    write_perflog(tmp_path / "perflogs", rows)
    return take_survey(tmp_path / "perflogs", tmp_path / "bands", now=NOW)


def told(found: Survey, label: str) -> str:
    (series,) = chosen(found, label)
    return explanation_text(explain(found, series), found)


def test_a_whole_file_system_is_named(tmp_path: Path) -> None:
    text = told(site(tmp_path, ("a fpp", "a ssf")), "a ssf")
    moved, still = text.split("Moved at the same time")[1].split("Did not move")
    assert "a fpp write_bw: down since 2026-11-0" in moved
    assert "2 series of other file systems, as far as can be told: b " in still
    assert "node list: vm" in still
    assert "all its series moved" in text.splitlines()[-1]


def test_a_series_on_its_own(tmp_path: Path) -> None:
    text = told(site(tmp_path, ("a fpp",)), "a fpp write_bw")
    assert "nothing that is recorded" in text
    assert "1 series of the same file system, as far as can be told: a ssf write_bw" in text
    assert "this series alone" in text.splitlines()[-1]


def test_several_file_systems_point_to_what_they_share(tmp_path: Path) -> None:
    text = told(site(tmp_path, ("a fpp", "b fpp")), "a fpp write_bw")
    assert "clients, network" in text.splitlines()[-1]


def test_a_series_that_leans_the_same_way_did_not_stand_still(tmp_path: Path) -> None:
    # one fell by half, another by a tenth, for too few runs to be an alarm; the third stands still
    rows = []
    for seed, (pattern, factor) in enumerate((("fpp", 0.5), ("ssf", 0.9), ("fpn", 1.0))):
        rows += daily(dropped(120, 6, factor, seed), pattern=pattern)
    write_perflog(tmp_path / "perflogs", rows)
    found = take_survey(tmp_path / "perflogs", tmp_path / "bands", now=NOW)
    (series,) = chosen(found, "fpp")
    (kin,) = explain(found, series).moved_kin
    assert (kin.series.label, kin.change) == ("disk ssf write_bw", None)
    assert (kin.direction, kin.runs) == ("down", 6)
    assert kin.leaning is not None
    assert kin.leaning.low < 0.9 < kin.leaning.high < 0.97
    assert "disk ssf write_bw: no alarm of its own, but 0.9" in told(found, "fpp")


def test_what_moved_the_other_way_is_no_common_cause(tmp_path: Path) -> None:
    rows = []
    for seed, (name, factor) in enumerate((("a", 0.6), ("b", 1.6))):
        rows += daily(dropped(120, SLOW, factor, seed), file_system=name)
    write_perflog(tmp_path / "perflogs", rows)
    found = take_survey(tmp_path / "perflogs", tmp_path / "bands", now=NOW)
    text = told(found, "a fpp")
    assert "b fpp write_bw: up since" in text
    assert "no other went down" in text.splitlines()[-1]


def test_an_open_alarm_tells_how_far_it_has_recovered(tmp_path: Path) -> None:
    text = told(site(tmp_path, ("a fpp",)), "a fpp write_bw")
    assert "Recovery    0.0 of the 8 that close the alarm" in text
    assert "of the level before the change" in text


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"fullness_percent": 97}, "fullness in %: 12.5 before (12.5 to 12.5), 97 since"),
        ({"job_nodelist": "other"}, "node list: vm before, other since"),
        ({"version": "4.11"}, "version of ReFrame: 4.10.4 before, 4.11 since"),
    ],
)
def test_what_changed_with_it_is_named_first(
    tmp_path: Path, fields: dict[str, object], said: str
) -> None:
    text = told(site(tmp_path, ("a fpp",), **fields), "a fpp write_bw")
    moved = text.split("Moved at the same time")[1].split("Did not move")[0]
    assert said in moved
    assert said.split(":", maxsplit=1)[0] in text.splitlines()[-1]


def test_what_creeps_did_not_move_with_it(tmp_path: Path) -> None:
    rows = []
    for day, value in enumerate(reversed(dropped(120, SLOW, 0.7))):
        rows += daily([value], last=day + 0.25, fullness_percent=80 - 0.05 * day)
    write_perflog(tmp_path / "perflogs", rows[::-1])
    found = take_survey(tmp_path / "perflogs", tmp_path / "bands", now=NOW)
    text = told(found, "write_bw")
    # 15 days of 0.05 beyond, where the 105 days before span 5
    assert "fullness in %: 79.7, about as before (74.3 to 79)" in text.split("Did not move")[1]
    assert "fullness" not in text.splitlines()[-1]


def test_of_many_names_the_nearest_are_told() -> None:
    names = [f"disk{number} fpp write_bw" for number in range(500)]
    lines = nearest(names, "disk321 fpp").splitlines()
    assert lines[1] == "  disk321 fpp write_bw"
    assert len(lines) == 32
    assert lines[-1] == "  and 470 more; `iobands status` names every series"
    assert nearest(["a", "b"], "x") == "\n  a\n  b"


def test_what_it_shares_with_others_is_told(tmp_path: Path) -> None:
    text = told(site(tmp_path, ("a fpp", "a ssf")), "a ssf")
    assert "It has fallen together with others: all a, since 2026-11-0" in text
    assert text.splitlines()[-1].endswith("; for all that went with it: iobands explain 'all a'")


def test_a_node_list_that_always_differs_did_not_move(tmp_path: Path) -> None:
    rows = []
    for day, value in enumerate(reversed(dropped(120, SLOW, 0.7))):
        rows += daily([value], last=day + 0.25, job_nodelist=f"n{day}")
    write_perflog(tmp_path / "perflogs", rows[::-1])
    found = take_survey(tmp_path / "perflogs", tmp_path / "bands", now=NOW)
    still = told(found, "write_bw").split("Did not move")[1]
    assert "node list: differs from run to run" in still


def test_rank_power_and_the_past(tmp_path: Path) -> None:
    values = healthy(150)
    values[80:100] = [value * 0.5 for value in values[80:100]]
    values[-1] = float(np.sort(values[:-1])[29] * 1.000001)  # above thirty of the earlier runs
    write_perflog(tmp_path / "perflogs", daily(values))
    text = told(take_survey(tmp_path / "perflogs", tmp_path / "bands", now=NOW), "write_bw")
    assert "30 of 149 earlier runs were lower" in text
    assert "a drop of 30 % would be seen after about" in text
    assert "Earlier     down from 2026-" in text
    assert "(recovered): 0.5" in text


def test_how_a_series_is_called(tmp_path: Path) -> None:
    found = site(tmp_path, ())
    labels = [each.label for each in found.series]
    assert [each.label for each in chosen(found, "FPP")] == ["a fpp write_bw", "b fpp write_bw"]
    assert [each.label for each in chosen(found, "write_bw a ssf")] == ["a ssf write_bw"]
    assert [each.label for each in chosen(found, slug(found.series[2].key))] == [labels[2]]
    assert chosen(found, "c") == chosen(found, " ") == []
    # what the labels need not say: tool, interface
    assert [each.label for each in chosen(found, "benchio posix FPP a")] == ["a fpp write_bw"]


def test_a_series_without_samples(tmp_path: Path) -> None:
    write_perflog(tmp_path / "perflogs", daily([None]))
    found = take_survey(tmp_path / "perflogs", tmp_path / "bands", now=NOW)
    assert "no sample" in told(found, "write_bw")


def test_figures_of_the_evidence(tmp_path: Path) -> None:
    found = site(tmp_path, ("a fpp",))
    drawn = evidence(found.series[0], NOW).decode()
    assert "evidence in nats" in drawn
    assert drawn == evidence(found.series[0], NOW).decode()
    assert evidence(found.series[1], NOW, "png").startswith(b"\x89PNG")


def test_a_long_silence_does_not_squeeze_the_figure(tmp_path: Path) -> None:
    found = site(tmp_path, ())
    late = NOW + timedelta(days=3000)
    drawn = evidence(found.series[0], late).decode()
    assert "2026" in drawn
    assert not re.search(r"20(27|28|29|3\d)", re.sub(r"<(path|clipPath|use)[^>]*>", "", drawn))


def test_the_command(tmp_path: Path, iobands: Command) -> None:
    site(tmp_path, ("a fpp",))
    done = iobands("explain", "a fpp", "--figure", "f.svg")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("a fpp write_bw: degraded since 2026-11-0")
    assert (tmp_path / "f.svg").read_text().startswith("<?xml")
    several = iobands("explain", "fpp")
    assert several.returncode == 3
    assert "  a fpp write_bw\n  b fpp write_bw" in several.stderr
    assert iobands("explain", "a fpp", "--figure", "f.pdf").returncode == 3
