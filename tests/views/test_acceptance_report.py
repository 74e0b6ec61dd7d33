"""What the report on an acceptance says of its runs."""

from __future__ import annotations

from iobands.views import acceptance


def test_what_some_runs_did_not_record_has_no_unit() -> None:
    runs = [{"fullness_percent": 60.5}, {"fullness_percent": None}, {}]
    assert acceptance._values(runs, "fullness_percent") == "not recorded in 2; 60.5 % in 1"
    assert acceptance._values(runs[1:], "fullness_percent") == "not recorded"
    many = [{"load_per_node": each / 4} for each in range(9)]
    assert acceptance._values([*many, {}], "load_per_node") == "0 to 2; not recorded in 1"


def test_of_one_run_it_says_does_and_of_several_do() -> None:
    assert [acceptance._count(runs) for runs in (1, 2)] == ["does not count", "do not count"]
