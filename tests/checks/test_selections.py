"""Which checks are daily, weekly and for a smoke test, with a site's selections and without."""

import itertools

import pytest

from checks.base.selections import interval_days, smallest_scale, tags_of, tags_of_case

MEDIUM = {"fast": "nvme", "slow": "hdd", "plain": "disk"}
EXTRAS = {
    "filesystems": {
        "fast": {"stripe_counts": [1, 4]},
        "slow": {"stripe_counts": [4, 1]},
        "plain": {},
    },
    "scales": {
        "large": {"nodes": 8, "tasks_per_node": 4, "mib_per_task": 16},
        "small": {"nodes": 1, "tasks_per_node": 4, "mib_per_task": 16},
        "whole": {"nodes": "all", "tasks_per_node": 1, "mib_per_task": 1},
    },
}
INTERFACES = {"fpp": "posix", "fpn": "posix", "ssf": "mpiio"}


def selected(tag, tool="benchio", **said):
    """Return the checks of a tool with this tag, on a partition with UCX by default.

    Each has the form `ssf fast 4 ucx default large`.
    """
    extras = {**EXTRAS, **said}
    found = set()
    for pattern, name, transport, hints, scale in itertools.product(
        INTERFACES, MEDIUM, ("ofi", "ucx"), ("default", "many"), EXTRAS["scales"]
    ):
        for count in EXTRAS["filesystems"][name].get("stripe_counts", [None]):
            check = {
                "tool": tool,
                "pattern": pattern,
                "interface": INTERFACES[pattern],
                "file_system": name,
                "medium": MEDIUM[name],
                "stripe_count": count,
                "transport": transport,
                "hints": hints,
                "scale": scale,
            }
            if tag in tags_of(check, extras, "ucx"):
                found.add(f"{pattern} {name} {count} {transport} {hints} {scale}")
    return found


def defaults(*patterns):
    """The first stripe count, UCX, no hints and the first scale."""
    return {
        f"{pattern} {where} ucx default large"
        for pattern in patterns
        for where in ("fast 1", "slow 4", "plain None")
    }


def test_a_site_that_says_nothing_has_the_default_settings_of_all():
    assert selected("daily") == selected("weekly") == defaults("fpp", "fpn", "ssf")


def test_smoke_is_one_check_a_file_system_at_the_smallest_scale():
    assert selected("smoke") == {
        "fpp fast 1 ucx default small",
        "fpp slow 4 ucx default small",
        "fpp plain None ucx default small",
    }


def test_full_is_everything():
    # 3 patterns × (2 + 2 + 1 stripe counts) × 2 transports × 2 presets × 3 scales
    assert len(selected("full")) == 180


RECOMMENDED = [{"pattern": "ssf", "medium": "nvme", "stripe_count": 4, "hints": "many"}]


def test_daily_is_what_is_recommended_and_the_defaults_of_those_patterns():
    daily = selected("daily", recommended=RECOMMENDED)
    assert daily == defaults("ssf") | {"ssf fast 4 ofi many large", "ssf fast 4 ucx many large"}
    assert selected("weekly", recommended=RECOMMENDED) == daily | defaults("fpp", "fpn")


def test_a_list_replaces_what_is_selected_without_it():
    lists = {"daily": [{"interface": "mpiio", "scale": "small", "file_system": "plain"}]}
    daily = {
        f"ssf plain None {transport} {hints} small"
        for transport in ("ofi", "ucx")
        for hints in ("default", "many")
    }
    assert selected("daily", recommended=RECOMMENDED, selections=lists) == daily
    lists["weekly"] = []
    assert selected("weekly", selections=lists) == daily  # weekly has all of daily
    lists["smoke"] = [{"pattern": "fpn", "stripe_count": 4, "transport": "ofi", "hints": "default"}]
    assert selected("smoke", selections=lists) == {
        "fpn fast 4 ofi default large",
        "fpn slow 4 ofi default large",
        "fpn plain None ofi default large",  # which has no stripes to choose
    }


