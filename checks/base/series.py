"""Refuses two checks with samples in one series, which could not be distinguished.

Every loaded check claims its series, selected or not, as another session may have run the other
check. ReFrame only warns of errors while a check loads, so a check that shares a series fails in
its setup, before anything is built or submitted.
"""

import argparse
import sys
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache

import reframe as rfm
from reframe.core.exceptions import ReframeError, SkipTestError

from .package import SERIES_FIELDS, SHARED_SERIES, canonical

# The parameters by which ReFrame repeats a point on purpose.
_REPEATS = frozenset({".repeat_no", ".nid", ".part"})

_OWN_FIELDS = [name for name in SERIES_FIELDS if name not in ("system", "partition", "environ")]


@cache
def _set_variables(arguments: tuple[str, ...]) -> list[str]:
    """The words of `reframe -S`, as they stand in the arguments."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("-S", "--setvar", action="append", default=[])
    return parser.parse_known_args(arguments)[0].setvar


def set_by_hand(check: str, *, by_name: bool = False) -> dict[str, str]:
    """The variables of a check that `reframe -S` sets, with their values.

    With `by_name`, without the variables that it sets for all checks.
    """
    found = {}
    for word in _set_variables(tuple(sys.argv[1:])):
        name, _, value = word.partition("=")
        test, _, variable = name.rpartition(".")
        if test == check or not (test or by_name):
            found[variable] = value
    return found


@cache
def _unknown_settings() -> tuple[str, ...]:
    """The variables of `reframe -S` that no loaded check has, or whose check is not loaded."""
    checks = [rfm.RegressionTest]
    for check in checks:
        checks += check.__subclasses__()
    known = {name for check in checks for name in (check.__name__, *check.var_space)}
    names = (word.partition("=")[0] for word in _set_variables(tuple(sys.argv[1:])))
    return tuple(name for name in names if name.partition(".")[0] not in known)


@contextmanager
def refused_if_by_hand(check: str) -> Iterator[None]:
    """End ReFrame at a ValueError if its arguments set anything of a check; else it skips it.

    It would warn, run the rest, and exit with 0, even if nothing is left to run.
    """
    try:
        yield
    except ValueError as error:
        if set_by_hand(check) or any(word.startswith(("-P", "--param")) for word in sys.argv[1:]):
            sys.exit(f"ERROR: {error}")
        raise


class SharedSeriesError(ReframeError):
    """Two checks feed one series; the message names both and the field to set."""


@dataclass(frozen=True)
class Claim:
    """A point of a check that feeds a series."""

    check: str
    name: str
    #: The classes that the check extends.
    bases: frozenset[str]
    #: Whatever else decides what is measured; points with the same may share a series.
    measurement: tuple


_claims: dict[tuple, list[Claim]] = defaultdict(list)


class SeriesMixin(rfm.RegressionTestPlugin):
    """Claims the series of a check, and refuses the check if another one has them."""

    #: The parameters that only set sizes, which are series fields.
    sizing: tuple[str, ...] = ("scale",)

    #: The variables that decide what is measured but are not series fields: setting one by
    #: `reframe -S` or -P makes a case.
    deciding: tuple[str, ...] = ("fsync", "env_vars", "modules")

    def take_settings(self) -> None:
        """Add the settings of `reframe -S` and -P to the case's name, unless -S sets `case`.

        Raises:
            ValueError: a number is negative, so that its samples would be rejected later, or the
                check has no such variable, so that ReFrame would run it without the setting.
        """
        check = type(self).__name__
        for name in set_by_hand(check, by_name=True):
            if name not in type(self).var_space:
                raise ValueError(f"{check} has no variable {name!r} that can be set")
        for name in ("repeats", *self.deciding):
            value = getattr(self, name, None)
            if isinstance(value, int) and value < 0:
                raise ValueError(f"{name} is {value}: write 0 or a larger number")
        words = set_by_hand(check)
        # -P fsync=,1 adds the parameter `.fsync`
        added = {each for each in type(self).param_space.params if each[0] == "."} - _REPEATS
        words |= {name[1:]: getattr(self, name) for name in added}
        names = [name for name in self.deciding if name in words]
        changed = [f"{name} {self._spelled(name, words)}" for name in names]
        self.is_own_measurement = bool(changed) or "case" in words
        if changed and "case" not in words:
            self.case = " ".join(filter(None, [self.case, *changed]))

    def _spelled(self, name: str, words: dict[str, str]) -> str:
        """The value in effect, as ReFrame reads the word: `fsync=no` is `false`."""
        value = getattr(self, name)
        return words[name] if isinstance(value, list | dict) else str(value).lower()

    def claim_series(self) -> None:
        """Claim the series of this check, once all fields are set.

        Raises:
            ValueError: a field would break the line of a perflog.
        """
        for name in _OWN_FIELDS:
            value = getattr(self, name, None)
            if isinstance(value, str) and {*"|\r\n"} & {*value}:
                raise ValueError(f"{name} is {value!r}: write it without | and line breaks")
        for partition in self.valid_systems:
            for environ in self.valid_prog_environs:
                for variable in self.metrics:
                    self._claim(self._series(partition, environ, variable))

    def require_known_settings(self) -> None:
        """Fail if `reframe -S` sets a variable that no check has, once all checks are loaded.

        Raises:
            ValueError: it does, so that ReFrame would run every check without the setting.
        """
        if unknown := _unknown_settings():
            raise ValueError(f"-S {unknown[0]}=...: no check has this variable")

    def require_own_series(self) -> None:
        """Fail if another check feeds a series of this one.

        Raises:
            SharedSeriesError: another check does, and does not extend this one.
        """
        self._claim_for_unloaded_bases()
        for variable in self.metrics:
            key = self._series(self.current_partition.fullname, self.current_environ.name, variable)
            own = self._claim(key)
            for other in _claims[key]:
                # If one of two checks extends the other, the extending one is refused.
                if other.measurement != own.measurement and own.check not in other.bases:
                    raise SharedSeriesError(
                        f"{self.display_name} and {other.name} {SHARED_SERIES} of {variable}: no "
                        "series field distinguishes them; set the field 'case' of one of them, "
                        "such as case = 'my-setting'"
                    )

    @property
    def measurement(self) -> tuple:
        """The check and its parameters that are not series fields; they decide what is measured."""
        parameters = {
            name: getattr(self, name)
            for name in type(self).param_space.params
            if name not in {*_REPEATS, *self.sizing}
        }
        return type(self).__name__, repr(sorted(parameters.items()))

    def _series(self, partition: str, environ: str, variable: str) -> tuple:
        fields = {name: canonical(getattr(self, name, None)) for name in _OWN_FIELDS}
        if self.is_flexible:  # the scheduler decides its numbers later
            sizes = ("nodes", "tasks_per_node", "mib_per_task")
            fields |= dict.fromkeys(("nodes", "tasks", "gib"))
            fields |= {name: self.scale_settings[name] for name in sizes}
        return partition, environ, variable, *fields.items()

    def _claim(self, key: tuple) -> Claim:
        bases = frozenset(base.__name__ for base in type(self).__mro__[1:])
        claim = Claim(type(self).__name__, self.display_name, bases, self.measurement)
        if claim not in _claims[key]:
            _claims[key].append(claim)
        return claim

    def _claim_for_unloaded_bases(self) -> None:
        """Make the checks that this one extends claim, if ReFrame was not asked to load them."""
        loaded = {claim.check for claims in _claims.values() for claim in claims}
        # compares names, as ReFrame and `import` give a module different names
        for base in type(self).__mro__[1:]:
            registry = getattr(sys.modules[base.__module__], "_rfm_test_registry", ())
            if base in registry and base.__name__ not in loaded:
                for variant in range(base.num_variants):
                    with suppress(SkipTestError):  # a point that no partition has
                        base(variant_num=variant)
