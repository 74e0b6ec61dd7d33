"""What a run proved to be in effect."""

from __future__ import annotations

import pytest

from iobands.status.in_effect import InEffect, in_effect


@pytest.mark.parametrize(
    ("effect", "words"),
    [
        (InEffect(), ""),
        (InEffect(cache="dropped"), ""),
        (InEffect(stripe_count=4), "4"),
        (InEffect(stripe_count=1, stripe_size=512 * 1024), "1×0.5 MiB"),
        (InEffect(transport="ofi"), "ofi"),
        (InEffect(4, 4 * 2**20, "ucx", "cb_nodes=2", "none"), "4×4 MiB ucx 1 hint"),
    ],
)
def test_in_a_few_words(effect, words):
    assert effect.brief() == words


def test_what_a_sample_proves() -> None:
    sample = {"stripe_count": 4, "stripe_size": 2**20, "transport": "ofi", "cache": "dropped"}
    sample["transport_in_effect"] = "ucx"
    assert in_effect(sample) == InEffect(4, 2**20, "ucx", None, "dropped")