@pytest.mark.parametrize(
    ("scales", "smallest"),
    [
        # 64 MiB three times, and 128 MiB once
        ({"a": (4, 4, 4, 3), "b": (4, 4, 8, 1)}, "b"),
        ({"a": (4, 4, 4, 2), "b": (4, 4, 8, 1)}, "a"),  # equal: the first
        ({"a": ("idle", 1, 1, 1), "b": (100, 100, 100, 1)}, "b"),
        ({"a": ("idle", 1, 1, 1)}, "a"),
    ],
)
def test_the_smallest_scale(scales, smallest):
    fields = ("nodes", "tasks_per_node", "mib_per_task", "repeats")
    assert smallest_scale({n: dict(zip(fields, v, strict=True)) for n, v in scales.items()}) == (
        smallest
    )


def test_other_tools_than_benchio_are_weekly():
    assert selected("daily", "ior") == selected("smoke", "ior") == set()
    assert selected("weekly", "ior") == defaults("fpp", "fpn", "ssf")
    assert selected("weekly", "io500") == set()
    assert len(selected("full", "io500")) == len(selected("full"))


def test_a_site_may_list_other_tools():
    entry = {"tool": "ior", "pattern": "ssf", "file_system": "plain", "hints": "default"}
    listed = {"daily": [{**entry, "transport": "ucx"}]}
    assert selected("daily", "ior", selections=listed) == {"ssf plain None ucx default large"}
    assert selected("daily", selections=listed) == set()


def test_what_is_recommended_is_of_benchio_unless_it_says():
    recommended = [{"pattern": "ssf", "stripe_count": 4, "transport": "ofi", "hints": "many"}]
    assert selected("daily", "ior", recommended=recommended) == set()
    named = [{**recommended[0], "tool": "ior", "file_system": "fast"}]
    assert selected("daily", "ior", recommended=named) == {"ssf fast 4 ofi many large"}


def test_a_check_has_the_shortest_interval_of_its_tags():
    extras = {"schedule": {"daily": "1d12h", "weekly": "7d"}}
    assert interval_days({"full", "daily", "weekly"}, extras) == 1.5
    assert interval_days({"weekly"}, extras) == 7
    assert interval_days({"full"}, extras) is None
    assert interval_days({"daily"}, {}) is None


CASE = {
    "case": "csc-blocking unit",
    "tool": "benchio",
    "pattern": "btio",
    "interface": "pnetcdf",
    "file_system": "fast",
    "medium": "nvme",
    "stripe_count": 4,
    "transport": "ucx",
    "hints": "default",
    "scale": "large",
}


@pytest.mark.parametrize(
    ("entry", "is_selected"),
    [
        ({"case": "csc-blocking"}, True),
        ({"case": "csc-blocking unit"}, True),
        ({"case": "csc-blocking", "stripe_count": 4, "file_system": "fast"}, True),
        ({"case": "csc-blocking unit-2-aggregators"}, False),
        ({"case": "csc"}, False),
        ({"case": "csc-blocking", "stripe_count": 1}, False),
        ({"case": "csc-blocking", "scale": "small"}, False),
        ({"pattern": "btio"}, False),
        ({}, False),
    ],
)
def test_a_site_puts_a_case_into_a_tag(entry, is_selected):
    nightly = {**EXTRAS, "selections": {"daily": [entry]}}
    assert tags_of_case(CASE, nightly) == ({"daily", "weekly"} if is_selected else set())
    weekly = {**EXTRAS, "selections": {"weekly": [entry]}}
    assert tags_of_case(CASE, weekly) == ({"weekly"} if is_selected else set())
    recommended = {**EXTRAS, "recommended": [entry]}
    assert tags_of_case(CASE, recommended) == ({"daily", "weekly"} if is_selected else set())
    # a site cannot select by the tool tar
    untar = {**CASE, "tool": "tar", "case": "archer2-untar"}
    assert tags_of_case(untar, {**EXTRAS, "selections": {"daily": [{"case": "archer2-untar"}]}})


def test_a_case_adds_to_a_tag_and_replaces_nothing():
    case = {"case": "csc-blocking"}
    plain = defaults("fpp", "fpn", "ssf")
    assert selected("daily", selections={"daily": [case]}) == plain
    assert selected("daily", recommended=[case, *RECOMMENDED]) == selected(
        "daily", recommended=RECOMMENDED
    )
    listed = {"daily": [case, {"pattern": "ssf", "file_system": "plain", "hints": "default"}]}
    assert selected("daily", selections=listed) == {
        f"ssf plain None {transport} default large" for transport in ("ofi", "ucx")
    }
    assert selected("daily", selections={"daily": []}) == set()
