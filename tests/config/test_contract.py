"""A mistake in a site file stops ReFrame with a message that names the place."""

import copy
from pathlib import Path

import pytest

from checks.base.transport import REPORT_VARIABLES
from checks.filesystems import BACKENDS
from config.contract import SiteConfigurationError, check_site
from config.contract.environments import check_environments
from config.contract.systems import check_system
from config.contract.words import FILE_SYSTEM_TYPES, MPI_LIBRARIES

SITE_FILE = Path("config/systems/mysite.py")
SYSTEM = {
    "name": "mysite",
    "partitions": [
        {"name": "login", "features": []},
        {
            "name": "compute",
            "scheduler": "slurm",
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


def changed(*keys, value):
    system = copy.deepcopy(SYSTEM)
    place = system["partitions"][1]["extras"]
    for key in keys[:-1]:
        place = place[key]
    if value is None:
        del place[keys[-1]]
    else:
        place[keys[-1]] = value
    return system


def test_a_right_site_is_accepted():
    check_system(SYSTEM, SITE_FILE)


@pytest.mark.parametrize(
    ("keys", "value", "message"),
    [
        (("filesystems",), None, "'filesystems' is missing"),
        (("filesystems",), {}, "filesystems is empty"),
        (("scales",), None, "'scales' is missing"),
        (("scales",), {}, "scales is empty"),
        (("scale",), {}, "'scale' is unknown"),
        (("scales", "small", "nodes"), None, "scale 'small': 'nodes' is missing"),
        (("scales", "small", "nodes"), 0, "nodes is 0"),
        (("scales", "small", "nodes"), "2", "nodes '2' is unknown; there are: a number, all, idle"),
        (("scales", "small", "nodes"), True, "nodes has the wrong type"),
        (("scales", "small", "node"), 2, "'node' is unknown; there are: nodes"),
        (("scales", "small", "time_limit"), "90", "time_limit '90' must be like '20m'"),
        (("scales", "small", "time_limit"), "", "time_limit '' must be like '20m'"),
        (("scales", "small", "exclusive"), 1, "exclusive has the wrong type"),
        (("account",), 7, "account has the wrong type"),
        (("filesystems", "work", "stripe_counts"), [], "stripe_counts is empty; leave it out"),
        (("hint_presets", "default"), {}, "cannot be named 'default'"),
        (("recommended",), [{"stripe_count": 8}], "entry 1: stripe_count 8 is unknown; there are"),
        (("max_pending_time",), "6", "max_pending_time '6' must be like '20m'"),
        (("filesystems", "work", "type"), "lustr", "'lustr' is unknown; there are: lustre, cephfs"),
        (("filesystems", "work", "path"), "work", "must be absolute"),
        (("filesystems", "work", "path"), None, "'path' is missing"),
        (("filesystems", "work", "stripe_counts"), [0], "stripe count 0"),
        (("filesystems", "work", "stripe_counts"), ["all"], "stripe count 'all'"),
        (("filesystem",), {}, "'filesystem' is unknown"),
        (("hint_presets", "fast"), {"hint": {}}, "hint preset 'fast'.*'hint' is unknown"),
        (("hint_presets", "fast", "hints"), {"cb_nodes": 2}, "cb_nodes: 2 must be text, in quotes"),
        (("hint_presets", "fast", "romio_hints"), {"cb_nodes": ""}, "neither may be empty"),
        (("hint_presets", "fast", "romio_hints"), {"cb nodes": "2"}, "'cb nodes': '2': neither"),
        (("hint_presets", "fast"), {"hints": {"cb_nodes": "2"}}, "nothing here sets them"),
        (("hint_presets", "fast", "transports"), ["tcp"], "transports 'tcp' is unknown"),
        (("hint_presets", "fast", "mpi"), ["lam"], "mpi 'lam' is unknown; there are: openmpi"),
        (("recommended",), [{"hints": "quick"}], "recommended, entry 1.*'quick'.*default, fast"),
        (("recommended",), [{}, {"file_system": "home"}], "entry 2.*'home' is unknown"),
        (("recommended",), [{"pattern": "fpn", "transport": "tcp"}], "'tcp' is unknown"),
        (("programs",), {"ior": {}}, "program 'ior': say its path, its modules or its Spack spec"),
        (("programs",), {"ior": {"path": "ior"}}, "program 'ior': path 'ior' must be absolute"),
        (("programs",), {"ior": {"module": "x"}}, "'module' is unknown; there are: path, modules"),
        (("programs",), {"ior": {"modules": ["a; b"]}}, "'a; b' is no such name"),
        (("programs",), {"fio": {"path": "/x"}}, "'fio' is unknown; there are: ior, mdtest"),
        (("selections", "daily"), [{"tool": "io500"}], "entry 1: io500 is never daily"),
        (("recommended",), [{"tool": "iozone"}], "tool 'iozone' is unknown; there are: benchio"),
        (("daily",), [{}], "'daily' is unknown"),
        (("selections", "hourly"), [{}], "'hourly' is unknown; there are: daily, weekly, smoke"),
        (("selections", "smoke"), [{"scale": "big"}], "smoke, entry 1.*'big'.*small, whole"),
        (("selections", "smoke"), [{"medium": "tape"}], "'tape' is unknown; there are: hdd"),
        (("selections", "daily"), [{"nodes": 2}], "daily, entry 1.*'nodes' is unknown"),
    ],
)
def test_a_mistake_is_named_with_its_place(keys, value, message):
    with pytest.raises(SiteConfigurationError, match=message) as error:
        check_system(changed(*keys, value=value), SITE_FILE)
    assert str(error.value).startswith("config/systems/mysite.py: partition 'compute'")


WORK = {"path": "/work", "medium": "hdd"}


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
        {"type": "gpfs"},
        {"type": "posix", "striping": {}},
    ],
)
def test_striping_that_can_be_asked_for(file_system):
    system = changed("filesystems", "work", value={**WORK, **file_system})
    # What is recommended names a stripe count that not each of these has.
    del system["partitions"][1]["extras"]["recommended"]
    check_system(system, SITE_FILE)


@pytest.mark.parametrize(
    ("file_system", "message"),
    [
        ({"type": "posix", "stripe_counts": [1]}, "type 'posix' has no stripes"),
        ({"type": "gpfs", "striping": {"pool": "data"}}, "type 'gpfs' has no stripes"),
        ({"type": "beegfs", "striping": {"pool": "1"}}, "'pool' is unknown; there are: size_kib"),
        ({"type": "cephfs", "striping": {"index": 0}}, "'index' is unknown"),
        ({"type": "lustre", "striping": {"object_size_kib": 64}}, "'object_size_kib' is unknown"),
        ({"type": "lustre", "striping": {"size_kib": 0}}, "size_kib is 0; it must be at least 1"),
        ({"type": "lustre", "striping": {"size_kib": 100}}, "must be a multiple of 64"),
        ({"type": "lustre", "striping": {"size_kib": "1M"}}, "size_kib has the wrong type"),
        ({"type": "lustre", "striping": {"index": -1}}, "index is -1; it must be at least 0"),
        ({"type": "cephfs", "striping": {"targets": 0}}, "targets is 0"),
        ({"type": "lustre", "striping": {"pool": "a; rm"}}, "pool 'a; rm' is no such name"),
        ({"type": "lustre", "striping": {"layout": "-c 4 $(id)"}}, "is no such name"),
        (
            {"type": "lustre", "striping": {"layout": "-c 4", "size_kib": 64}},
            "size_kib cannot stand beside layout",
        ),
        (
            {"type": "lustre", "stripe_counts": [4], "striping": {"layout": "-E -1 -c 4"}},
            r"layout needs \{stripe_count\}",
        ),
        (
            {"type": "lustre", "striping": {"layout": "-E -1 -c {stripe_count}"}},
            r"layout needs \{stripe_count\}",
        ),
        (
            {"type": "lustre", "stripe_counts": [-1], "striping": {"pool": "flash"}},
            "OSTs of pool 'flash' cannot be counted for -1; add 'targets'",
        ),
    ],
)
def test_striping_that_cannot_be_asked_for_is_named(file_system, message):
    system = changed("filesystems", "work", value={**WORK, **file_system})
    with pytest.raises(SiteConfigurationError, match=message) as error:
        check_system(system, SITE_FILE)
    assert "file system 'work'" in str(error.value)


def test_every_type_has_a_backend():
    assert tuple(BACKENDS) == FILE_SYSTEM_TYPES


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        ({"features": ["ofi"]}, "'ofi' can be proven only of an MPI library that is known"),
        ({"features": ["ofi", "ucx"], "extras": {"mpi": "mpich"}}, "transports ofi and ucx"),
        ({"extras": {"mpi": "mpich2"}}, "mpi 'mpich2' is unknown; there are: openmpi, mpich"),
        ({"extras": {"mpi_library": "mpich"}}, "'mpi_library' is unknown; there are: mpi"),
    ],
)
def test_a_mistake_in_an_environment_is_named(environment, message):
    with pytest.raises(SiteConfigurationError, match=message) as error:
        check_environments([{"name": "gnu", **environment}], SITE_FILE)
    assert str(error.value).startswith("config/systems/mysite.py: environment 'gnu'")


