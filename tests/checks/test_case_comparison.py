"""What the results of both sides of a case say together."""

import json

import pytest

from checks.cases.comparison import cache_of_reads, result_file


def write_reads(stage, side, caches):
    for pair, cache in enumerate(caches, start=1):
        record = {"schema": "benchio/2", "operation": "read", "cache": cache}
        (stage / result_file(side, pair)).write_text(json.dumps(record) + "\n", encoding="utf-8")


@pytest.mark.parametrize(
    ("with_it", "without_it", "said"),
    [
        (["dropped", "dropped"], ["dropped", "dropped"], "dropped"),
        # One process reads what it wrote itself, all others what another node did.
        (["shifted", "shifted"], ["none", "none"], "none"),
        (["dropped", "none"], ["dropped", "dropped"], "none"),
    ],
)
def test_the_cache_is_that_of_all_reads(tmp_path, with_it, without_it, said):
    write_reads(tmp_path, "with", with_it)
    write_reads(tmp_path, "without", without_it)
    assert cache_of_reads(tmp_path, pairs=2) == said
