"""What `iobands explain` prints and draws, once there is a survey.

May know every other module; has no logic of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import typer

from iobands.alerts.pools import Pool
from iobands.commands.options import failure
from iobands.reporting.explain import chosen, explain, explanation_text
from iobands.reporting.explain_pool import chosen_pools, explain_pool, pool_text
from iobands.reporting.format import nearest
from iobands.status.survey import Series, Survey


def tell(survey: Survey, wanted: str, figure: Path | None) -> None:
    """Print why the series or the pool that `wanted` means is in its state, and draw it.

    A pool is meant where `wanted` is its name, or where no series is like it. Ends with a message
    when nothing or several are meant, or when the figure cannot be written.
    """
    pools = chosen_pools(survey, wanted)
    named = [pool for pool in pools if pool.name == wanted]
    found = _one(named or chosen(survey, wanted) or pools, wanted, survey)
    form = figure.suffix[1:].lower() if figure else ""
    drawn = None
    if isinstance(found, Pool):
        told = explain_pool(survey, found)
        typer.echo(pool_text(told, survey), nl=False)
        if figure:
            from iobands.reporting.figures_pool import pool_evidence  # noqa: PLC0415 (matplotlib is slow)

            drawn = pool_evidence(told, survey.now, form)
    else:
        typer.echo(explanation_text(explain(survey, found), survey), nl=False)
        if figure and found.status.runs:
            from iobands.reporting.figures import evidence  # noqa: PLC0415 (as above)

            drawn = evidence(found, survey.now, form)
    if figure and drawn is not None:
        try:
            figure.write_bytes(drawn)
        except OSError as error:
            raise failure(f"{figure}: {error.strerror}") from error
        typer.echo(f"Figure: {figure.resolve()}")


def _one(found: Sequence[Series | Pool], wanted: str, survey: Survey) -> Series | Pool:
    """Return the only one of `found`, or end with a message that lists the candidates."""
    if len(found) == 1:
        return found[0]
    if found:
        names = nearest(_names(found), wanted)
        raise failure(f"{wanted} may be any of {len(found)}:{names}")
    raise failure(
        f"no series is called {wanted}; there are:{nearest(_names(survey.series), wanted)}\n"
        f"and in common:{nearest(_names(survey.pools), wanted)}"
    )


def _names(found: Sequence[Series | Pool]) -> list[str]:
    return [each.label if isinstance(each, Series) else each.name for each in found]
