"""The settings in effect in a run, as the run itself proved them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_MIB = 2**20


@dataclass(frozen=True)
class InEffect:
    """Layout, transport and hints of one sample; None where there are none, or no evidence.

    `stripe_size` is in bytes; `hints` are written as `name=value,...`; `cache` is what contract 1
    says of the reads.
    """

    stripe_count: int | None = None
    stripe_size: int | None = None
    transport: str | None = None
    hints: str | None = None
    cache: str | None = None

    def brief(self) -> str:
        """Return it in a few words, such as `4×1 MiB ucx 2 hints`; empty if there is none."""
        words = []
        if self.stripe_count is not None:
            size = "" if self.stripe_size is None else f"×{self.stripe_size / _MIB:g} MiB"
            words.append(f"{self.stripe_count}{size}")
        if self.transport is not None:
            words.append(self.transport)
        if self.hints is not None:
            number = self.hints.count(",") + 1
            words.append(f"{number} hint{'s' if number > 1 else ''}")
        return " ".join(words)


def in_effect(sample: Mapping[str, Any]) -> InEffect:
    """Return what was in effect in a sample, by what it says."""
    return InEffect(
        sample.get("stripe_count"),
        sample.get("stripe_size"),
        sample.get("transport_in_effect"),
        sample.get("hints_in_effect"),
        sample.get("cache"),
    )