@pytest.mark.parametrize(
    "environment",
    [{}, {"extras": {"mpi": "mpich"}}, {"features": ["gpu", "ucx"], "extras": {"mpi": "mpich"}}],
)
def test_a_right_environment_is_accepted(environment):
    check_environments([{"name": "gnu", **environment}], SITE_FILE)


def test_the_libraries_of_a_site_file_can_be_asked_for_their_transport():
    assert set(MPI_LIBRARIES) == set(REPORT_VARIABLES)


def test_a_system_is_named_as_its_file():
    with pytest.raises(SiteConfigurationError, match="name it 'other'"):
        check_system(SYSTEM, Path("config/systems/other.py"))


UCX = {"name": "gnu", "features": ["ucx"], "extras": {"mpi": "openmpi"}}


def test_a_whole_site_file_is_accepted():
    check_site(changed_partition(environs=["gnu"]), [UCX], SITE_FILE)


@pytest.mark.parametrize(
    ("partition", "environments", "message"),
    [
        ({"environs": ["gnu"], "features": []}, [UCX], "no partition has the feature 'io'"),
        ({"environs": []}, [UCX], "partition 'compute': environs is empty"),
        ({}, [UCX], "partition 'compute': environs is empty"),
        ({"environs": ["gnu", "cray"]}, [UCX], "environs 'cray' is unknown; there are: gnu"),
        (
            {"environs": ["gnu"]},
            [{"name": "gnu", "features": ["uxc"]}],
            "recommended, entry 1: transport 'ucx': no environment",
        ),
    ],
)
def test_parts_that_do_not_fit_together_are_named(partition, environments, message):
    with pytest.raises(SiteConfigurationError, match=message):
        check_site(changed_partition(**partition), environments, SITE_FILE)


