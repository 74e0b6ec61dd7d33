"""What ReFrame users do first: list, select, and mistype."""

import json
import os
import re

import pytest

from tests.site_copy import BENCHIO, copy_suite

pytestmark = pytest.mark.machine


def listed(run):
    """Return the lines of the checks that measure; preflight checks are listed with every tag."""
    assert run.returncode == 0, run.stdout + run.stderr
    return [line for line in run.stdout.splitlines() if line.startswith("- Benchio")]


@pytest.fixture(scope="module")
def archer2(tmp_path_factory):
    """ReFrame's description of each check on ARCHER2, by which it selects."""
    site = copy_suite(tmp_path_factory.mktemp("site"), *BENCHIO)
    run = site.reframe("--system=archer2", "--describe")
    assert run.returncode == 0, run.stdout + run.stderr
    return json.loads(run.stdout)


def selected(checks, arguments, kind="Benchio"):
    """Return the checks of a kind that, by its manual, ReFrame would list with these options."""
    options = dict(zip(arguments[::2], arguments[1::2], strict=True))
    return [
        check["name"]
        for check in checks
        if check["name"].startswith(kind)
        and re.match(options.get("-n", ""), check["name"])
        and any(re.match(options.get("-t", ""), tag) for tag in check["tags"])
        and eval(options.get("-E", "True"), None, check)
    ]


def test_the_local_machine_has_each_pattern_on_each_file_system(site_copy):
    lines = listed(site_copy.reframe("--system=local", "-l", "-n", "Benchio"))
    assert [line.split()[1:3] for line in lines] == [
        [check, f"%file_system={file_system}"]
        for check in ("BenchioSerial", "BenchioFPP", "BenchioFPN", "BenchioSSF")
        for file_system in ("disk", "memory")
    ]


@pytest.mark.parametrize(
    ("arguments", "number"),
    [
        # 5 file systems × 2 stripe counts × 2 transports; for the shared file × 7 presets with OFI
        # and × 6 with UCX.
        ([], 3 * 20 + 130),
        (["-n", "BenchioFPP"], 20),
        (["-n", "BenchioSSF", "-E", 'hints == "archer2-ssf"'], 20),
        (["-E", 'file_system == "nvme" and stripe_count_asked == -1'], 3 * 2 + 13),
        (["-E", 'transport == "ucx"', "-n", "BenchioSerial"], 10),
        (["-E", 'pattern == "fpn"'], 20),
        (["-E", 'interface == "mpiio"'], 130),
        (["-E", 'tool == "benchio"'], 190),
        (["-E", 'medium == "nvme"'], 3 * 4 + 2 * 13),
        (["-E", 'medium == "hdd" and hints != "default"'], 4 * 2 * (6 + 5)),
        (["-E", 'file_system_type == "lustre"'], 190),
        # 16 nodes × 128 processes × 32 MiB = 64 GiB: known before there is a job.
        (["-E", "nodes == 16 and tasks == 2048 and gib == 64"], 190),
        (["-E", "nodes > 16 or tasks != 2048 or gib < 64"], 0),
        (["-n", "BenchioFPP.*%transport=ofi.*%scale=published"], 5 * 2),
        (["-n", "BenchioFPP.*%scale=small"], 0),
        # File per process (recommended, which is the default), and the shared file twice.
        (["-t", "daily"], 5 + 2 * 5),
        (["-t", "daily", "-n", "BenchioSSF"], 2 * 5),
        # The default settings of the two other patterns too.
        (["-t", "weekly"], 5 + 2 * 5 + 2 * 5),
        (["-t", "smoke"], 5),
        (["-t", "smoke", "-n", "BenchioFPP", "-E", "stripe_count_asked == 1"], 5),
        (["-t", "full"], 190),
    ],
)
def test_archer2_by_each_field(archer2, arguments, number):
    assert len(selected(archer2, arguments)) == number


def test_reframe_selects_so(site_copy, archer2):
    arguments = [
        *("-n", "BenchioSSF.*%transport=ofi.*%scale=published", "-t", "weekly"),
        *("-E", 'hints == "default" and nodes == 16 and gib == 64'),
    ]
    found = listed(site_copy.reframe("--system=archer2", "-l", *arguments))
    names = [line.removeprefix("- ").rpartition(" /")[0] for line in found]
    assert sorted(names) == sorted(selected(archer2, arguments))
    assert len(names) == 5


