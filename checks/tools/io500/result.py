"""IO500's results: its result.txt, and what a run must prove by it.

Pure functions over text, independent of ReFrame and of a site.
"""

import configparser
import re
from dataclasses import dataclass

from ...base.proof import ResultError, differences

_SCORES = {"io500_score": "SCORE", "io500_bandwidth": "BW", "io500_metadata": "MD"}
_PHASES = (
    *("ior-easy-write", "mdtest-easy-write", "ior-hard-write", "mdtest-hard-write", "find"),
    *("ior-easy-read", "mdtest-easy-stat", "ior-hard-read", "mdtest-hard-stat"),
    *("mdtest-easy-delete", "mdtest-hard-read", "mdtest-hard-delete"),
)

#: By variable of the perflog: the section of result.txt and the name there.
VARIABLES = {
    **{variable: ("SCORE", name) for variable, name in _SCORES.items()},
    **{phase.replace("-", "_"): (phase, "score") for phase in _PHASES},
}

_INVALID = re.compile(r"^; ERROR INVALID (.*)$", re.MULTILINE)
# A run that is limited in size or time breaks only these rules of IO500, on purpose.
_OF_A_LIMIT = re.compile(r"stonewall|minimum runtime")


@dataclass(frozen=True)
class Result:
    """A run of IO500: its values by variable, and why it is invalid by IO500's rules."""

    version: str | None
    processes: int
    values: dict[str, float]
    invalid: tuple[str, ...]


def read_result(text: str) -> Result:
    """The content of a result.txt.

    Raises:
        ResultError: a value is missing.
    """
    parser = configparser.ConfigParser(
        interpolation=None, strict=False, comment_prefixes=(";",), delimiters=("=",)
    )
    parser.optionxform = str
    try:
        parser.read_string(text)
        values = {
            variable: float(parser[section][name].split()[0])
            for variable, (section, name) in VARIABLES.items()
        }
        run = parser["run"]
        version, processes = run.get("version") or None, int(run["procs"])
    except (configparser.Error, KeyError, ValueError, IndexError) as error:
        raise ResultError(f"result.txt: not the result of a complete run: {error}") from error
    reasons = dict.fromkeys(reason.strip() for reason in _INVALID.findall(text))
    return Result(version, processes, values, tuple(reasons))


def unproven(found: Result, processes: int, limited: bool) -> list[str]:
    """What the run does not prove, as text; a `limited` run breaks IO500's rules on purpose."""
    problems = differences({"processes": processes}, vars(found))
    problems += [
        f"invalid by IO500's rules: {reason}"
        for reason in found.invalid
        if not (limited and _OF_A_LIMIT.search(reason))
    ]
    problems += [
        f"{variable} is {value}"
        for variable, value in found.values.items()
        if not 0 < value < float("inf")
    ]
    return problems
