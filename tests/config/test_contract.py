"""A mistake in a site file stops ReFrame with a message that names the place and what to write."""

import copy
import re
import runpy
from dataclasses import fields
from pathlib import Path
from types import SimpleNamespace

import pytest
from jsonschema import Draft202012Validator

from checks.base.site import _TRANSPORTS
from checks.base.transport_reports import REPORT_VARIABLES
from checks.filesystems import BACKENDS, Asked
from config.validation import (
    SCHEMA,
    check_environment,
    check_site,
    refuse_edit,
    require_words,
    warnings,
)
from iobands.model import FileError
from tests.contracts.documented import DOCUMENT

SITE_FILE = Path("config/systems/mysite.py")
TEMPLATE = Path("config/systems/example.py").read_text(encoding="utf-8").splitlines()
SYSTEM = {
    "name": "mysite",
    "partitions": [
        {"name": "login", "features": []},
        {
            "name": "compute",
            "scheduler": "slurm",
            "environs": ["gnu"],
            "features": ["io"],
            "extras": {
                "filesystems": {
                    "work": {
                        "path": "/work",
                        "type": "lustre",
                        "medium": "hdd",
                        "stripe_counts": [1, -1],
                        "min_free_gib": 0.5,
                    }
                },
                "scales": {
                    "small": {"nodes": 2, "tasks_per_node": 4, "mib_per_task": 8},
                    "whole": {
                        "nodes": "all",
                        "tasks_per_node": 4,
                        "mib_per_task": 8,
                        "time_limit": "1h30m",
                        "exclusive": False,
                    },
                },
                "hint_presets": {
                    "fast": {
                        "hints": {"cb_nodes": "2"},
                        "romio_hints": {"cb_nodes": "2"},
                        "transports": ["ofi", "default"],
                        "mpi": ["openmpi"],
                    }
                },
                "recommended": [{"pattern": "fpp", "stripe_count": 1}, {"hints": "fast"}],
                "selections": {"smoke": [{"medium": "hdd", "scale": "small"}]},
                "account": "budget",
            },
        },
    ],
}
GNU = {"name": "gnu"}
UCX = {"name": "gnu", "features": ["ucx"], "extras": {"mpi": "openmpi"}}


def changed(*keys, value):
    """Return the system with a changed value in its second partition's extras; None deletes it."""
    system = copy.deepcopy(SYSTEM)
    place = system["partitions"][1]["extras"]
    for key in keys[:-1]:
        place = place[key]
    if value is None:
        del place[keys[-1]]
    else:
        place[keys[-1]] = value
    return system


def refused(system, environments=(GNU,), path=SITE_FILE):
    """Return the place that the message names, and the rest of the message."""
    with pytest.raises(FileError) as error:
        check_site(system, list(environments), path)
    source, rest = str(error.value).split(": ", maxsplit=1)
    assert source == str(path)
    assert "\n" not in rest
    # the sentence is "NAME is VALUE; ...", and a place has no " is "
    place, separator, _ = rest.partition(" is ")[0].rpartition(": ")
    return place, rest.removeprefix(place + separator)


def test_the_schema_is_one():
    Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("environment", [GNU, UCX])
def test_a_right_site_is_accepted(environment):
    check_site(SYSTEM, [environment], SITE_FILE)


def test_a_key_that_reframe_does_not_know_is_named_with_its_place():
    system = copy.deepcopy(SYSTEM)
    system["partitions"][1]["enviros"] = []
    place, problem = refused(system)
    assert place == f"partition {system['partitions'][1]['name']!r}"
    assert problem.startswith("enviros is an unknown key; write one of name, descr, ")
    assert problem.endswith("(did you mean environs?)")
    place, problem = refused({**SYSTEM, "hostname": ["x"]})
    assert (place, problem.partition(";")[0]) == ("", "hostname is an unknown key")


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (None, "env_vars is empty; write a list of names with their values, such as "),
        ({"A": "1"}, "env_vars is {'A': '1'}; write a list of names with their values, such as "),
        ([["A"]], "entry 1 of env_vars is ['A']; write a name and its value, such as "),
        (["A=1"], "entry 1 of env_vars is 'A=1'; write a name and its value, such as "),
    ],
)
def test_variables_that_reframe_could_not_set_are_named(value, problem):
    system = copy.deepcopy(SYSTEM)
    name = system["partitions"][1]["name"]
    system["partitions"][1]["env_vars"] = value
    place, said = refused(system)
    assert (place, said.startswith(problem)) == (f"partition {name!r}", True), said
    place, said = refused(SYSTEM, [{**GNU, "env_vars": value}])
    assert (place, said.startswith(problem)) == ("environment 'gnu'", True), said
    system["partitions"][1]["env_vars"] = [["OMP_NUM_THREADS", 1]]
    check_site(system, [{**GNU, "env_vars": []}], SITE_FILE)


