"""What took effect is shown beside what was asked for, from the newest sample."""

import json
from pathlib import Path

import pytest
from rich.console import Console

from iobands.reporting.digest import digest_text
from iobands.reporting.digest_json import as_json
from iobands.reporting.page import render
from iobands.status.in_effect import InEffect
from iobands.status.survey import take_survey
from tests.package.factory import NOW, days_ago, line, write_perflog

STRIPED = {
    "file_system": "ceph",
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
        (InEffect(stripe_count=4), "4"),
        (InEffect(stripe_count=1, stripe_size=512 * 1024), "1×0.5 MiB"),
        (InEffect(transport="ofi"), "ofi"),
        (InEffect(4, 4 * 2**20, "ucx", "cb_nodes=2", "none"), "4×4 MiB ucx 1 hint"),
    ],
)
def test_in_a_few_words(effect, words):
    assert effect.brief() == words


@pytest.fixture
def survey(tmp_path: Path):
    write_perflog(
        tmp_path / "perflogs",
        [
            line(**{**STRIPED, "stripe_count": "3"}, job_completion_time=days_ago(2)),
            line(**STRIPED, job_completion_time=days_ago(1)),
            line(job_completion_time=days_ago(1)),
        ],
    )
    return take_survey(tmp_path / "perflogs", tmp_path, now=NOW)


def test_the_digest_has_a_column_for_it(survey):
    rows = digest_text(survey, Console(width=140, force_terminal=False)).splitlines()
    heading = next(row for row in rows if row.startswith("SERIES"))
    at = heading.index("IN EFFECT")
    striped = next(row for row in rows if row.startswith("ceph fpp"))
    assert striped[at:].startswith("4×1 MiB ucx 2 hints ")
    assert next(row for row in rows if row.startswith("disk fpp"))[at:].startswith(" ")


def test_json_and_page_tell_all_of_it(survey):
    striped = next(s for s in as_json(survey)["series"] if s["file_system"] == "ceph")
    assert json.loads(json.dumps(striped["in_effect"])) == {
        "stripe_count": 4,
        "stripe_size": 2**20,
        "transport": "ucx",
        "hints": "cb_nodes=2,romio_cb_write=enable",
        "cache": "dropped",
    }
    page = render(survey)
    assert "hints <b>cb_nodes=2,romio_cb_write=enable</b>" in page
    assert "stripe size in bytes <b>1048576</b>" in page
