"""What is said of an alert: its name, by what its series share and what moved; its certainty."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from iobands.judge.budget import Budget
from iobands.snapshot import SHARED, Certainty, Series

# What is said of the variables that nearly every check has.
_MOVED: Final = {"write_bw": "writes", "read_bw": "reads"}


def shared_by(members: Sequence[Series], series: Iterable[Series]) -> tuple[str, str] | None:
    """Return the field and value that all members share, of several what the fewest series share.

    None where they share nothing that can fail for all of them.
    """
    system = members[0].key.system
    variables = {each.key.variable for each in members}
    every = [each for each in series if each.key.system == system]
    every = [each for each in every if each.key.variable in variables]
    found = []
    for field in SHARED:
        values = {each.trait(field) for each in members}
        if len(values) == 1 and (value := values.pop()) is not None:
            number = sum(each.trait(field) == value for each in every)
            found.append((number, field, value))
    least = min(found, key=lambda each: each[0], default=None)
    return least and least[1:]


def subject_of(members: Sequence[Series], series: Iterable[Series]) -> str:
    """Return what an alert is called: the label of a series, or such as `scratch writes`."""
    if len(members) == 1:
        return members[0].label
    places = {each.trait("file_system") for each in members}
    patterns = {each.trait("pattern") for each in members}
    if len(places) == 1 and None not in places:
        words = [*map(str, places), *map(str, patterns if len(patterns) == 1 else ())]
    else:
        shared = shared_by(members, series)
        words = [SHARED[shared[0]].format(shared[1])] if shared else [f"{len(members)} series"]
    variables = {each.key.variable for each in members}
    if len(variables) == 1:
        (variable,) = variables
        words.append(_MOVED.get(variable, variable))
    return " ".join(words)


# The odds that a change is real, if one real change a year is expected on the site.
_CERTAIN_ODDS: Final = 1000.0

_LIKELY_ODDS: Final = 10.0


def certainty(score: float, budget: Budget) -> Certainty:
    """Return how certain a change with the evidence `score` is on a site with this budget.

    The odds compare one real change a year with the false alarms a year of such a score.
    """
    odds = budget.years_to_false_alarm(score)
    if odds >= _CERTAIN_ODDS:
        return Certainty.CERTAIN
    return Certainty.LIKELY if odds >= _LIKELY_ODDS else Certainty.POSSIBLE
