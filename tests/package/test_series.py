"""Series: what belongs together, and names that tell series apart."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from iobands.results.perflog import read_perflogs
from iobands.model.series import SeriesKey, labels, slug, split
from tests.package.factory import daily, write_perflog

KEY = SeriesKey(
    "here", "local", "builtin", "benchio", "fpp", "posix", "disk", None, "default", "default",
    1, 4, 0.5, "write_bw",
)  # fmt: skip


def test_series_are_told_apart_by_their_fields_alone(tmp_path: Path) -> None:
    rows = [
        *daily([1.0, 2.0]),
        *daily([3.0], last=5, nodes="1.0", jobid="7", version="5.0"),
        *daily([4.0], stripe_count_asked="-1"),
        *daily([5.0], perf_var="read_bw"),
    ]
    write_perflog(tmp_path, rows)
    found = {
        key: rows["perf_value"].tolist() for key, rows in split(read_perflogs(tmp_path).samples)
    }
    assert found == {
        KEY: [3.0, 1.0, 2.0],
        replace(KEY, stripe_count_asked=-1): [4.0],
        replace(KEY, variable="read_bw"): [5.0],
    }


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
    # Here the environment tells all apart, and says the transport as well.
    assert labels([ofi, openmpi, mpich]) == {
        ofi: "disk fpp openmpi-ofi write_bw",
        openmpi: "disk fpp openmpi-ucx write_bw",
        mpich: "disk fpp mpich-ucx write_bw",
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


def test_perflogs_without_the_column_of_cases_are_read_as_before(tmp_path: Path) -> None:
    write_perflog(tmp_path, daily([1.0]))
    older = write_perflog(tmp_path, daily([2.0], last=5), name="Older.log")
    text = older.read_text(encoding="utf-8")
    header, line = text.splitlines()
    at = header.split("|").index("case")
    cut = ["|".join(c for i, c in enumerate(row.split("|")) if i != at) for row in (header, line)]
    older.write_text("\n".join(cut) + "\n", encoding="utf-8")
    write_perflog(tmp_path, daily([3.0], case="csc-aggregators 2"), name="CscAggregators.log")
    found = {
        key: rows["perf_value"].tolist() for key, rows in split(read_perflogs(tmp_path).samples)
    }
    assert found == {KEY: [2.0, 1.0], replace(KEY, case="csc-aggregators 2"): [3.0]}
    assert slug(KEY) != slug(replace(KEY, case="csc-aggregators 2"))