@pytest.mark.parametrize("tag", ["env", "smoke", "daily", "weekly", "full"])
def test_the_environment_is_looked_at_with_every_tag(archer2, tag):
    arguments = ["-t", tag]
    # One for each of 5 file systems, and one for the nodes of all environments.
    assert len(selected(archer2, arguments, "EnvFileSystem")) == 5
    assert len(selected(archer2, arguments, "EnvNodes")) == 1
    assert bool(selected(archer2, arguments)) == (tag != "env")


def test_the_daily_set_of_archer2_is_the_recommended_one_and_the_defaults(archer2):
    settings = {"BenchioFPP": set(), "BenchioSSF": set()}
    for name in selected(archer2, ["-t", "daily"]):
        check, _, *values = name.split()
        settings[check].add(" ".join(values[:3]))
    default = "%stripe_count_asked=1 %transport=ofi %hints=default"
    recommended = "%stripe_count_asked=-1 %transport=ucx %hints=archer2-ssf"
    assert settings == {"BenchioFPP": {default}, "BenchioSSF": {default, recommended}}


def test_an_environment_selects_of_the_daily_set_and_adds_nothing(site_copy, archer2):
    """UCX is no pattern's default, so with it only the recommended shared file is daily."""
    daily = listed(site_copy.reframe("--system=archer2", "-l", "-t", "daily", "-p", "gnu-ucx"))
    assert len(daily) == 5
    assert {line.split()[1] for line in daily} == {"BenchioSSF"}
    assert {line.split()[4] for line in daily} == {"%transport=ucx"}
    run = site_copy.reframe("--system=archer2", "--describe", "-n", "BenchioFPP", "-p", "gnu-ucx")
    found = {check["name"]: check for check in json.loads(run.stdout)}
    assert len(found) == 5 * 2
    # as without the option: no schedule measures them, so none of them can be overdue
    alike = {check["name"]: check for check in archer2 if check["name"] in found}
    tags = [{name: {*check["tags"]} for name, check in of.items()} for of in (found, alike)]
    assert tags[0] == tags[1]
    assert {check["interval_days"] for check in found.values()} == {None}


def test_an_environment_that_does_not_exist_selects_nothing(site_copy):
    run = site_copy.reframe("--system=archer2", "-l", "-p", "nosuch")
    assert listed(run) == []
    assert "skipping test" not in run.stdout + run.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("-r", "--skip-sanity-check"), "--skip-sanity-check: a run without it proves nothing"),
        (("-r", "--restore=report.json"), "--restore-session: a session measures only what"),
        (("--ci-generate=ci.yml",), "--ci-generate: each of its jobs would need"),
    ],
)
def test_an_option_that_takes_the_proof_away_is_refused(site_copy, words, said):
    run = site_copy.reframe("--system=local", "-n", "BenchioSerial", *words)
    assert run.returncode == 1
    assert f"ERROR: {said}" in run.stderr
    assert "Traceback" not in run.stdout + run.stderr
    assert not (site_copy.root / "ci.yml").exists()
    assert not list(site_copy.root.glob("perflogs/.session*"))


SETTINGS = [
    (["BenchioFPP.fsync="], {"BenchioFPP": "fsync false", "IorFPP": None}),
    (["fsync="], {"BenchioFPP": "fsync false", "IorFPP": "fsync false"}),
    (["BenchioFPP.fsync=false"], {"BenchioFPP": "fsync false", "IorFPP": None}),
    (["BenchioFPP.fsync=yes"], {"BenchioFPP": "fsync true", "IorFPP": None}),
    (["IorFPP.transfer=65536"], {"BenchioFPP": None, "IorFPP": "transfer 65536"}),
    (["IorFPP.block=4194304", "IorFPP.segments=8"], {"IorFPP": "block 4194304 segments 8"}),
    (["IorFPP.transfer=65536", "IorFPP.case=mine"], {"BenchioFPP": None, "IorFPP": "mine"}),
    (["BenchioFPP.target=7", "BenchioFPP.fsync="], {"BenchioFPP": "target 7 fsync false"}),
    # what is measured stays the same
    (["repeats=1", "time_limit=7m"], {"BenchioFPP": None, "IorFPP": None}),
]


@pytest.mark.parametrize(("settings", "cases"), SETTINGS)
def test_a_setting_that_decides_what_is_measured_makes_a_case(tmp_path, settings, cases):
    site = copy_suite(tmp_path, "checks/tools/benchio/check.py", "checks/tools/ior/check.py")
    words = [word for setting in settings for word in ("-S", setting)]
    run = site.reframe("--system=local", "--describe", "-n", "(Benchio|Ior)FPP", *words)
    assert run.returncode == 0, run.stdout + run.stderr
    found = {check["name"].split()[0]: check["case"] for check in json.loads(run.stdout)}
    assert {check: found[check] for check in cases} == cases


