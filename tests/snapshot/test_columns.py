"""Columns that are read one by one equal those of the whole frame."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iobands.snapshot import Columns, Source, columns, is_constant

SCHEMA = {"number": pl.Int64(), "text": pl.Categorical(), "rate": pl.Float64()}
ROWS = st.lists(
    st.tuples(
        st.none() | st.integers(0, 9), st.none() | st.sampled_from("abc"), st.floats(0.5, 2.0)
    ),
    max_size=40,
)


def source(frame: pl.DataFrame, *, is_packed: bool) -> Source:
    return Source.of(Columns.of(frame).parquet) if is_packed else Source(frame.lazy())


def places_in(frame: pl.DataFrame) -> st.SearchStrategy[list[int]]:
    return st.lists(st.integers(0, len(frame) - 1)) if len(frame) else st.just([])


@given(st.lists(ROWS, max_size=3), ROWS, st.data())
def test_it_is_the_frame_however_it_is_asked(
    parts: list[list[tuple[object, ...]]], new: list[tuple[object, ...]], data: st.DataObject
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(columns, "_ROWS_TOGETHER", data.draw(st.integers(1, 8)))
        frames = [pl.DataFrame(each, SCHEMA, orient="row") for each in (*parts, new)]
        sources = [source(each, is_packed=data.draw(st.booleans())) for each in frames[:-1]]
        sources += Columns.of(frames[-1]).sources
        found = Columns([Source(pl.LazyFrame(schema=SCHEMA)), *sources], SCHEMA)
        expected = pl.concat(frames)
        for step in data.draw(st.lists(st.sampled_from(["read", "at", "filter", "with", "drop"]))):
            if step == "read":
                name = data.draw(st.sampled_from(expected.columns))
                assert found[name].equals(expected[name])
            elif step == "at":
                at = np.array(data.draw(places_in(expected)), dtype=int)
                found, expected = found.at(at), expected[at]
            elif step == "filter":
                chosen = expected["rate"] > data.draw(st.floats(0.5, 2.0))
                found, expected = found.filter(chosen), expected.filter(chosen)
            elif step == "with":
                other = expected["rate"].reverse()
                found, expected = found.with_columns(other), expected.with_columns(other)
            elif "text" in expected.columns:
                found, expected = found.drop("text"), expected.drop("text")
        rows = data.draw(places_in(expected))
        assert found.rows(rows).equals(expected[rows])
        assert found.frame.equals(expected)
        assert len(found) == len(expected)


@given(st.lists(st.none() | st.sampled_from("ab")))
def test_constant_columns_have_one_value_or_none(cells: list[str | None]) -> None:
    column = pl.Series("text", cells, pl.Categorical())
    assert is_constant(column) == (len(set(cells)) <= 1)
