"""Lists of nodes, as ReFrame and schedulers write them."""

from __future__ import annotations

import pytest
from iobands.alerts.nodes import folded, node_sets, nodes_of


@pytest.mark.parametrize(
    ("text", "nodes"),
    [
        ("vm", ("vm",)),
        ("n1,n2, n1", ("n1", "n2")),
        ("nid[001-003,007],vm", ("nid001", "nid002", "nid003", "nid007", "vm")),
        ("r[1-2]n[8-9]x", ("r1n8x", "r1n9x", "r2n8x", "r2n9x")),
        ("n[1", ("n", "1")),
        ("n[3-1],m", ("n[3-1]", "m")),
        ("n[a-b]", ("n[a-b]",)),
        ("", ()),
    ],
)
def test_lists_are_expanded(text: str, nodes: tuple[str, ...]) -> None:
    assert nodes_of(text) == nodes


@pytest.mark.parametrize(
    ("nodes", "text"),
    [
        (("n2", "n1", "n3"), "n[1-3]"),
        (("nid009", "nid010", "nid012"), "nid[009-010,012]"),
        (("n9", "n10", "vm"), "n9,n10,vm"),
        (("node",), "node"),
        (tuple(f"rack{i}-blade-x" for i in range(9)), "rack0-blade-x and 8 more"),
    ],
)
def test_and_folded(nodes: tuple[str, ...], text: str) -> None:
    assert folded(nodes) == text


def test_nodes_that_always_run_together_are_one_set() -> None:
    found = node_sets(["a,b", "a,b", "a,b,c", "d"])
    assert {nodes: places.tolist() for nodes, places in found.items()} == {
        ("a", "b"): [0, 1, 2],
        ("c",): [2],
        ("d",): [3],
    }