@pytest.mark.parametrize("value", [0, -1, 1.5, None])
def test_jobs_for_which_reframe_would_wait_without_end_are_named(value):
    system = copy.deepcopy(SYSTEM)
    system["partitions"][1]["max_jobs"] = value
    assert refused(system)[1].endswith("; write a whole number from 1")
    assert refused({**SYSTEM, "max_local_jobs": value})[1].endswith("; write a whole number from 1")


def test_resources_without_options_are_named():
    system = copy.deepcopy(SYSTEM)
    system["partitions"][1]["resources"] = [{"name": "gpu"}]
    assert "options" in refused(system)[1]
    system["partitions"][1]["resources"] = [{"name": "gpu", "options": ["--gpus={number}"]}]
    check_site(system, [{**GNU, "env_vars": []}], SITE_FILE)


SMALL, WORK, FAST = "scale 'small'", "filesystem 'work'", "hint preset 'fast'"
FIRST = "entry 1 of recommended"


@pytest.mark.parametrize(
    ("keys", "value", "place", "mentions"),
    [
        (("filesystems",), None, "", ["filesystems is missing"]),
        (("filesystems",), {}, "", ["filesystems is {}", "at least one"]),
        (("scales",), None, "", ["scales is missing"]),
        (("scales",), {}, "", ["scales is {}", "at least one"]),
        (("scale",), {}, "", ["scale is an unknown key", "did you mean scales?"]),
        (("filesystem",), {}, "", ["filesystem", "did you mean filesystems?"]),
        (("daily",), [{}], "", ["daily is an unknown key"]),
        (("account",), 7, "", ["account is 7", "'7'"]),
        (("account",), True, "", ["account is True", "string"]),
        (("max_pending_time",), "6", "", ["max_pending_time is '6'", "'20m'"]),
        (("suspects",), {}, "", ["suspects is {}", "every"]),
        (("suspects",), {"evry": "4h"}, "suspects", ["evry", "did you mean every?"]),
        (("suspects",), {"every": 4}, "suspects", ["every is 4", "'20m'"]),
        (("suspects",), {"per_day": -1}, "suspects", ["per_day is -1", "from 0"]),
        (("suspects",), {"per_day": 1.5}, "suspects", ["per_day is 1.5", "whole number"]),
        (("suspects",), {"node_hours_per_day": "20"}, "suspects", ["node_hours_per_day is '20'"]),
        (("max_clock_skew_seconds",), float("nan"), "", ["max_clock_skew_seconds is nan"]),
        (("max_clock_skew_seconds",), -1, "", ["max_clock_skew_seconds is -1", "from 0"]),
        (("scales", "small"), 5, "scales", ["small is 5", "dictionary"]),
        (("scales", "small", "nodes"), None, SMALL, ["nodes is missing"]),
        (("scales", "small", "nodes"), 0, SMALL, ["nodes is 0", "from 1"]),
        (("scales", "small", "nodes"), "2", SMALL, ["nodes is '2'", "'all'", "'idle'"]),
        (("scales", "small", "nodes"), True, SMALL, ["nodes is True"]),
        (("scales", "small", "nodes"), 2.0, SMALL, ["nodes is 2.0"]),
        (("scales", "small", "repeats"), "3", SMALL, ["repeats is '3'", "such as 3"]),
        (("scales", "small", "node"), 2, SMALL, ["node is", "did you mean nodes?"]),
        (("scales", "small", "time_limit"), "90", SMALL, ["time_limit is '90'", "'20m'"]),
        (("scales", "small", "time_limit"), "20m\n", SMALL, ["time_limit", "'20m'"]),
        (("scales", "small", "time_limit"), "", SMALL, ["time_limit is ''", "'20m'"]),
        (("scales", "small", "time_limit"), "0m", SMALL, ["time_limit is '0m'", "longer than 0"]),
        (("scales", "a|b"), {}, "", ["'a|b'", "without |"]),
        (("filesystems", "a|b"), {}, "", ["'a|b'", "without |"]),
        (("filesystems", ""), {}, "", ["''", "without |"]),
        (("filesystems", "work", "medium"), "a|b", WORK, ["medium is 'a|b'", "without |"]),
        (("hint_presets", "a|b"), {}, "", ["'a|b'", "without |"]),
        (("scales", "small", "exclusive"), 1, SMALL, ["exclusive is 1", "True or False"]),
        (("filesystems", "work", "stripe_counts"), 4, WORK, ["stripe_counts is 4", "[4]"]),
        (("filesystems", "work", "stripe_counts"), [], WORK, ["stripe_counts is []", "leave"]),
        (("filesystems", "work", "stripe_counts"), [0], WORK, ["entry 1 of stripe_counts is 0"]),
        (("filesystems", "work", "stripe_counts"), [1, -2], WORK, ["entry 2", "-2", "-1 for all"]),
        (("filesystems", "work", "stripe_counts"), ["all"], WORK, ["'all'", "-1 for all"]),
        (("filesystems", "work", "type"), "lustr", WORK, ["'lustr'", "did you mean lustre?"]),
        (("filesystems", "work", "path"), "work", WORK, ["path is 'work'", "absolute"]),
        (("filesystems", "work", "path"), None, WORK, ["path is missing", "absolute"]),
        (("filesystems", "work", "mounted_as"), "nfs4\n", WORK, ["mounted_as is"]),
        (("filesystems", "work", "min_free_gib"), -1, WORK, ["min_free_gib is -1", "from 0"]),
        (("hint_presets", "default"), {}, "", ["'default' is {}", "sets nothing"]),
        (("hint_presets", "fast"), {"hint": {}}, FAST, ["hint is", "did you mean hints?"]),
        (
            ("hint_presets", "fast", "hints"),
            {"cb_nodes": 2},
            f"{FAST}, hints",
            ["cb_nodes is 2", "'2'"],
        ),
        (
            ("hint_presets", "fast", "romio_hints"),
            {"cb_nodes": ""},
            f"{FAST}, romio_hints",
            ["cb_nodes is ''", "not empty"],
        ),
        (
            ("hint_presets", "fast", "romio_hints"),
            {"cb nodes": "2"},
            f"{FAST}, romio_hints",
            ["cb nodes is", "without a blank"],
        ),
        (
            ("hint_presets", "fast"),
            {"hints": {"cb_nodes": "2"}},
            "",
            [FAST, "env_vars or romio_hints"],
        ),
        (("hint_presets", "fast", "transports"), ["tcp"], FAST, ["entry 1 of transports", "ucx"]),
        (("hint_presets", "fast", "mpi"), ["lam"], FAST, ["entry 1 of mpi is 'lam'", "openmpi"]),
        (("recommended",), [{"stripe_count": 8}], FIRST, ["stripe_count is 8", "1, -1"]),
        (("recommended",), [{"hints": "quick"}], FIRST, ["hints is 'quick'", "default, fast"]),
        (("recommended",), [{}, {"file_system": "home"}], "entry 2 of recommended", ["'home'"]),
        (("recommended",), [{"transport": "tcp"}], FIRST, ["transport is 'tcp'", "ofi, ucx"]),
        (("recommended",), [{"tool": "iozone"}], FIRST, ["tool is 'iozone'", "benchio"]),
        (("recommended",), [{"tool": "io500"}], FIRST, ["tool is 'io500'", "weekly"]),
        (("programs",), {"ior": {}}, "", ["program 'ior' is {}", "path", "modules", "Spack"]),
        (("programs",), {"ior": {"path": "ior"}}, "program 'ior'", ["path is 'ior'", "absolute"]),
        (
            ("programs",),
            {"ior": {"module": "x"}},
            "program 'ior'",
            ["module is", "did you mean modules?"],
        ),
        (("programs",), {"ior": {"modules": ["a; b"]}}, "program 'ior'", ["modules is 'a; b'"]),
        (("programs",), {"fio": {"path": "/x"}}, "", ["'fio'", "ior, mdtest, io500.sh"]),
        (("selections", "hourly"), [{}], "selections", ["hourly", "daily, weekly, smoke"]),
        (
            ("selections", "daily"),
            [{"tool": "io500"}],
            "selections, entry 1 of daily",
            ["tool is 'io500'", "weekly"],
        ),
        (
            ("selections", "smoke"),
            [{"scale": "big"}],
            "selections, entry 1 of smoke",
            ["'big'", "small, whole"],
        ),
        (
            ("selections", "smoke"),
            [{"medium": "tape"}],
            "selections, entry 1 of smoke",
            ["medium is 'tape'", "hdd"],
        ),
        (
            ("selections", "weekly"),
            [{"nodes": 2}],
            "selections, entry 1 of weekly",
            ["nodes is an unknown key"],
        ),
    ],
)
def test_a_mistake_is_named_with_its_place(keys, value, place, mentions):
    found, problem = refused(changed(*keys, value=value))
    assert found == ", ".join(["partition 'compute'", *([place] if place else [])])
    for mention in mentions:
        assert mention in problem


