"""A hint preset of a site: what it sets, and which hints must then be seen in effect."""

from __future__ import annotations

from .fields import SiteConfigurationError, check_choice, check_fields
from .words import MPI_LIBRARIES, TRANSPORTS

_HINT_PRESET = {
    "env_vars": (dict, None),
    "romio_hints": (dict, None),
    "hints": (dict, None),
    "transports": (list, None),
    "mpi": (list, None),
}


def check_hint_preset(name: str, preset: dict, where: str) -> None:
    """Check one entry of `hint_presets`.

    Raises:
        SiteConfigurationError: something is unknown or of the wrong type or value.
    """
    if name == "default":
        raise SiteConfigurationError(
            f"{where}: a hint preset cannot be named 'default', which sets nothing"
        )
    where = f"{where}: hint preset {name!r}"
    check_fields(preset, _HINT_PRESET, where)
    for field, allowed in (("transports", TRANSPORTS), ("mpi", MPI_LIBRARIES)):
        for value in preset.get(field, []):
            check_choice(value, allowed, f"{where}: {field}")
    if preset.get("hints") and not (preset.get("env_vars") or preset.get("romio_hints")):
        raise SiteConfigurationError(
            f"{where}: hints must be in effect, and nothing here sets them; add env_vars or "
            "romio_hints"
        )
    for field in ("hints", "romio_hints"):
        for hint, value in preset.get(field, {}).items():
            if not isinstance(value, str):
                raise SiteConfigurationError(
                    f"{where}: {field}: {hint}: {value!r} must be text, in quotes"
                )
            if field == "romio_hints" and f"{hint} {value}".split() != [hint, value]:
                # ROMIO ignores such a line of its file without a word.
                raise SiteConfigurationError(
                    f"{where}: romio_hints: {hint!r}: {value!r}: neither may be empty or have a "
                    "blank in it"
                )
