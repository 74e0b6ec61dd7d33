"""Fields and what each may hold: the checking that all parts of a site file have in common."""

from __future__ import annotations

import re

#: In place of a default: the field must be there.
REQUIRED = object()

_DURATION = re.compile(r"(?=.)(\d+d)?(\d+h)?(\d+m)?(\d+s)?")


class SiteConfigurationError(ValueError):
    """A site file breaks contract 4; the message names the file, the place and the remedy."""


def check_fields(values: object, fields: dict, where: str) -> None:
    """Check that `values` has the fields that are required, no others than `fields`, and types.

    `fields` has for each its type or types, and a default or `REQUIRED`.

    Raises:
        SiteConfigurationError: it does not.
    """
    if not isinstance(values, dict):
        raise SiteConfigurationError(f"{where}: must be a dictionary, not {values!r}")
    for field in values:
        check_choice(field, tuple(fields), f"{where}: the name")
    for field, (kind, default) in fields.items():
        if field not in values:
            if default is REQUIRED:
                raise SiteConfigurationError(f"{where}: {field!r} is missing; add it")
        elif not isinstance(values[field], kind) or (
            isinstance(values[field], bool) and kind is not bool
        ):
            raise SiteConfigurationError(f"{where}: {field} has the wrong type: {values[field]!r}")


def check_choice(value: object, allowed: tuple, where: str) -> None:
    """Check that `value` is one of those that are allowed.

    Raises:
        SiteConfigurationError: it is not.
    """
    if value not in allowed:
        raise SiteConfigurationError(
            f"{where} {value!r} is unknown; there are: {', '.join(map(str, allowed))}"
        )


def check_duration(values: dict, field: str, where: str) -> None:
    """Check that a field is a duration in ReFrame's form, where it is there.

    Raises:
        SiteConfigurationError: it is not.
    """
    if field in values and not _DURATION.fullmatch(values[field]):
        raise SiteConfigurationError(
            f"{where}: {field} {values[field]!r} must be like '20m' or '1h30m'"
        )