@pytest.mark.parametrize(
    ("keys", "value", "mention"),
    [
        (["account"], "z19\n#SBATCH --uid=0", "without blanks"),
        (["account"], "a b", "without blanks"),
        (["filesystems", "work", "path"], "/work\n", "without line breaks"),
        (["filesystems", "work", "path"], "/work/\udcff", "UTF-8"),
        (["filesystems", "work", "path"], "/work/../home", "without .."),
        (["hint_presets", "fast", "env_vars"], {"A\nB": "1"}, "without line breaks"),
    ],
)
def test_what_would_break_a_job_script_apart_is_refused(keys, value, mention):
    assert mention in refused(changed(*keys, value=value))[1]


@pytest.mark.parametrize("value", ["a\nb", "a b", "a\x7f"])
def test_so_is_a_variable_in_place_of_it(value):
    check_environment({"IOBANDS_ACCOUNT": "z19-io", "HOME": value})
    with pytest.raises(FileError, match="SBATCH_QOS"):
        check_environment({"SBATCH_QOS": value})


def test_what_takes_long_may_be_weekly():
    check_site(changed("selections", "weekly", value=[{"tool": "io500"}]), [GNU], SITE_FILE)


def with_file_system(file_system):
    system = changed("filesystems", "work", value={"path": "/work", "medium": "hdd", **file_system})
    # The recommendation names a stripe count that not all of these have.
    del system["partitions"][1]["extras"]["recommended"]
    return system


