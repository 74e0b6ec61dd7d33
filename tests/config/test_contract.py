"""A mistake in a site file stops ReFrame with a message that names the place."""

import copy
import runpy
from pathlib import Path

import pytest

from checks.striping import BACKENDS
from checks.transport import REPORT_VARIABLES

ROOT = Path(__file__).resolve().parents[2]
CONTRACT = runpy.run_path(str(ROOT / "config" / "contract.py"))
SiteConfigurationError = CONTRACT["SiteConfigurationError"]

SITE_FILE = Path("config/systems/mysite.py")
SYSTEM = {
    "name": "mysite",
    "partitions": [
        {"name": "login", "features": []},
        {
            "name": "compute",
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
                "scale": {"nodes": 2, "tasks_per_node": 4, "mib_per_task": 8},
                "hint_presets": {
                    "fast": {
                        "hints": {"cb_nodes": "2"},
                        "romio_hints": {"cb_nodes": "2"},
                        "transports": ["ofi", "default"],
                        "mpi": ["openmpi"],
                    }
                },
                "daily": [{"pattern": "fpp", "stripe_count": 1}, {"hints": "fast"}],
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
    CONTRACT["check_system"](SYSTEM, SITE_FILE)


@pytest.mark.parametrize(
    ("keys", "value", "message"),
    [
        (("filesystems",), None, "'filesystems' is missing"),
        (("filesystems",), {}, "filesystems is empty"),
        (("scale",), None, "'scale' is missing"),
        (("scale", "nodes"), None, "'nodes' is missing"),
        (("scale", "nodes"), 0, "nodes is 0"),
        (("scale", "nodes"), "2", "nodes has the wrong type"),
        (("scale", "nodes"), True, "nodes has the wrong type"),
        (("scale", "node"), 2, "'node' is unknown; there are: nodes"),
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
        (("hint_presets", "fast", "transports"), ["tcp"], "transports 'tcp' is unknown"),
        (("hint_presets", "fast", "mpi"), ["lam"], "mpi 'lam' is unknown; there are: openmpi"),
        (("daily",), [{"hints": "quick"}], "daily, entry 1.*'quick' is unknown.*default, fast"),
        (("daily",), [{}, {"file_system": "home"}], "daily, entry 2.*'home' is unknown"),
        (("daily",), [{"pattern": "fpn", "transport": "tcp"}], "'tcp' is unknown"),
    ],
)
def test_a_mistake_is_named_with_its_place(keys, value, message):
    with pytest.raises(SiteConfigurationError, match=message) as error:
        CONTRACT["check_system"](changed(*keys, value=value), SITE_FILE)
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
    CONTRACT["check_system"](system, SITE_FILE)


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
        CONTRACT["check_system"](system, SITE_FILE)
    assert "file system 'work'" in str(error.value)


def test_every_type_has_a_backend():
    assert tuple(BACKENDS) == CONTRACT["FILE_SYSTEM_TYPES"]


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
        CONTRACT["check_environments"]([{"name": "gnu", **environment}], SITE_FILE)
    assert str(error.value).startswith("config/systems/mysite.py: environment 'gnu'")


@pytest.mark.parametrize(
    "environment",
    [{}, {"extras": {"mpi": "mpich"}}, {"features": ["gpu", "ucx"], "extras": {"mpi": "mpich"}}],
)
def test_a_right_environment_is_accepted(environment):
    CONTRACT["check_environments"]([{"name": "gnu", **environment}], SITE_FILE)


def test_the_libraries_of_a_site_file_can_be_asked_for_their_transport():
    assert set(CONTRACT["MPI_LIBRARIES"]) == set(REPORT_VARIABLES)


def test_a_system_is_named_as_its_file():
    with pytest.raises(SiteConfigurationError, match="name it 'other'"):
        CONTRACT["check_system"](SYSTEM, Path("config/systems/other.py"))
