"""Figures: the same data gives the same file, and gaps in the data do not squeeze them."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import matplotlib as mpl

from iobands.bands import Epoch
from iobands.bands.file import write_epoch
from iobands.model import slug
from iobands.views.digest import chosen
from iobands.views.figures import evidence, time_series
from tests.factory import NOW, daily, write_bands, write_perflog
from tests.views.sites import dropped, look, site


def test_a_series_and_a_shared_alert(tmp_path: Path) -> None:
    found = site(tmp_path, "a fpp", "a ssf", "b fpp", factors={"a fpp": 0.6, "a ssf": 0.6})
    one = evidence(found, found.series[0])
    assert b"evidence in nats" in one
    for name in ("quartiles", "median", "floor"):  # in the legend, once
        assert one.decode().count(f">{name}<") == 1
    assert one == evidence(found, found.series[0])
    assert evidence(found, found.series[1], "png").startswith(b"\x89PNG")
    (alert,) = chosen(found, "a writes")
    both = evidence(found, alert).decode()
    assert "a fpp write_bw: degraded" in both
    assert "a ssf write_bw: degraded" in both
    assert f"Alert {alert.number} a writes: degraded" in both


def test_a_matplotlibrc_changes_neither_times_nor_text(tmp_path: Path) -> None:
    found = site(tmp_path, "a fpp", factors={})
    plain = evidence(found, found.series[0])
    with mpl.rc_context({"timezone": "Pacific/Auckland", "text.usetex": True}):
        assert evidence(found, found.series[0]) == plain


def test_the_label_of_a_late_change_is_left_of_its_line(tmp_path: Path) -> None:
    write_perflog(tmp_path / "perflogs", daily(dropped(0.4, after=7)))
    found = look(tmp_path)
    (series,) = found.series
    drawn = evidence(found, series).decode()
    (place,) = re.findall(r"text-anchor: (\w+)[^>]*>0.4 ×<", drawn)
    assert place == "end"


def test_a_link_among_the_figures_is_replaced_and_not_followed(iobands, tmp_path: Path) -> None:
    write_perflog(tmp_path / "perflogs", daily([1.0] * 3))
    figure = tmp_path / "figures" / f"{slug(look(tmp_path).series[0].key)}.svg"
    (tmp_path / "figures").mkdir()
    figure.symlink_to(tmp_path / "theirs")
    (tmp_path / "theirs").write_text("theirs", encoding="utf-8")
    assert iobands("report", "--format", "svg", "figures").returncode == 0
    assert (tmp_path / "theirs").read_text(encoding="utf-8") == "theirs"
    assert not figure.is_symlink()
    assert b"<svg" in figure.read_bytes()


def test_the_figure_of_a_series_that_was_retired_is_removed(iobands, tmp_path: Path) -> None:
    write_perflog(tmp_path / "perflogs", daily([1.0] * 3))
    figure = tmp_path / "figures" / f"{slug(look(tmp_path).series[0].key)}.svg"
    for words, is_there in (
        ("report", True),
        ("retire disk --reason gone", True),
        ("report", False),
    ):
        more = ("--format", "svg", "figures") if words == "report" else ()
        assert iobands(*words.split(), *more).returncode == 0
        assert figure.exists() == is_there


def test_a_figure_explains_its_marks_and_draws_no_line_across_a_long_silence(
    tmp_path: Path,
) -> None:
    rows = daily([12345678.0] * 3, last=2000) + daily([12345678.0] * 3)
    write_perflog(tmp_path / "perflogs", rows)
    (series,) = look(tmp_path).series
    drawn = time_series([series], NOW, "svg").decode()
    assert ">no band<" in drawn  # in the legend
    assert ">12000000<" in drawn  # and not 1e7 above the axis
    (line,) = re.findall(r'<path d="([^"]*)"[^>]*style="[^"]*stroke: #aaaaaa', drawn)
    assert line.count("M") == 2  # three runs, the silence, three runs


def test_figures_of_series_that_are_gone_are_removed_and_nothing_else(
    iobands, tmp_path: Path
) -> None:
    figures = tmp_path / "figures"
    figures.mkdir()
    ours = {"here-2-local-gnu-0123abcd.svg", "here-local-mine.svg", "here-local-0123abcd.png"}
    for name in ours:
        (figures / name).write_text("", encoding="utf-8")
    names = []
    for environ in ("old", "new"):
        write_perflog(tmp_path / "perflogs", daily([1.0] * 3, environ=environ))
        names.append(f"{slug(look(tmp_path).series[0].key)}.svg")
        assert iobands("report", "--format", "svg", "figures").returncode == 0
    assert {path.name for path in figures.iterdir()} == {*ours, names[1]}


def test_without_a_sample_there_is_none(tmp_path: Path) -> None:
    write_perflog(tmp_path / "perflogs", daily([None]))
    found = look(tmp_path)
    assert evidence(found, found.series[0]) is None


def test_a_learned_band_alone_is_hatched(tmp_path: Path) -> None:
    write_perflog(tmp_path / "perflogs", daily([1 + n % 5 / 10 for n in range(80)]))
    directory = tmp_path / "bands"
    write_bands(directory)
    write_epoch(directory, "here", Epoch("anew", NOW - timedelta(days=40.5), "s", ()))
    found = look(tmp_path)
    (series,) = found.series
    assert len(series.verdicts.bands) == 2
    assert len(re.findall(r"url\(#h", evidence(found, series).decode())) == 1


def test_a_long_silence_does_not_squeeze_the_figure(tmp_path: Path) -> None:
    found = replace(site(tmp_path, "a fpp", factors={}), now=NOW + timedelta(days=3000))
    drawn = evidence(found, found.series[0]).decode()
    assert "2026" in drawn
    assert not re.search(r"20(27|28|29|3\d)", re.sub(r"<(path|clipPath|use)[^>]*>", "", drawn))
