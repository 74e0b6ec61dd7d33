"""What an action does to the bands."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime
from typing import Final

from iobands.bands import Band, Bands, Epoch, Span
from iobands.snapshot import DISCARD, REBASELINE, RESOLVE, Action

# Why the samples of an action are not judged.
_LEFT_OUT: Final = {RESOLVE: "resolved: {}", DISCARD: "discarded: {}"}


def bands_after(bands: Bands, actions: Iterable[Action]) -> Bands:
    """Return `bands` for one series after `actions`, all in force and about it.

    A rebaseline begins an epoch of this series in which no earlier band holds. Discarded samples,
    and samples of a resolved alert, are left out.
    """
    for action in actions:
        if action.kind == REBASELINE and action.since is not None:
            bands = _rebaselined(bands, action, action.since)
        if action.kind in _LEFT_OUT and action.since is not None and action.until is not None:
            why = _LEFT_OUT[action.kind].format(action.reason)
            bands = bands.leaving_out(Span(action.since, action.until, why))
    return bands


def _rebaselined(bands: Bands, action: Action, since: datetime) -> Bands:
    before = [epoch for epoch in bands.epochs if epoch.since <= since]
    old = [_identity(band) for epoch in before for band in epoch.bands]
    after = [
        replace(epoch, bands=tuple(one for one in epoch.bands if _identity(one) not in old))
        for epoch in bands.epochs
        if epoch.since > since
    ]
    anew = Epoch(f"{REBASELINE} {since:%Y-%m-%d}", since, action.who, (), action.reason)
    return replace(bands, epochs=(*before, anew, *after))


def _identity(band: Band) -> tuple[object, ...]:
    match = frozenset(band.wanted.items())
    return (match, band.lower_quartile, band.median, band.upper_quartile, band.maximum, band.floor)