@pytest.mark.parametrize("name", ["segments", "transfer", "repeats"])
def test_a_negative_number_is_refused(tmp_path, name):
    site = copy_suite(tmp_path, "checks/tools/ior/check.py")
    run = site.reframe("--system=local", "-l", "-n", "IorFPP", "-S", f"IorFPP.{name}=-2")
    assert f"ERROR: {name} is -2: write 0 or a larger number\n" in run.stderr
    assert run.returncode == 1


def test_a_case_that_would_break_a_line_of_a_perflog_is_refused(tmp_path):
    site = copy_suite(tmp_path, "checks/tools/ior/check.py")
    run = site.reframe("--system=local", "-l", "-n", "IorFPP", "-S", "IorFPP.case=a|b")
    assert "ERROR: case is 'a|b': write it without | and line breaks\n" in run.stderr
    assert run.returncode == 1


def test_a_check_with_such_a_case_stops_no_other_check(tmp_path):
    """ReFrame warns, and a session reports the warning."""
    site = copy_suite(tmp_path, "checks/tools/ior/check.py")
    path = site.root / "checks" / "tools" / "ior" / "check.py"
    path.write_text(f"{path.read_text(encoding='utf-8')}\n    case = 'a|b'\n", encoding="utf-8")
    last = re.findall(r"^class (\w+)", path.read_text(encoding="utf-8"), re.MULTILINE)[-1]
    run = site.reframe("--system=local", "-l", "-S", "IorFPP.transfer=65536")
    assert f"skipping test '{last}': value error: case is 'a|b'" in run.stdout
    assert "- IorFPP" in run.stdout
    assert run.returncode == 0


def test_the_options_of_ior_are_words_between_commas(tmp_path):
    site = copy_suite(tmp_path, "checks/tools/ior/check.py")
    words = ("-n", "IorFPP.*api=posix", "-S", "IorFPP.ior_options=-g,--posix.odirect")
    run = site.reframe("--system=local", "--describe", *words)
    options = {(*each["ior_options"], each["case"]) for each in json.loads(run.stdout)}
    assert options == {("-g", "--posix.odirect", "ior_options -g,--posix.odirect")}


def test_what_makes_the_pattern_of_a_check_cannot_be_set(tmp_path):
    site = copy_suite(tmp_path, "checks/tools/ior/check.py")
    for check, variable in {"IorSSF": "file_per_process", "IorFPP": "collective"}.items():
        words = ("-n", "Ior[FS]", "-S", f"{check}.{variable}=yes")
        run = site.reframe("--system=local", "-l", *words)
        assert f"ERROR: {check} has no variable '{variable}' that can be set\n" in run.stderr
        assert run.returncode == 1


def test_a_variable_that_no_check_has_is_named(tmp_path):
    """Otherwise ReFrame would measure without it, for the daily series."""
    site = copy_suite(tmp_path, "checks/tools/ior/check.py")
    words = ("-S", "IorFPP.transfr=65536", "-S", "transfer=4096")
    run = site.reframe("--system=local", "--dry-run", "-n", "Ior(FPP|SSF)", *words)
    assert "ERROR: IorFPP has no variable 'transfr' that can be set\n" in run.stderr
    assert run.returncode == 1


def test_a_variable_of_all_checks_that_none_has_stops_them(site_copy):
    words = ("--system=local", "--dry-run", "-n", "BenchioFPP.*memory")
    for setting in ("times_cals=yes", "BenchoFPP.times_calls=yes"):
        printed = site_copy.reframe(*words, "-S", setting).stdout
        said = f"-S {setting.partition('=')[0]}=...: no check has this variable"
        assert said in " ".join(printed.split())
    assert "no check has" not in site_copy.reframe(*words, "-S", "times_calls=yes").stdout


@pytest.mark.parametrize(
    ("setting", "cases"),
    [
        ("transfer=65536,131072", {"transfer 65536", "transfer 131072"}),
        ("IorFPP.transfer=65536", {"transfer 65536"}),
        ("case=mine", {"mine"}),
        # what is measured stays the same
        ("repeats=1", {None}),
    ],
)
def test_each_value_of_a_parameter_of_the_command_line_makes_a_case(tmp_path, setting, cases):
    site = copy_suite(tmp_path, "checks/tools/ior/check.py")
    run = site.reframe("--system=local", "--describe", "-n", "IorFPP", "-P", setting)
    assert run.returncode == 0, run.stdout + run.stderr
    assert {each["case"] for each in json.loads(run.stdout) if "case" in each} == cases


