"""The tables of layers in docs/ and checks/, compared with benchio's own."""

import re
from pathlib import Path

import pytest

from checks.cases.layers import LAYERS

CONTRACTS = Path(__file__).resolve().parents[2] / "docs" / "contracts.md"
TABLE = re.compile(r"^\| Layer \| Pattern \| Interface \|.*?\n\n", re.MULTILINE | re.DOTALL)
ROW = re.compile(r"^\| (`.+?`) \| (`\S+`|as the layer) \| `(\w+)` \|", re.MULTILINE)
# benchio is built without it for the tests.
NOT_BUILT = {"adios", "adios-default", "adios-process"}


@pytest.fixture
def kinds(benchio):
    """The pattern and interface of each layer, from benchio's records."""
    done = benchio.run_alone(
        4, 4, 4, "local", *benchio.layers(), "unstriped", "--steps=1", "--every=1", "--compute=0",
        "--result=result.jsonl",
    )  # fmt: skip
    assert done.status == 0, done.err
    return {line["layer"]: (line["pattern"], line["interface"]) for line in benchio.records()}


def test_the_contract_has_every_layer(kinds):
    documented = {}
    for names, pattern, interface in ROW.findall(TABLE.search(CONTRACTS.read_text("utf-8"))[0]):
        for name in re.findall(r"`(\S+)`", names):
            documented[name] = (name if pattern == "as the layer" else pattern[1:-1], interface)
    assert {name: documented[name] for name in documented if name not in NOT_BUILT} == kinds
    assert documented.keys() >= NOT_BUILT


def test_the_checks_expect_what_benchio_records(kinds):
    expected = {name: (layer.pattern, layer.interface) for name, layer in LAYERS.items()}
    # These are no layers, but scripts whose result files have the same form.
    for name in ("untar", "listing", "reopening"):
        assert expected.pop(name) == (name, "posix")
    built = {name: kinds[name] for name in expected if name not in NOT_BUILT}
    assert {name: expected[name] for name in built} == built