@pytest.mark.parametrize(
    "file_system",
    [
        {"type": "lustre", "stripe_counts": [4], "striping": {"size_kib": 1024, "index": 0}},
        {"type": "lustre", "stripe_counts": [4, 2], "striping": {"pool": "flash"}},
        {"type": "lustre", "stripe_counts": [-1], "striping": {"pool": "flash", "targets": 8}},
        {
            "type": "lustre",
            "stripe_counts": [1, -1],
            "striping": {"layout": "-E 64K -L mdt -E -1 -c {stripe_count} -S 1M"},
        },
        {"type": "lustre", "striping": {"layout": "-E 1G -c 1 -E -1 -c 8"}},
        {"type": "cephfs", "stripe_counts": [1, -1]},
        {
            "type": "cephfs",
            "striping": {"size_kib": 1024, "object_size_kib": 4096, "pool": "data", "targets": 4},
        },
        {"type": "beegfs", "stripe_counts": [-1], "striping": {"size_kib": 512, "targets": 6}},
        {"type": "beegfs", "stripe_counts": [4], "striping": {"pool": "2"}},
        {"type": "gpfs"},
        {"type": "gpfs", "striping": {"pool": "data", "fileset": "scratch", "replicas": 2}},
        {"type": "posix", "striping": {}},
    ],
)
def test_striping_that_can_be_asked_for(file_system):
    check_site(with_file_system(file_system), [GNU], SITE_FILE)


