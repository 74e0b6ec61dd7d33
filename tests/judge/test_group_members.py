"""Which series make up groups, and what groups are called."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from iobands.judge.groups import Group, groups_of
from iobands.model import SeriesKey
from tests.judge.keys import KEY


def named(*keys: SeriesKey) -> dict[str, Group]:
    return {group.value: group for group in groups_of(dict.fromkeys(keys))}


def test_the_same_series_are_one_group() -> None:
    keys = (KEY, replace(KEY, pattern="ssf"))
    (group,) = groups_of(dict.fromkeys(keys, "nvme"))
    # they share a file system, a partition, a transport and a medium
    assert (group.shared, group.value, group.keys) == ("file_system", "a", keys)


def test_one_series_of_a_variable_is_no_group() -> None:
    other = replace(KEY, variable="read_bw")
    assert named(KEY, other) == {}
    third = replace(KEY, pattern="ssf")
    assert named(KEY, other, third)["a"].keys == (KEY, third)


def test_what_series_may_share() -> None:
    keys = [
        replace(KEY, file_system=fs, transport=transport, partition=partition, pattern=pattern)
        for fs, transport, partition, pattern in product(
            "ab", ("ofi", "ucx"), ("cpu", "gpu"), ("fpp", "ssf")
        )
    ]
    media = {key: "nvme" if key.file_system == "a" else None for key in keys}
    # all nvme series are on the file system a
    assert {(group.shared, group.value) for group in groups_of(media)} == {
        *(("file_system", value) for value in "ab"),
        *(("transport", value) for value in ("ofi", "ucx")),
        *(("partition", value) for value in ("cpu", "gpu")),
        *(("pattern", value) for value in ("fpp", "ssf")),
    }
    media = {**dict.fromkeys(keys), keys[0]: "nvme", keys[-1]: "nvme"}
    assert ("medium", "nvme") in {(group.shared, group.value) for group in groups_of(media)}


def test_systems_are_kept_apart() -> None:
    two = (KEY, replace(KEY, pattern="ssf"))
    there = tuple(replace(key, system="there") for key in two)
    found = groups_of(dict.fromkeys((*two, *there)))
    assert {(group.system, group.keys) for group in found} == {("here", two), ("there", there)}


def test_missing_values_are_in_no_group() -> None:
    no_file_system = [replace(KEY, file_system=None, partition=name) for name in ("x", "y")]
    assert "None" not in named(*no_file_system)


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
    members = [group.keys for group in found]
    assert len(set(members)) == len(members)
    for group in found:
        assert set(group.keys) == {
            key
            for key in keys
            if getattr(key, group.shared) == group.value and key.variable == group.variable
        }
        assert len(group.keys) > 1
    for name in ("file_system", "partition", "transport", "pattern"):
        for one, other in product(keys, keys):
            same = one.variable == other.variable and getattr(one, name) == getattr(other, name)
            if one != other and same and getattr(one, name) is not None:
                assert any({one, other} <= set(group) for group in members)
