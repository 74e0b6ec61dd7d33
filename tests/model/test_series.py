"""Series: which samples belong together, and labels that tell series apart."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from iobands.model import SERIES_FIELDS, SeriesKey, labels, slug

KEY = SeriesKey(
    "here", "local", "builtin", "benchio", "fpp", "posix", "disk", None, "default", "default",
    1, 4, 0.5, "write_bw",
)  # fmt: skip


def test_labels_say_no_more_than_they_must() -> None:
    alone = replace(KEY, file_system="nvme", stripe_count_asked=-1)
    striped = replace(KEY, stripe_count_asked=-1)
    four = replace(KEY, stripe_count_asked=4)
    assert labels([KEY, alone]) == {KEY: "disk fpp write_bw", alone: "nvme fpp write_bw"}
    assert labels([KEY, striped, four, alone]) == {
        KEY: "disk fpp unstriped write_bw",
        striped: "disk fpp stripes=all write_bw",
        four: "disk fpp stripes=4 write_bw",
        alone: "nvme fpp write_bw",
    }


def test_labels_of_transports_hints_and_scales() -> None:
    ucx = replace(KEY, transport="ucx")
    hinted = replace(ucx, hints="archer2-ssf")
    wide = replace(KEY, nodes=16)
    assert labels([KEY, ucx, hinted]) == {
        KEY: "disk fpp transport=default hints=default write_bw",
        ucx: "disk fpp ucx hints=default write_bw",
        hinted: "disk fpp ucx archer2-ssf write_bw",
    }
    ofi = replace(KEY, transport="ofi", environ="openmpi-ofi")
    openmpi = replace(KEY, transport="ucx", environ="openmpi-ucx")
    mpich = replace(KEY, transport="ucx", environ="mpich-ucx")
    assert labels([ofi, mpich]) == {
        ofi: "disk fpp ofi write_bw",
        mpich: "disk fpp ucx write_bw",
    }
    # Here the environment tells all series apart, and names the transport as well.
    assert labels([ofi, openmpi, mpich]) == {
        ofi: "disk fpp openmpi-ofi write_bw",
        openmpi: "disk fpp openmpi-ucx write_bw",
        mpich: "disk fpp mpich-ucx write_bw",
    }
    # measuring a case does not rename a daily series
    pinned = replace(KEY, case="node n2")
    assert labels([KEY, pinned]) == {
        KEY: "disk fpp write_bw",
        pinned: "disk fpp case=node n2 write_bw",
    }
    assert labels([KEY, wide]) == {
        KEY: "disk fpp nodes=1 write_bw",
        wide: "disk fpp nodes=16 write_bw",
    }


NAMES = st.sampled_from(["a", "b", "a/b", "a_b", "ä"])
KEYS = st.builds(
    replace,
    st.just(KEY),
    system=NAMES,
    partition=NAMES,
    file_system=NAMES,
    pattern=NAMES,
    stripe_count_asked=st.sampled_from([None, -1, 1]),
    hints=NAMES,
    nodes=st.integers(1, 3),
)


@given(st.sets(KEYS, max_size=12))
def test_names_are_unique(keys: set[SeriesKey]) -> None:
    assert len(set(labels(keys).values())) == len(keys)
    slugs = {slug(key) for key in keys}
    assert len(slugs) == len(keys)
    assert all("/" not in text and text.isascii() for text in slugs)


def test_numbers_sort_by_size() -> None:
    keys = [replace(KEY, nodes=nodes) for nodes in (16, 2, 1)]
    assert [key.nodes for key in sorted(keys, key=SeriesKey.sort_key)] == [1, 2, 16]


def test_a_series_is_the_series_fields_and_the_variable() -> None:
    assert set(KEY.fields()) == {*SERIES_FIELDS, "variable"}
    assert {*SERIES_FIELDS, "variable"} == set(SeriesKey.__dataclass_fields__)


def test_slugs_stay_as_they_were_when_the_column_of_cases_came() -> None:
    assert slug(KEY) == (
        "here-local-builtin-benchio-fpp-posix-disk-none-default-default-1-4-0.5-write_bw-294da33a"
    )
    assert slug(KEY) != slug(replace(KEY, case="csc-aggregators 2"))


def test_series_whose_fields_run_together_have_names_of_their_own() -> None:
    pairs = [
        (
            {"partition": "cpu", "environ": "large-gnu"},
            {"partition": "cpu-large", "environ": "gnu"},
        ),
        ({"hints": None}, {"hints": "none"}),
        ({"gib": 2.0**20}, {"gib": 2.0**20 + 1}),
    ]
    for one, other in pairs:
        both = [replace(KEY, **one), replace(KEY, **other)]
        assert len({*map(slug, both)}) == 2
        assert len({*labels(both).values()}) == 2
    # logs contain these names: this one is from an earlier version
    assert slug(KEY).endswith("-1-4-0.5-write_bw-294da33a")