@pytest.mark.parametrize(
    ("type_", "striping", "mentions"),
    [
        ("posix", {"pool": "data"}, ["striping is {'pool': 'data'}", "leave it out"]),
        ("gpfs", {"size_kib": 64}, ["size_kib is", "pool, fileset, replicas"]),
        ("gpfs", {"replicas": 0}, ["replicas is 0", "from 1"]),
        ("beegfs", {"index": 1}, ["index is", "size_kib, pool, targets"]),
        ("cephfs", {"index": 0}, ["index is", "size_kib, object_size_kib, pool, targets"]),
        ("lustre", {"object_size_kib": 64}, ["object_size_kib is", "size_kib, index, pool"]),
        ("lustre", {"stripes": 64}, ["stripes is an unknown key"]),
        ("lustre", {"size_kib": 0}, ["size_kib is 0"]),
        ("lustre", {"size_kib": 100}, ["size_kib is 100", "multiple of 64"]),
        ("lustre", {"size_kib": "1M"}, ["size_kib is '1M'"]),
        ("lustre", {"index": -1}, ["index is -1", "from 0"]),
        ("cephfs", {"targets": 0}, ["targets is 0", "from 1"]),
        ("lustre", {"pool": "a; rm"}, ["pool is 'a; rm'", "letters"]),
        ("lustre", {"layout": "-c 4 $(id)"}, ["layout is '-c 4 $(id)'"]),
        ("lustre", {"layout": "-c 4", "size_kib": 64}, ["size_kib is 64", "in the layout"]),
        ("lustre", {"layout": "-c {stripe_count}"}, ["layout is", "add stripe_counts"]),
    ],
)
def test_striping_that_cannot_be_asked_for_is_named(type_, striping, mentions):
    place, problem = refused(with_file_system({"type": type_, "striping": striping}))
    assert place.startswith("partition 'compute', filesystem 'work'")
    for mention in mentions:
        assert mention in problem


@pytest.mark.parametrize(
    ("file_system", "mentions"),
    [
        ({"type": "posix", "stripe_counts": [1]}, ["stripe_counts is [1]", "leave it out"]),
        (
            {"type": "lustre", "stripe_counts": [4], "striping": {"layout": "-E -1 -c 4"}},
            ["layout is '-E -1 -c 4'", "{stripe_count}"],
        ),
        (
            {"type": "lustre", "stripe_counts": [-1], "striping": {"pool": "flash"}},
            ["targets is missing", "-1"],
        ),
    ],
)
def test_stripe_counts_that_cannot_be_asked_for_are_named(file_system, mentions):
    _, problem = refused(with_file_system(file_system))
    for mention in mentions:
        assert mention in problem


def test_the_words_of_a_site_file_are_those_of_the_checks():
    words = {name: entry["enum"] for name, entry in SCHEMA["$defs"].items() if "enum" in entry}
    assert words["fileSystemType"] == list(BACKENDS)
    for name, each in BACKENDS.items():
        assert set(each.options) <= {field.name for field in fields(Asked)}, name
    assert set(words["mpi"]) == set(REPORT_VARIABLES)
    assert words["transport"] == ["default", *_TRANSPORTS]


def test_the_types_of_file_systems_are_documented():
    lines = DOCUMENT.read_text(encoding="utf-8").splitlines()
    begin = lines.index("| Type | Mounted as | Commands | `striping` |") + 2
    rows = [line.strip("| ").split("|") for line in lines[begin : begin + len(BACKENDS)]]
    found = {
        row[0].strip(" `"): [set(re.findall("`([^`]+)`", cell)) for cell in row] for row in rows
    }
    assert list(found) == list(BACKENDS)
    for name, each in BACKENDS.items():
        _, mounted_as, _, striping = found[name]
        assert mounted_as == set(each.mounted_as), name
        no_stripes = set() if each.has_stripes else {"stripe_counts"}
        assert striping - {"striping"} == {*each.options} | no_stripes, name


@pytest.mark.parametrize(
    ("environment", "mentions"),
    [
        ({"features": ["ofi"]}, ["extras is missing", "MPI library", "{'mpi': 'openmpi'}"]),
        ({"features": ["ofi"], "extras": {}}, ["mpi is missing", "'openmpi'"]),
        (
            {"features": ["ofi", "ucx"], "extras": {"mpi": "mpich"}},
            ["['ofi', 'ucx']", "of its own"],
        ),
        ({"features": "ofi"}, ["features is 'ofi'", "['ofi']"]),
        ({"extras": {"mpi": "mpich2"}}, ["mpi is 'mpich2'", "did you mean mpich?"]),
        ({"extras": {"mpi_library": "mpich"}}, ["mpi_library is an unknown key", "mpi"]),
        ({"module": ["gcc"]}, ["module is an unknown key", "did you mean modules?"]),
    ],
)
def test_a_mistake_in_an_environment_is_named(environment, mentions):
    place, problem = refused(SYSTEM, [{**GNU, **environment}])
    assert place == "environment 'gnu'"
    for mention in mentions:
        assert mention in problem