def changed_partition(**fields):
    """The system with another partition for checks, whose entries name the transport ucx."""
    system = changed("recommended", value=[{"pattern": "ssf", "transport": "ucx"}])
    system["partitions"][1].update(fields)
    return system


@pytest.mark.parametrize("scheduler", ["pbspro", "lsf", "flux", None])
def test_nodes_are_counted_only_where_reframe_can_list_them(scheduler):
    system = copy.deepcopy(SYSTEM)
    system["partitions"][1]["scheduler"] = scheduler
    with pytest.raises(SiteConfigurationError, match=r"scale 'whole': nodes is 'all'.*a number"):
        check_system(system, SITE_FILE)


@pytest.mark.parametrize(
    ("keys", "value", "message"),
    [
        (("scales", "small", "nodes"), 3, "scale 'small' is .*'nodes': 3.*'compute' it is"),
        (("filesystems", "work", "medium"), "nvme", "file system 'work' is .*'nvme'.*'hdd'"),
        (("filesystems", "work", "type"), "beegfs", "file system 'work' is .*'beegfs'.*'lustre'"),
    ],
)
def test_a_name_says_the_same_in_every_partition(keys, value, message):
    system, other = copy.deepcopy(SYSTEM), changed(*keys, value=value)["partitions"][1]
    # A path may differ: a file system can be mounted elsewhere.
    same = copy.deepcopy(SYSTEM["partitions"][1])
    same["extras"]["filesystems"]["work"]["path"] = "/elsewhere"
    system["partitions"].append({**same, "name": "more"})
    check_system(system, SITE_FILE)
    other["extras"].pop("selections")  # which names the medium
    system["partitions"].append({**other, "name": "other"})
    with pytest.raises(SiteConfigurationError, match=f"partition 'other': {message}"):
        check_system(system, SITE_FILE)
