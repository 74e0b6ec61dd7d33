"""IO500's result file, captured from a run of two processes, limited to a second a phase."""

import re
from pathlib import Path

import pytest

from checks.tools.io500.result import ResultError, read_result, unproven

TEXT = (Path(__file__).parent / "data" / "io500" / "result.txt").read_text(encoding="utf-8")


def test_the_values_of_all_phases():
    found = read_result(TEXT)
    assert found.processes == 2
    assert len(found.values) == 3 + 12
    # By another route: in the order of the file.
    scores = [float(score) for score in re.findall(r"^score +=\s+(\S+)", TEXT, re.MULTILINE)]
    assert found.values["ior_easy_write"] == scores[0]
    assert found.values["mdtest_easy_write"] == scores[1]
    # IO500's score is the geometric mean of its scores for bandwidth and metadata.
    score, bandwidth, metadata = (
        found.values[f"io500_{name}"] for name in ("score", "bandwidth", "metadata")
    )
    assert score == pytest.approx((bandwidth * metadata) ** 0.5, rel=1e-5)


def test_a_limited_run_breaks_the_rules_of_length_alone():
    found = read_result(TEXT)
    assert found.invalid[0] == "stonewall-time 1s != 300s"
    assert unproven(found, 2, limited=True) == []
    assert "invalid by IO500's rules: stonewall-time 1s != 300s" in unproven(
        found, 2, limited=False
    )


def test_a_run_that_breaks_no_rule():
    kept = [line for line in TEXT.splitlines() if not line.startswith("; ERROR")]
    valid = "\n".join(kept).replace(" [INVALID]", "")
    assert unproven(read_result(valid), 2, limited=False) == []


def test_another_broken_rule_is_reported():
    broken = TEXT.replace("[find]", "; ERROR INVALID Found 3 errors in the data\n[find]")
    assert unproven(read_result(broken), 2, limited=True) == [
        "invalid by IO500's rules: Found 3 errors in the data"
    ]


def test_another_number_of_processes_is_reported():
    assert unproven(read_result(TEXT), 4, limited=True) == ["processes requested: 4, in effect: 2"]


@pytest.mark.parametrize("rate", ["0.000000", "-1.0", "nan", "inf"])
def test_a_rate_that_cannot_be_is_reported(rate):
    wrong = re.sub(r"(\[find\][^[]*?score += )\S+", rf"\g<1>{rate}", TEXT)
    assert unproven(read_result(wrong), 2, limited=True) == [f"find is {float(rate)}"]


@pytest.mark.parametrize("end", ["[SCORE]", "[mdtest-hard-read]"])
def test_a_run_that_did_not_end_has_no_result(end):
    with pytest.raises(ResultError, match="not the result of a complete run"):
        read_result(TEXT[: TEXT.index(end)])


def test_what_is_no_result_is_reported():
    with pytest.raises(ResultError):
        read_result("no such thing")
