"""A mistake in a site file stops ReFrame with a message that names the place."""

import copy
import runpy
from pathlib import Path

import pytest

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
                "hint_presets": {"fast": {"hints": {"cb_nodes": "2"}}},
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
        (("filesystems", "work", "type"), "lustr", "'lustr' is unknown; there are: lustre, posix"),
        (("filesystems", "work", "path"), "work", "must be absolute"),
        (("filesystems", "work", "path"), None, "'path' is missing"),
        (("filesystems", "work", "stripe_counts"), [0], "stripe count 0"),
        (("filesystems", "work", "stripe_counts"), ["all"], "stripe count 'all'"),
        (("filesystem",), {}, "'filesystem' is unknown"),
        (("hint_presets", "fast"), {"hint": {}}, "hint preset 'fast'.*'hint' is unknown"),
        (("daily",), [{"hints": "quick"}], "daily, entry 1.*'quick' is unknown.*default, fast"),
        (("daily",), [{}, {"file_system": "home"}], "daily, entry 2.*'home' is unknown"),
        (("daily",), [{"pattern": "fpn", "transport": "tcp"}], "'tcp' is unknown"),
    ],
)
def test_a_mistake_is_named_with_its_place(keys, value, message):
    with pytest.raises(SiteConfigurationError, match=message) as error:
        CONTRACT["check_system"](changed(*keys, value=value), SITE_FILE)
    assert str(error.value).startswith("config/systems/mysite.py: partition 'compute'")


def test_a_system_is_named_as_its_file():
    with pytest.raises(SiteConfigurationError, match="name it 'other'"):
        CONTRACT["check_system"](SYSTEM, Path("config/systems/other.py"))
