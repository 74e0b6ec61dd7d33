"""Selections: the tags `full`, `daily`, `weekly` and `smoke` of a check, by the site file.

Pure functions of a check's fields and a partition's `extras` (contract 4), independent of ReFrame.
"""

from collections.abc import Mapping

from .package import seconds_of

FULL = "full"

#: The pattern with the fewest needs, measured on each file system to see that it works.
SMOKE_PATTERN = "fpp"

#: The suite's own tool; checks of other tools are weekly, unless a site file selects them.
DEFAULT_TOOL = "benchio"

#: The tool that takes so long that only a list of the site selects it, and never daily.
NEVER_UNASKED = frozenset({"io500"})


def tags_of(check: Mapping, extras: Mapping, transport: str) -> set[str]:
    """The tags of `check`, by its fields, on a partition whose default transport is `transport`.

    A list of the site replaces the default selection, but weekly always includes daily.
    """
    # a list with only cases adds to the default selection
    listed = {
        tag: [entry for entry in entries if "case" not in entry]
        for tag, entries in extras.get("selections", {}).items()
        if not entries or any("case" not in entry for entry in entries)
    }
    recommended = [entry for entry in extras.get("recommended", []) if "case" not in entry]
    by_default = has_default_settings(check, extras, transport)

    def selected(tag: str, otherwise: bool) -> bool:
        if tag in listed:
            return any(matches(check, entry, extras) for entry in listed[tag])
        return otherwise

    tags = {FULL}
    is_recommended = any(matches(check, entry, extras) for entry in recommended)
    # The patterns that matter to a site are the ones with recommended settings.
    patterns = {entry["pattern"] for entry in recommended if "pattern" in entry}
    matters = check["tool"] == DEFAULT_TOOL and (check["pattern"] in patterns or not patterns)
    if check["tool"] in NEVER_UNASKED:
        by_default = is_recommended = False
    if selected("daily", is_recommended or (by_default and matters)):
        tags |= {"daily", "weekly"}
    if selected("weekly", by_default):
        tags.add("weekly")
    if selected("smoke", _is_smoke(check, extras, transport)):
        tags.add("smoke")
    return tags


def tags_of_case(check: Mapping, extras: Mapping) -> set[str]:
    """The tags of a case, which come only from the site's lists that name it."""
    lists = {**extras.get("selections", {})}
    lists["daily"] = [*lists.get("daily", []), *extras.get("recommended", [])]
    found = {
        tag
        for tag, entries in lists.items()
        if any(matches(check, entry, extras) for entry in entries if "case" in entry)
    }
    return found | ({"weekly"} if "daily" in found else set())


def interval_days(tags: set[str], extras: Mapping) -> float | None:
    """The shortest interval in days that the site declares for one of `tags`; None without one."""
    declared = extras.get("schedule", {})
    found = [seconds_of(declared[tag]) for tag in tags if tag in declared]
    return min(found, default=0) / 86400 or None


def matches(check: Mapping, entry: Mapping, extras: Mapping) -> bool:
    """Whether an entry selects a check. A field left out matches any value, scale the first one.

    If neither a tool nor a case is named, the tool is benchio. A case without its setting matches
    any setting. A stripe count is ignored for a file system without stripes.
    """
    entry = {"scale": next(iter(extras["scales"])), **entry}
    if "case" in entry:
        case = entry.pop("case")
        if case not in (check["case"], check["case"].partition(" ")[0]):
            return False
    else:
        entry.setdefault("tool", DEFAULT_TOOL)
    if check["stripe_count"] is None:
        entry.pop("stripe_count", None)
    return all(check[name] == value for name, value in entry.items())


def has_default_settings(
    check: Mapping, extras: Mapping, transport: str, scale: str | None = None
) -> bool:
    """Whether a check runs with the default settings: the first of each list."""
    return check["file_system"] in extras["filesystems"] and (
        check["stripe_count"],
        check["transport"],
        check["hints"],
        check["scale"],
    ) == (
        extras["filesystems"][check["file_system"]].get("stripe_counts", [None])[0],
        transport,
        "default",
        scale or next(iter(extras["scales"])),
    )


def _is_smoke(check: Mapping, extras: Mapping, transport: str) -> bool:
    fields = {"tool": DEFAULT_TOOL, "pattern": SMOKE_PATTERN}
    return fields.items() <= check.items() and has_default_settings(
        check, extras, transport, scale=smallest_scale(extras["scales"])
    )


def smallest_scale(scales: Mapping[str, Mapping]) -> str:
    """The scale that moves the least data, of the ones with a known number of nodes."""

    def size(name: str) -> tuple[bool, int]:
        scale = scales[name]
        if isinstance(scale["nodes"], str):
            return True, 0
        volume = scale["nodes"] * scale["tasks_per_node"] * scale["mib_per_task"]
        return False, volume * scale.get("repeats", 1)

    return min(scales, key=size)
