"""What a site recommends, and what it has measured daily, weekly and as a smoke test."""

from __future__ import annotations

from collections.abc import Iterator

from .fields import SiteConfigurationError, check_choice, check_fields
from .words import PATTERNS, TOOLS, TRANSPORTS

_SELECTION = {
    "tool": (str, None),
    "pattern": (str, None),
    "interface": (str, None),
    "file_system": (str, None),
    "medium": (str, None),
    "stripe_count": (int, None),
    "transport": (str, None),
    "hints": (str, None),
    "scale": (str, None),
}
_SELECTIONS = {"daily": (list, None), "weekly": (list, None), "smoke": (list, None)}


def check_selections(extras: dict, where: str) -> None:
    """Check `recommended` and `selections`, whose entries name what else is in `extras`.

    Raises:
        SiteConfigurationError: something is unknown or of the wrong type.
    """
    check_fields(extras.get("selections", {}), _SELECTIONS, f"{where}: selections")
    for name, number, selection in selecting(extras):
        here = f"{where}: {name}, entry {number}"
        _check_selection(selection, extras, here)
        if selection.get("tool") == "io500" and name in ("daily", "recommended"):
            raise SiteConfigurationError(f"{here}: io500 is never daily; it takes too long")


def selecting(extras: dict) -> Iterator[tuple[str, int, dict]]:
    """Yield each entry that selects checks, behind the name of its list and its number there."""
    lists = {"recommended": extras.get("recommended", []), **extras.get("selections", {})}
    for name, entries in lists.items():
        for number, entry in enumerate(entries, start=1):
            yield name, number, entry


def _check_selection(selection: dict, extras: dict, where: str) -> None:
    check_fields(selection, _SELECTION, where)
    choices = {
        "tool": TOOLS,
        "pattern": PATTERNS,
        "file_system": tuple(extras["filesystems"]),
        "medium": tuple({entry["medium"]: None for entry in extras["filesystems"].values()}),
        "transport": TRANSPORTS,
        "hints": ("default", *extras.get("hint_presets", {})),
        "scale": tuple(extras["scales"]),
        "stripe_count": tuple(
            count
            for entry in extras["filesystems"].values()
            for count in entry.get("stripe_counts", [])
        ),
    }
    for field, allowed in choices.items():
        if field in selection:
            check_choice(selection[field], allowed, f"{where}: {field}")
