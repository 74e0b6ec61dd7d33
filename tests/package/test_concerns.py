"""What needs attention is said once for all that share a reason."""

from __future__ import annotations

from pathlib import Path

from iobands.reporting.concerns import Concern, concerns, skipped
from iobands.status.survey import take_survey
from tests.package.acting_site import levels
from tests.package.factory import NOW, case, daily, write_bands, write_perflog, write_report


def found(site: Path) -> list[Concern]:
    return concerns(take_survey(site / "perflogs", site / "bands", now=NOW))


def test_nothing_to_say_of_what_is_well(tmp_path: Path) -> None:
    write_perflog(tmp_path / "perflogs", daily([1.5]))
    assert found(tmp_path) == []


def test_series_with_one_reason_are_one_concern(tmp_path: Path) -> None:
    lines = [row for n in range(6) for row in daily([None], file_system=f"fs{n}")]
    write_perflog(tmp_path / "perflogs", lines)
    (concern,) = found(tmp_path)
    assert concern.names == tuple(f"fs{n} fpp write_bw" for n in range(6))
    assert concern.who == "fs0 fpp write_bw, fs1 fpp write_bw, fs2 fpp write_bw and 3 more"
    assert (concern.word, concern.why) == (
        "no data",
        "the run of 2026-11-20 19:30 failed in sanity",
    )


def test_four_names_are_all_said(tmp_path: Path) -> None:
    lines = [row for n in range(4) for row in daily([None], file_system=f"fs{n}")]
    write_perflog(tmp_path / "perflogs", lines)
    assert found(tmp_path)[0].who.count(",") == 3


def test_no_data_comes_before_collapsed_and_that_before_checks_that_failed(tmp_path: Path) -> None:
    rows = daily([1.5, 0.1]) + daily([None], file_system="lost")
    write_perflog(tmp_path / "perflogs", rows)
    write_bands(tmp_path / "bands")
    name = "Ior %file_system=x %stripe_count_asked=null %transport=default %hints=fast"
    write_report(tmp_path / "perflogs", [case(display_name=name, file_system="x")])
    no_data, collapsed, failed = found(tmp_path)
    assert (no_data.names, no_data.word) == (("lost fpp write_bw",), "no data")
    # the floor of 1 to 2 GiB/s is 1 × (1/2)^1.5 = 0.354
    assert collapsed.why == "0.1 GiB/s is under the floor of 0.354 GiB/s"
    assert failed.names == ("Ior %file_system=x %hints=fast",)
    assert failed.why == "on here:local in setup, 2026-11-21 01:30: oserror: no such file system"


def test_a_level_that_has_fallen_is_not_told_as_a_collapse_too(tmp_path: Path) -> None:
    write_perflog(tmp_path / "perflogs", daily(levels((100, 1), (20, 0.3))))
    assert [each.word for each in found(tmp_path)] == ["degraded"]


def test_many_collapses_of_a_file_system_are_told_as_its_own(tmp_path: Path) -> None:
    patterns = {"ssf": 0.2, "fpp": 0.1, "fpn": 0.3, "serial": 0.25}
    rows = [
        row
        for file_system in ("disk", "scratch")
        for pattern, value in patterns.items()
        # of scratch one series is well
        for row in daily(
            [1.5, 1.5 if (file_system, pattern) == ("scratch", "fpn") else value],
            file_system=file_system,
            pattern=pattern,
        )
    ]
    write_perflog(tmp_path / "perflogs", [*rows, *daily([1.5], pattern="fpp-new")])
    write_bands(tmp_path / "bands")
    collapsed = [each for each in found(tmp_path) if each.word == "collapsed"]
    told, *others = collapsed
    assert (told.names, told.why) == (
        ("disk",),
        "4 of 5 series, the lowest disk fpp write_bw: 0.1 GiB/s is under the floor of 0.354 GiB/s",
    )
    assert {each.names for each in others} == {
        (f"scratch {pattern} write_bw",) for pattern in ("fpp", "serial", "ssf")
    }


def test_a_collapse_of_long_ago_has_its_day(tmp_path: Path) -> None:
    write_perflog(tmp_path / "perflogs", daily([1.5, 0.1], last=6.25))
    write_bands(tmp_path / "bands")
    said = [(each.word, each.why) for each in found(tmp_path)]
    assert ("no data", "the newest sample is 6 days old") in said
    assert ("collapsed", "0.1 GiB/s on 2026-11-14 is under the floor of 0.354 GiB/s") in said


def test_what_is_not_installed_is_no_fault_and_said_once(tmp_path: Path) -> None:
    write_perflog(tmp_path / "perflogs", daily([1.5]))
    why = "not installed: ior: put it on PATH"
    names = ["IorFPP %file_system=disk", "IorFPP %file_system=memory", "IorSSF %api=posix"]
    cases = [
        case(
            display_name=name,
            tool="ior",
            result="skip",
            fail_phase=None,
            fail_reason=None,
            skip_reason=why,
        )
        for name in names
    ]
    write_report(tmp_path / "perflogs", cases)
    survey = take_survey(tmp_path / "perflogs", tmp_path / "bands", now=NOW)
    assert concerns(survey) == []
    assert survey.exit_status == 0
    assert skipped(survey) == [
        Concern(("IorFPP", "IorSSF"), "not installed", "ior: put it on PATH")
    ]


def test_a_skip_without_a_reason_says_so(tmp_path: Path) -> None:
    write_perflog(tmp_path / "perflogs", daily([1.5]))
    write_report(tmp_path / "perflogs", [case(tool="ior", display_name="Ior", result="skip")])
    survey = take_survey(tmp_path / "perflogs", tmp_path / "bands", now=NOW)
    assert skipped(survey) == [Concern(("Ior",), "skipped", "skip")]


def test_a_series_whose_program_is_gone_has_no_data(tmp_path: Path) -> None:
    write_perflog(tmp_path / "perflogs", daily([1.5], last=2))
    gone = case(result="skip", fail_reason=None, skip_reason="not installed: ior: put it on PATH")
    write_report(tmp_path / "perflogs", [gone])
    (concern,) = found(tmp_path)
    assert concern.word == "no data"
    assert concern.why.endswith("was skipped: not installed: ior: put it on PATH")
