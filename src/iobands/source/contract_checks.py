"""Which check of a site measures a line of a contract."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from iobands.bands.contract import Contract, ContractLine
from iobands.measure.cost import Cost, costs_of
from iobands.model import SERIES_FIELDS, FileError, canonical, unknown
from iobands.source.acceptance import MeasuredBy


def check_of(
    contract: Contract, number: int, described: Sequence[Mapping[str, Any]]
) -> tuple[MeasuredBy, Cost]:
    """Return the one check that measures a line, and what a run of it costs.

    Raises:
        FileError: there is none, or more than one; the message says what to write.
    """
    line = contract.lines[number]
    every = [
        {**check, "partition": place.partition(":")[2], "environ": environ}
        | {"valid_systems": [place], "valid_prog_environs": [environ]}
        for check in described
        if check.get("tool") and "gib" in check
        for place in check["valid_systems"]
        for environ in check["valid_prog_environs"]
    ]
    found = [each for each in every if line.is_of(each)]
    if len(found) == 1:
        (one,) = found
        by = MeasuredBy(one["display_name"], one["partition"], one["environ"])
        return by, costs_of(found)[0]
    raise _several(contract, number, found) if found else _none(contract, number, line, every)


def _several(contract: Contract, number: int, found: Sequence[Mapping[str, Any]]) -> FileError:
    open_ = [
        f"{name} ({', '.join(values)})"
        for name in SERIES_FIELDS
        if len(values := sorted({_text(each.get(name)) for each in found})) > 1
    ]
    problem = f"selects {len(found)} measurements; also name {' and '.join(open_)}"
    return contract.document.error(["lines", number, "match"], problem)


def _none(
    contract: Contract, number: int, line: ContractLine, every: Sequence[Mapping[str, Any]]
) -> FileError:
    """Return the error for a field with a value that no check has, or for their combination."""
    steps: list[str | int] = ["lines", number, "match"]
    others = [name for name in line.match if name != "variable"]
    for name in others:
        values = {_text(each.get(name)) for each in every}
        if _text(line.match[name]) not in values:
            return contract.document.error(
                [*steps, name], unknown(line.match[name], sorted(values))
            )

    def lacking(each: Mapping[str, Any]) -> list[str]:
        return [name for name in others if canonical(each.get(name)) != canonical(line.match[name])]

    near = min(every, key=lambda each: len(lacking(each)))
    has = ", ".join(f"{name} {_text(near.get(name))}" for name in lacking(near) or ["case"])
    problem = f"selects no measurement of this site; the nearest one has {has}"
    return contract.document.error(steps, problem)


def _text(value: object) -> str:
    known = canonical(value)
    return "null" if known is None else f"{known:g}" if isinstance(known, float) else known