def test_no_schedule_waits_for_a_measurement_of_its_own(site_copy):
    systems = site_copy.root / "config" / "systems" / "local.py"
    text = systems.read_text(encoding="utf-8")
    daily = text.replace('"extras": {', '"extras": {"schedule": {"daily": "1d"},', 1)
    systems.write_text(daily, encoding="utf-8")
    for word, interval in (("repeats=1", 1.0), ("fsync=", None), ("case=mine", None)):
        chosen = ("-n", "BenchioFPP", "-E", 'file_system == "disk"', "-S", f"BenchioFPP.{word}")
        run = site_copy.reframe("--system=local", "--describe", "-t", "daily", *chosen)
        (check,) = json.loads(run.stdout)
        assert check["interval_days"] == interval, word


def test_what_one_partition_has_no_budget_for_is_measured_on_the_others(site_copy):
    systems = site_copy.root / "config" / "systems" / "local.py"
    more = '\nsystem["partitions"].append({**system["partitions"][0], "name": "other"})\n'
    systems.write_text(systems.read_text(encoding="utf-8") + more, encoding="utf-8")
    chosen = ("--system=local", "--describe", "-t", "daily", "-n", "BenchioFPP")
    checks = json.loads(site_copy.reframe(*chosen).stdout)
    assert {tuple(each["valid_systems"]) for each in checks} == {("local:node", "local:other")}
    over = checks[0]["display_name"]
    left_out = {**os.environ, "IOBANDS_LEFT_OUT": f"local:other {over}\nlocal:node Another"}
    found = json.loads(site_copy.reframe(*chosen, env=left_out).stdout)
    assert {each["display_name"]: each["valid_systems"] for each in found} == {
        each["display_name"]: ["local:node"]
        if each["display_name"] == over
        else each["valid_systems"]
        for each in checks
    }


def test_an_unknown_system_is_named(site_copy):
    run = site_copy.reframe("--system=archer3", "-l")
    assert run.returncode == 1
    assert "archer3" in run.stdout + run.stderr


def test_a_clone_whose_path_the_shell_would_run_is_refused(tmp_path):
    name = 'a $(touch ran) "b"'
    (tmp_path / name).mkdir()
    run = copy_suite(tmp_path / name).reframe("--system=local", "-l")
    assert run.returncode == 1
    assert "ERROR: ReFrame needs a path of letters" in run.stderr
    assert f"{name}': choose another place" in run.stderr
    assert "Traceback" not in run.stderr
    assert list(tmp_path.rglob("ran")) == []


def test_files_of_an_editor_beside_a_site_file_stop_nothing(site_copy):
    systems = site_copy.root / "config" / "systems"
    (systems / ".#local.py").symlink_to("jane@login1.4711:1763600000")
    (systems / "local.py~").write_text("broken(", encoding="utf-8")
    (systems / ".local.py.swp").write_bytes(b"b0VIM\x00\xff")
    run = site_copy.reframe("--system=local", "-l", "-n", "BenchioSerial")
    assert run.returncode == 0, run.stderr


def test_a_run_that_is_pinned_to_a_target_has_a_layout_of_one_stripe(tmp_path):
    """The layout of the site file may have several components, which would lie anywhere."""
    site = copy_suite(tmp_path, *BENCHIO)
    layout = {"layout": "-E 64K -L mdt -E -1 -c {stripe_count}"}
    work = {"path": str(tmp_path), "type": "lustre", "medium": "disk"}
    site.add_local_system(
        "here",
        {"work": {**work, "stripe_counts": [1], "striping": layout}},
        {"nodes": 1, "tasks_per_node": 2, "mib_per_task": 1},
    )
    words = ("--dry-run", "--system=here", "-n", "BenchioFPP", "-S", "BenchioFPP.target=2")
    run = site.reframe(*words)
    assert run.returncode == 0, run.stdout + run.stderr
    (script,) = site.root.glob("stage/**/BenchioFPP*/rfm_job.sh")
    assert re.findall(r"^stripe .*", script.read_text("utf-8"), re.M) == ["stripe -c 1 -i 2"]
