"""The settings in effect in the newest sample, in a few words."""

from pathlib import Path

import pytest

from iobands.snapshot.series import InEffect
from tests.factory import days_ago, line
from tests.sites import SiteFiles, only

STRIPED = {
    "stripe_count_asked": "-1",
    "stripe_count": "4",
    "stripe_size": str(2**20),
    "transport": "ucx",
    "transport_in_effect": "ucx",
    "hints": "two-aggregators",
    "hints_in_effect": "cb_nodes=2,romio_cb_write=enable",
    "cache": "dropped",
}


@pytest.mark.parametrize(
    ("effect", "words"),
    [
        (InEffect(), ""),
        (InEffect(cache="dropped"), ""),
        (InEffect(stripe_count=4), "4 stripes"),
        (InEffect(stripe_count=1, stripe_size=512 * 1024), "1 stripe of 0.5 MiB"),
        (InEffect(transport="ofi"), "transport ofi"),
        (
            InEffect(4, 4 * 2**20, "ucx", "a=1,b=2", "none"),
            "4 stripes of 4 MiB, transport ucx, 2 hints",
        ),
    ],
)
def test_in_a_few_words(effect: InEffect, words: str) -> None:
    assert effect.text() == words


def test_the_newest_sample_says_it(tmp_path: Path) -> None:
    rows = [
        line(**{**STRIPED, "stripe_count": "3"}, job_completion_time=days_ago(2)),
        line(**STRIPED, job_completion_time=days_ago(1)),
    ]
    found = only(SiteFiles(tmp_path).write(rows).read()).in_effect
    hints = STRIPED["hints_in_effect"]
    assert found == InEffect(4, 2**20, "ucx", hints, "dropped")


def test_a_sample_that_proves_nothing(tmp_path: Path) -> None:
    found = only(SiteFiles(tmp_path).write([line(job_completion_time=days_ago(1))]).read())
    assert found.in_effect == InEffect(cache="dropped")
