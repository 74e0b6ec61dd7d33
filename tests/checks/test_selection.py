"""What ReFrame users do first: list, select, and mistype."""

import pytest

from tests.site_copy import copy_suite


def listed(run):
    assert run.returncode == 0, run.stdout + run.stderr
    return [line for line in run.stdout.splitlines() if line.startswith("- ")]


def test_the_local_machine_has_each_pattern_on_each_file_system(site_copy):
    lines = listed(site_copy.reframe("--system=local", "-l"))
    assert [line.split()[1:3] for line in lines] == [
        [check, f"%file_system={file_system}"]
        for check in ("BenchioSerial", "BenchioFPP", "BenchioFPN", "BenchioSSF")
        for file_system in ("disk", "memory")
    ]


@pytest.mark.parametrize(
    ("arguments", "number"),
    [
        # 5 file systems × 2 stripe counts × 2 transports, and for the shared file × 2 presets.
        ([], 3 * 20 + 40),
        (["-n", "BenchioFPP"], 20),
        (["-n", "BenchioSSF", "-E", 'hints == "archer2-ssf"'], 20),
        (["-E", 'file_system == "nvme" and stripe_count_asked == -1'], 3 * 2 + 4),
        (["-E", 'transport == "ucx"', "-n", "BenchioSerial"], 10),
        (["-t", "daily"], 10),
        (["-t", "daily", "-n", "BenchioSSF"], 5),
    ],
)
def test_archer2_by_each_field(site_copy, arguments, number):
    assert len(listed(site_copy.reframe("--system=archer2", "-l", *arguments))) == number


def test_the_daily_set_of_archer2_is_the_recommended_one(site_copy):
    for line in listed(site_copy.reframe("--system=archer2", "-t", "daily", "-l")):
        if "BenchioFPP" in line:
            assert "%stripe_count_asked=1 %transport=ofi %hints=default" in line
        else:
            assert "BenchioSSF" in line
            assert "%stripe_count_asked=-1 %transport=ucx %hints=archer2-ssf" in line


def test_an_unknown_system_is_named(site_copy):
    run = site_copy.reframe("--system=archer3", "-l")
    assert run.returncode == 1
    assert "archer3" in run.stdout + run.stderr


def test_a_mistake_in_a_site_file_is_named_without_a_traceback(site_copy):
    path = site_copy.root / "config" / "systems" / "archer2.py"
    text = path.read_text(encoding="utf-8")
    assert text.count('"lustre"') == 1
    path.write_text(text.replace('"lustre"', '"luster"'), encoding="utf-8")
    run = site_copy.reframe("--system=local", "-l")
    assert run.returncode == 1
    assert "archer2.py: partition 'compute': file system 'work1': type 'luster'" in run.stderr
    assert "Traceback" not in run.stderr


def test_a_path_with_a_blank_is_refused(tmp_path):
    (tmp_path / "a clone").mkdir()
    run = copy_suite(tmp_path / "a clone").reframe("--system=local", "-l")
    assert run.returncode == 1
    assert "a clone: ReFrame needs a path without a blank" in run.stderr
    assert "Traceback" not in run.stderr