@pytest.mark.parametrize(
    "environment",
    [{}, {"extras": {"mpi": "mpich"}}, {"features": ["gpu", "ucx"], "extras": {"mpi": "mpich"}}],
)
def test_a_right_environment_is_accepted(environment):
    check_site(SYSTEM, [{**GNU, **environment}], SITE_FILE)


def test_a_system_is_named_as_its_file():
    assert refused(SYSTEM, path=Path("config/systems/other.py")) == (
        "",
        "name is 'mysite'; write 'other'",
    )


@pytest.mark.parametrize(
    ("partition", "environment", "place", "mentions"),
    [
        ({"features": []}, UCX, "", ["partitions is", "add 'io' to the features"]),
        ({"name": "gpu.a"}, UCX, "partition 'gpu.a'", ["name is 'gpu.a'", "no digit first"]),
        ({"name": "7days"}, UCX, "partition '7days'", ["name is '7days'", "no digit first"]),
        ({"name": "login"}, UCX, "partition 'login'", ["name is 'login'", "used twice"]),
        ({"environs": []}, UCX, "partition 'compute'", ["environs is []"]),
        ({"environs": None}, UCX, "partition 'compute'", ["environs is empty"]),
        ({"extras": None}, UCX, "partition 'compute'", ["extras is empty"]),
        (
            {"environs": ["gnu", "cray"]},
            UCX,
            "partition 'compute'",
            ["entry 2 of environs is 'cray'", "gnu"],
        ),
        (
            {},
            {"name": "gnu", "features": ["uxc"]},
            "partition 'compute', entry 1 of recommended",
            ["transport is 'ucx'", "default"],
        ),
    ],
)
def test_parts_that_do_not_fit_together_are_named(partition, environment, place, mentions):
    system = changed("recommended", value=[{"pattern": "ssf", "transport": "ucx"}])
    check_site(system, [UCX], SITE_FILE)
    system["partitions"][1].update(partition)
    found, problem = refused(system, [environment])
    assert found == place
    for mention in mentions:
        assert mention in problem


@pytest.mark.parametrize("system", [[], {}, {"name": "mysite"}, {**SYSTEM, "partitions": [5]}])
def test_what_is_no_system_at_all_is_named(system):
    place, problem = refused(system)
    assert place == ""
    assert problem


@pytest.mark.parametrize("scheduler", ["pbspro", "lsf", "flux", None])
def test_nodes_are_counted_only_where_reframe_can_list_them(scheduler):
    system = copy.deepcopy(SYSTEM)
    system["partitions"][1]["scheduler"] = scheduler
    place, problem = refused(system)
    assert place == "partition 'compute', scale 'whole'"
    assert "nodes is 'all'; write a number" in problem


@pytest.mark.parametrize(
    ("keys", "value", "mentions"),
    [
        (("scales", "small", "nodes"), 3, ["scale 'small'", "'nodes': 3", "'nodes': 2"]),
        (("filesystems", "work", "medium"), "nvme", ["filesystem 'work'", "'nvme'", "'hdd'"]),
        (("filesystems", "work", "type"), "beegfs", ["filesystem 'work'", "'beegfs'", "'lustre'"]),
    ],
)
def test_a_name_says_the_same_in_every_partition(keys, value, mentions):
    system, other = copy.deepcopy(SYSTEM), changed(*keys, value=value)["partitions"][1]
    # A path may differ: a file system can be mounted elsewhere.
    same = copy.deepcopy(SYSTEM["partitions"][1])
    same["extras"]["filesystems"]["work"]["path"] = "/elsewhere"
    system["partitions"].append({**same, "name": "more"})
    check_site(system, [GNU], SITE_FILE)
    other["extras"].pop("selections")  # which names the medium
    system["partitions"].append({**other, "name": "other"})
    place, problem = refused(system)
    assert place == "partition 'other'"
    for mention in ("'compute'", *mentions):
        assert mention in problem


@pytest.mark.parametrize(
    ("keys", "value", "place"),
    [
        (("account",), "EDIT", "partition 'compute': account is 'EDIT'"),
        (
            ("filesystems", "work", "path"),
            "/scratch/EDIT-project",
            "partition 'compute', filesystem 'work': path is '/scratch/EDIT-project'",
        ),
        (
            ("programs",),
            {"ior": {"modules": ["ior", "EDIT"]}},
            "partition 'compute', program 'ior': entry 2 of modules is 'EDIT'",
        ),
    ],
)
def test_a_mark_of_the_template_is_refused_where_the_site_is_used(keys, value, place):
    system = changed(*keys, value=value)
    check_site(system, [GNU], SITE_FILE)
    with pytest.raises(FileError) as error:
        refuse_edit(system, SITE_FILE)
    assert str(error.value).startswith(f"{SITE_FILE}: {place}; ")


