"""An option that would have no effect is refused or not offered."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest

from iobands.commands import cli
from iobands.commands.main import COMMANDS
from tests.commands.calling import call
from tests.commands.small_site import site, unknown


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("run --suspects --tag weekly", "--tag has no effect with --suspects"),
        ("run --suspects --system here", "--system has no effect with --suspects"),
        ("run --suspects -- -n Other", "REFRAME_ARGUMENT...] has no effect with --suspects"),
        ("schedule cron --suspects", "--suspects has no effect except in a script"),
        ("schedule script --at 06:00", "--at has no effect in a script"),
        ("schedule script --suspects --tag full", "--tag has no effect with --suspects"),
        ("accept --check . --limit 4h", "--limit has no effect with --check"),
        ("init . --check --dry-run", "--dry-run has no effect with --check"),
        ("init new --from-clone . --from archer2", "--from has no effect with --from-clone"),
        ("report pages --format svg --public", "--public has no effect with --format svg"),
        ("status --format json --rejected", "--rejected has no effect with --format json"),
        ("status --store there --perflogs perflogs", "--perflogs has no effect with --store"),
        ("status --store there --site .", "--site has no effect with --store"),
        ("explain fpp --store there --config config", "--config has no effect with --store"),
        ("maintenance report --store there --site .", "--site has no effect with --store"),
        ("compare tasks --store there --site .", "--site has no effect with --store"),
        ("table --check page.md --format rst", "--format has no effect with --check"),
        ("export --format csv --false-alarms 2", "--false-alarms has no effect with --format csv"),
        ("notify --test --dry-run", "--dry-run has no effect with --test"),
        ("pull copy --store there --site .", "--site has no effect with --store"),
        ("forget --older-than 1d --store there --site .", "--site has no effect with --store"),
        ("maintenance begin --reason x --tag full", "--tag has no effect without --measure"),
        ("maintenance end --time 2h", "--time has no effect without --measure"),
    ],
)
def test_an_option_without_effect_is_refused(words, said, iobands, tmp_path):
    site(tmp_path)
    (tmp_path / "config" / "systems").mkdir()
    before = sorted(tmp_path.rglob("*"))
    assert said in unknown(iobands(*words.split())).stderr
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (("status", "--store", ""), "--store"),
        (("explain", "fpp", "--store", ""), "--store"),
        (("push", "--store", " "), "--store"),
        (("pull", ""), "DIR"),
        (("forget", "--older-than", "1d", "--store", "store", "--system", ""), "--system"),
        (("acknowledge", "fpp", "--reason", "x", "--system", ""), "--system"),
        (("acknowledge", "fpp", "--reason", " "), "--reason"),
        (("acknowledge", "fpp", "--reason", "x", "--by", " "), "--by"),
        (("maintenance", "begin", "--reason", "x", "--by", " "), "--by"),
        (("epoch", "", "--reason", "x"), "NAME"),
        (("status", "--as-of", ""), "--as-of"),
        (("status", "--perflogs", ""), "a path"),
        (("report", ""), "a path"),
        (("export", "--format", "csv", "--output", ""), "a path"),
        (("init", ""), "a path"),
    ],
)
def test_an_empty_value_such_as_of_an_unset_variable_is_no_default(words, name, iobands, tmp_path):
    site(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    said = unknown(iobands(*words)).stderr
    assert said == f"IOBANDS UNKNOWN: {name} is empty; give a value\n"
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    "words",
    ["status --system", "push --store", "acknowledge x --reason", "explain", "discard --reason x"],
)
def test_text_of_another_encoding_is_refused(words, iobands, tmp_path):
    """Such as Latin-1 where the locale says UTF-8."""
    site(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    said = unknown(iobands(*words.split(), "caf\udce9")).stderr
    last = words.rpartition(" ")[2]
    name = last if last.startswith("--") else "SERIES"
    assert f"{name} has bytes that are not valid in this locale; check LANG and LC_ALL\n" in said
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    ("words", "name"),
    [("status --false-alarms nan", "--false-alarms"), ("table --holds NaN", "--holds")],
)
def test_what_is_in_any_range_is_no_number(words, name, iobands, tmp_path):
    site(tmp_path)
    said = unknown(iobands(*words.split())).stderr
    assert said == f"IOBANDS UNKNOWN: {name} is not a number; give one\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("cost --every 14m", "14m: write 0.01 to 1000000 days"),  # 0.0097 days
        ("cost --every inf", "inf: write 0.01 to 1000000 days"),
        ("table --holds 23h", "23h: write 1 to 1000000 days"),
        ("schedule cron --jitter 13h", "13h: write 0 to 720 minutes"),
        ("canary --limit 9s", "9s: write 10 to 1000000 seconds"),
        ("canary --wait 12d", "12d: write 0 to 1000000 seconds"),
        ("canary --wait 1w", "1w is not a duration; write for example 90m, 4h or 1d"),
    ],
)
def test_a_number_with_a_unit_is_a_time_too(words, said, iobands, tmp_path):
    site(tmp_path)
    done = iobands(*words.split())
    assert (done.returncode, done.stderr.endswith(f": {said}\n")) == (3, True), done.stderr


def test_what_is_no_parameter_of_the_command_cannot_be_refused():
    assert call("cost", "--site", "/nowhere")[0] == 3
    cli.refuse("here", "tag", "every")
    with pytest.raises(KeyError, match="tga"):
        cli.refuse("here", "tag", "tga")


@pytest.mark.parametrize(
    "words", ["push --system here", "push --false-alarms 2", "maintenance end --false-alarms 2"]
)
def test_an_option_without_effect_is_not_offered(words, iobands):
    done = iobands(*words.split())
    assert (done.returncode, "No such option" in done.stderr) == (3, True)


def test_every_command_takes_the_directory_of_a_site():
    # as `iobands init --help` says
    for name in {each for rows in COMMANDS.values() for each in rows} - {"init", "demo"}:
        verbs = ("begin", "end", "report") if name == "maintenance" else ("",)
        for verb in verbs:
            assert "--site DIR" in call(*filter(None, (name, verb)), "--help")[1], name


@pytest.mark.parametrize("words", ["epoch", "maintenance begin", "maintenance end"])
def test_what_is_of_one_system_does_not_offer_all(words):
    said = " ".join(call(*words.split(), "--help")[1].split())
    assert "--system NAME The system. [default: the only one that ran]" in said


def test_results_are_imported_into_the_site_that_is_named(iobands, tmp_path):
    (tmp_path / "there" / "config" / "systems").mkdir(parents=True)
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "a.csv").write_text("perf_var\nother\n")
    assert (
        "to 0 perflogs in there/perflogs" in iobands("import", "results", "--site", "there").stdout
    )


def test_a_default_is_no_option_that_was_given(iobands, tmp_path):
    site(tmp_path)
    assert iobands("export", "--format", "csv").returncode == 0
    assert iobands("table").returncode == 0
    # only site files have paths and recommended settings
    assert iobands("push", "--store", "store").returncode == 0
    for words in (("report", "page"), ("table",)):
        assert iobands(*words, "--store", "store", "--config", "config").returncode == 0
    assert iobands("status", "--format", "text", "--all").returncode == 0


def test_a_moment_ago_is_not_in_the_future() -> None:
    now = datetime.now(timezone.utc)
    assert cli.past_time(now.isoformat()) == now
