"""Advice is given where paired runs support it, and withdrawn where they no longer do."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from iobands.judge.advise import advise, fewest_pairs
from iobands.model import SeriesKey
from iobands.snapshot import Advice, Conclusion, History
from iobands.source.perflog import read_perflogs
from iobands.views.published import advice_lines, advice_section
from iobands.views.writing import written
from tests.factory import daily, write_perflog

SMALL = [1.0, 1.02, 0.99, 1.01, 0.98, 1.03] * 10


def histories(root: Path, **rates: list[float]) -> dict[SeriesKey, History]:
    """Return one series for each named hint, with the newest runs on the same day."""
    rows = [row for hints, values in rates.items() for row in daily(values, hints=hints)]
    write_perflog(root, rows)
    return read_perflogs(root).histories


def only(root: Path, **rates: list[float]) -> Advice:
    ((advised,), cases) = advise(histories(root, **rates))
    assert not cases
    (advice,) = advised.advice
    assert advice.setting == "hints"
    return advice


def test_twice_as_fast_is_better_by_two(tmp_path: Path) -> None:
    noise = SMALL[:12]
    found = only(tmp_path, on=[2 * value for value in noise], off=noise)
    assert (found.finding, found.key.hints, found.other.hints) == (Conclusion.BETTER, "on", "off")
    assert found.evidence.ratio == pytest.approx(2)
    assert found.evidence.interval == pytest.approx((2, 2))
    assert found.evidence.pairs == 12


def test_too_few_pairs_say_how_many_are_missing(tmp_path: Path) -> None:
    # one comparison, looked at three times: 2 / 2**7 is the first below 0.05 / 3
    assert fewest_pairs(1 - 0.05 / 3) == 7
    found = only(tmp_path, on=[2.0] * 4, off=[1.0] * 4)
    assert (found.finding, found.more, found.evidence.interval) == (Conclusion.TOO_FEW, 3, None)


def test_what_only_the_older_half_supports_is_withdrawn(tmp_path: Path) -> None:
    older, newer = SMALL[:30], SMALL[:30]
    faster = [1.5 * value for value in older]
    found = only(tmp_path, on=[*faster, *newer[::-1]], off=[*older, *newer])
    assert (found.finding, found.key.hints) == (Conclusion.WITHDRAWN, "on")
    assert found.before is not None
    assert found.before.ratio == pytest.approx(1.5)
    assert found.evidence.ratio == pytest.approx(1, abs=0.02)


def test_the_newer_half_may_turn_it_round(tmp_path: Path) -> None:
    noise = SMALL[:30]
    found = only(
        tmp_path, on=[*(2 * v for v in noise), *(v / 2 for v in noise)], off=[*noise, *noise]
    )
    assert (found.finding, found.key.hints) == (Conclusion.BETTER, "off")
    assert found.evidence.ratio == pytest.approx(2)


def test_a_difference_within_the_margin_is_none_and_a_wide_interval_shows_nothing(
    tmp_path: Path,
) -> None:
    found = only(tmp_path, on=[1.01 * value for value in SMALL[::-1]], off=SMALL)
    assert found.finding is Conclusion.NO_DIFFERENCE
    rates = np.random.default_rng(1).normal(0, 1.5, (2, 20))
    on, off = np.exp(rates).tolist()
    found = only(tmp_path, on=on, off=off)
    assert found.finding is Conclusion.TOO_FEW
    assert found.more is not None
    assert found.more > 20


def test_alike_settings_differ_by_chance_in_few_sites(tmp_path: Path) -> None:
    draw = np.random.default_rng(5)
    names = ("a", "b", "c", "d")
    template = histories(tmp_path, **{name: [1.0] * 40 for name in names})
    sites, wrong = 60, 0
    for _ in range(sites):
        drawn = {
            key: replace(history, values=np.exp(0.2 * draw.standard_normal(40)))
            for key, history in template.items()
        }
        advised, _ = advise(drawn)
        wrong += any(
            advice.finding in {Conclusion.BETTER, Conclusion.WITHDRAWN}
            for each in advised
            for advice in each.advice
        )
    # 3 are expected at 5 %; 8 or more have a probability below 1 %
    assert wrong < 8


def test_the_best_file_system_comes_first_and_cases_have_their_own_ratio(tmp_path: Path) -> None:
    case = {"case": "archer2-stripe-size fpp", "perf_var": "write_ratio", "perf_unit": "1"}
    rows = [
        *daily(SMALL[:12], file_system="slow"),
        *daily([3 * value for value in SMALL[:12]], file_system="fast"),
        *daily([0.5, 0.51] * 8, **case),
    ]
    write_perflog(tmp_path, rows)
    (advised,), (of_case,) = advise(read_perflogs(tmp_path).histories)
    assert [key.file_system for key in advised.best] == ["fast", "slow"]
    assert (of_case.finding, of_case.evidence.pairs) == (Conclusion.WORSE, 16)
    text = "\n".join(advice_lines([advised], [of_case]))
    assert "fast rather than slow: 3.00 × (3.00–3.00), 12 paired runs" in text
    assert "archer2-stripe-size fpp, write on disk: worse" in text


def test_advice_on_a_transport_says_to_look_at_the_whole_program(tmp_path: Path) -> None:
    rows = [
        *daily([2 * value for value in SMALL[:12]], transport="ucx"),
        *daily(SMALL[:12], transport="ofi"),
    ]
    write_perflog(tmp_path, rows)
    found, _ = advise(read_perflogs(tmp_path).histories)
    text = "\n".join(advice_lines(found, []))
    assert "transport ucx rather than ofi: 2.00 ×" in text
    assert "a transport carries all messages, so compare the run time of the whole program" in text
    hints = only(tmp_path / "hints", on=[2.0] * 12, off=[1.0] * 12)
    assert "whole program" not in "\n".join(advice_lines([replace(found[0], advice=(hints,))], []))


def test_a_sweep_has_the_best_stripe_count_of_each_size_and_direction(tmp_path: Path) -> None:
    case = {"case": "bulk-lustre-stripe-counts", "pattern": "ssf"}
    best = {(1, "write_bw"): 4, (1, "read_bw"): 1, (100, "write_bw"): 16, (100, "read_bw"): 16}
    rows = [
        row
        for (gib, variable), fastest in best.items()
        for count in (1, 4, 16)
        for row in daily(
            [(3 if count == fastest else 1) * value for value in SMALL[:12]],
            stripe_count_asked=count, gib=gib, perf_var=variable, **case,
        )
    ]  # fmt: skip
    write_perflog(tmp_path, rows)
    found, _ = advise(read_perflogs(tmp_path).histories)
    assert {
        (each.best[0].gib, each.best[0].variable): each.best[0].stripe_count_asked for each in found
    } == best
    text = "\n".join(advice_lines(found, []))
    assert "write, posix, 4 processes on 1 node, a file of 100 GiB" in text
    # the measurements of a case are not alternative settings, so there is no advice
    write_perflog(tmp_path, daily([1.0] * 9, stripe_count_asked=1, case="cray-strided 10000B"))
    assert advise(read_perflogs(tmp_path).histories) == ([], [])


def test_what_is_compared_on_two_partitions_has_two_titles(tmp_path: Path) -> None:
    rows = [
        row
        for partition in ("cpu", "gpu")
        for hints, level in (("on", 3), ("off", 2))
        for row in daily([level * v for v in SMALL[:12]], partition=partition, hints=hints)
    ]
    write_perflog(tmp_path, rows)
    found, _ = advise(read_perflogs(tmp_path).histories)
    title = "File per process (FPP), write, posix, 4 processes on 1 node"
    titles = [line for line in advice_lines(found, []) if line.startswith("File")]
    assert titles == [f"{title}, partition=cpu", f"{title}, partition=gpu"]
    header, one, two = written(advice_section("x", found, []), "csv").splitlines()
    assert header.startswith("Section,On,")
    assert one.startswith(f'"Settings compared on x: {title}, partition=cpu",disk,hints,')
    assert two.startswith(f'"Settings compared on x: {title}, partition=gpu",disk,hints,')
    of_one, _ = advise({key: each for key, each in read_perflogs(tmp_path).histories.items()
                        if key.partition == "cpu"})  # fmt: skip
    assert written(advice_section("x", of_one, []), "csv").startswith("On,Setting,")