def test_a_word_that_holds_edit_is_no_mark():
    refuse_edit(changed("filesystems", "work", "path", value="/work/CREDIT"), SITE_FILE)


@pytest.mark.parametrize(
    ("case", "schedule", "mention"),
    [
        ("csc-nonblocking", {"daily": "1d"}, None),
        ("csc-blocking unit", {"daily": "1d"}, None),
        ("csc-nonblocking", {"weekly": "7d"}, "add the interval of daily to schedule"),
        ("csc-nonblocking", None, "add the interval of daily to schedule"),
        ("csc-nonblokking", {"daily": "1d"}, "did you mean csc-nonblocking?"),
    ],
)
@pytest.mark.parametrize("place", [("recommended",), ("selections", "daily")])
def test_a_case_in_a_tag_is_one_and_is_expected(place, case, schedule, mention):
    system = changed(*place, value=[{"case": case}])
    extras = system["partitions"][1]["extras"]
    extras.pop("schedule", None)
    if schedule:
        extras["schedule"] = schedule
    if mention:
        assert mention in refused(system, [UCX])[1]
    else:
        check_site(system, [UCX], SITE_FILE)


def test_what_may_not_be_meant_is_warned_of(monkeypatch):
    monkeypatch.delenv("IOBANDS_ACCOUNT", raising=False)
    assert list(warnings(SYSTEM, SITE_FILE)) == []
    (missing,) = warnings(changed("account", value=None), SITE_FILE)
    assert "account is missing; set it, or IOBANDS_ACCOUNT" in missing
    assert list(warnings(changed("account", value=""), SITE_FILE)) == []
    monkeypatch.setenv("IOBANDS_ACCOUNT", "z19")
    assert list(warnings(changed("account", value=None), SITE_FILE)) == []
    (left_out,) = warnings(changed("filesystems", "work", "stripe_counts", value=[4]), SITE_FILE)
    assert "stripe_counts is [4], without the recommended 1" in left_out


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ({"stripe_count": 3}, "stripe_count is 3, which does not divide the 64 processes of scale"),
        ({"stripe_count": 65}, "stripe_count is 65, more than the 64 processes of scale"),
        ({"stripe_count": 16}, None),
        ({"stripe_count": -1}, None),
        ({"stripe_count": 3, "pattern": "fpp"}, None),  # each process has a file of its own
        ({"stripe_count": 3, "scale": "half"}, "the 32 processes of scale 'half'"),
        ({}, None),
    ],
)
def test_stripes_that_do_not_fit_the_processes_are_warned_of(entry, problem):
    system = changed("recommended", value=[{"pattern": "ssf", **entry}])
    extras = system["partitions"][1]["extras"]
    extras["account"] = ""
    extras["scales"] = {
        name: {"nodes": nodes, "tasks_per_node": 16, "mib_per_task": 1}
        for name, nodes in (("whole", 4), ("half", 2))
    }
    del extras["filesystems"]["work"]["stripe_counts"]
    said = list(warnings(system, SITE_FILE))
    assert [problem in each for each in said] == ([True] if problem else [])


@pytest.mark.parametrize(
    "number",
    [n for n, line in enumerate(TEMPLATE) if re.match(r'\s*# "\w[\w.]*": .*,$', line)],
)
def test_what_the_template_has_as_a_comment_may_be_said(tmp_path, number):
    lines = [*TEMPLATE]
    lines[number] = lines[number].replace("# ", "", 1)
    path = tmp_path / "example.py"
    path.write_text("\n".join(lines))
    site = runpy.run_path(str(path))
    check_site(site["system"], site["environments"], path)


def test_a_file_that_says_nothing_is_sent_to_an_example_that_is_there():
    with pytest.raises(FileError, match="does not define `system`; see ") as refused:
        require_words(SimpleNamespace(), SITE_FILE)
    path = Path(str(refused.value).rpartition(" see ")[2])
    assert path.is_absolute() and path.is_file()
