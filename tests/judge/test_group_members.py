"""Which series make up groups, and what groups are called."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from iobands.judge.groups import groups_of
from iobands.model import SeriesKey
from tests.judge.keys import KEY

NAMES = ("file_system", "partition", "transport", "pattern")


def test_the_same_series_are_one_group() -> None:
    keys = (KEY, replace(KEY, pattern="ssf"))
    # they share a file system, a partition, a transport and a medium
    assert groups_of(dict.fromkeys(keys, "nvme")) == (keys,)


def test_one_series_of_a_variable_is_no_group() -> None:
    other = replace(KEY, variable="read_bw")
    assert groups_of(dict.fromkeys((KEY, other))) == ()
    third = replace(KEY, pattern="ssf")
    assert groups_of(dict.fromkeys((KEY, other, third))) == ((KEY, third),)


def test_what_series_may_share() -> None:
    keys = [
        replace(KEY, file_system=fs, transport=transport, partition=partition, pattern=pattern)
        for fs, transport, partition, pattern in product(
            "ab", ("ofi", "ucx"), ("cpu", "gpu"), ("fpp", "ssf")
        )
    ]
    media = {key: "nvme" if key.file_system == "a" else None for key in keys}
    # all nvme series are on the file system a
    shared = {
        tuple(key for key in keys if getattr(key, name) == getattr(one, name))
        for name in NAMES
        for one in keys
    }
    assert {*groups_of(media)} == shared
    assert len(shared) == 8
    media = {**dict.fromkeys(keys), keys[0]: "nvme", keys[-1]: "nvme"}
    assert {*groups_of(media)} == {*shared, (keys[0], keys[-1])}


def test_systems_are_kept_apart() -> None:
    two = (KEY, replace(KEY, pattern="ssf"))
    there = tuple(replace(key, system="there") for key in two)
    found = groups_of(dict.fromkeys((*two, *there)))
    assert found == (two, there)


def test_missing_values_are_in_no_group() -> None:
    own = [dict.fromkeys(("partition", "transport", "pattern"), name) for name in ("x", "y")]
    no_file_system = [replace(KEY, file_system=None, **each) for each in own]
    assert groups_of(dict.fromkeys(no_file_system)) == ()


KEYS = st.lists(
    st.builds(
        lambda fs, partition, transport, pattern, variable: replace(
            KEY,
            file_system=fs,
            partition=partition,
            transport=transport,
            pattern=pattern,
            variable=variable,
        ),
        st.sampled_from(["a", "b", None]),
        st.sampled_from(["cpu", "gpu"]),
        st.sampled_from(["ofi", "ucx", None]),
        st.sampled_from(["fpp", "ssf", "fpn"]),
        st.sampled_from(["write_bw", "read_bw"]),
    ),
    unique=True,
    max_size=14,
)


@given(KEYS)
def test_groups_are_complete_and_differ(keys: list[SeriesKey]) -> None:
    found = groups_of(dict.fromkeys(keys))
    assert len({*found}) == len(found)
    for group in found:
        assert len(group) > 1
        alike = (
            [key for key in keys if getattr(key, name) == getattr(group[0], name)] for name in NAMES
        )
        same = [tuple(k for k in each if k.variable == group[0].variable) for each in alike]
        assert group in same
    for name in NAMES:
        for one, other in product(keys, keys):
            same = one.variable == other.variable and getattr(one, name) == getattr(other, name)
            if one != other and same and getattr(one, name) is not None:
                assert any({one, other} <= set(group) for group in found)
