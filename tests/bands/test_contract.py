"""The content that a contract may have, and the messages about its mistakes."""

from pathlib import Path

import pytest
import yaml

from iobands.bands.contract import Promise, parse_contract
from iobands.model import VARIABLE_UNITS, FileError
from tests.site_copy import ROOT

TEXT = """\
schema: 1
system: here
title: A file system
tolerance_percent: 5
lines:
  - name: writes
    match: {pattern: fpp, file_system: disk, variable: write_bw}
    rate: 1.5
    unit: GiB/s
    runs: 20
    spacing: 1d
  - name: slow reads
    match:
      pattern: fpp
      file_system: disk
      variable: read_bw
    rate: 3
    unit: GiB/s
    quantile: 0.25
    runs: 30
    tolerance_percent: 20
    vendor_risk_percent: 1
"""


def parsed(text):
    return parse_contract(text.encode(), Path("c.yaml"))


def said(before, after):
    assert TEXT.count(before) >= 1
    with pytest.raises(FileError) as error:
        parsed(TEXT.replace(before, after, 1))
    return str(error.value)


def test_a_line_has_its_own_rule_and_that_of_all_lines():
    first, second = parsed(TEXT).lines
    assert first.promise == Promise(1.5, "GiB/s", 20, tolerance=0.05, spacing_hours=24)
    assert second.promise == Promise(3, "GiB/s", 30, quantile=0.25, tolerance=0.2, vendor_risk=0.01)
    assert (first.variable, second.variable) == ("write_bw", "read_bw")


def test_a_line_is_of_runs_with_all_its_fields_and_no_case():
    (line, _) = parsed(TEXT).lines
    fields = {"pattern": "fpp", "file_system": "disk", "nodes": 4, "case": None}
    assert line.is_of(fields)
    assert not line.is_of({**fields, "file_system": "other"})
    assert not line.is_of({**fields, "case": "csc-blocking unit"})


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ("    runs: 20\n", "", ("c.yaml, line 6", "line 'writes'", "runs is missing", "30")),
        ("runs: 20", "runs: 2", ("line 10", "runs is 2", "from 3 to 1000")),
        ("unit: GiB/s", "unit: GB/s", ("line 9", "unit is 'GB/s'", "write one of GiB/s")),
        ("variable: read_bw", "variable: read", ("line 16", "did you mean read_bw?")),
        ("pattern: fpp", "patern: fpp", ("line 7", "pattern is missing")),
        ("rate: 3", "rate: -3", ("line 17", "rate is -3", "above 0")),
        ("quantile: 0.25", "quantile: 25", ("line 19", "0.05 to 0.95")),
        ("spacing: 1d", "spacing: daily", ("line 11", "spacing is 'daily'", "such as '6h'")),
        ("spacing: 1d", "spacing: 6", ("line 11", "spacing is 6", "such as '6h'")),
        ("spacing: 1d", "spacing: 99999999999d", ("line 11", "spacing is '999")),
        ("name: slow reads", "name: writes", ("line 12", "names must differ")),
        ("system: here", "sytem: here", ("line 2", "sytem is an unknown key")),
        ("lines:", "promises:", ("promises is an unknown key",)),
    ],
)
def test_a_mistake_is_named_with_its_line_and_what_is_allowed(before, after, words):
    found = said(before, after)
    for word in words:
        assert word in found, found


def test_text_that_is_no_contract():
    for text in ("", "[]", "a: b: c", "\x00", "lines: 3"):
        with pytest.raises(FileError):
            parsed(text)


@pytest.mark.parametrize("name", ["archer2-tender", "minisite"])
def test_the_examples_are_contracts(name):
    path = ROOT / "config" / "contracts" / f"{name}.yaml"
    contract = parse_contract(path.read_bytes(), path)
    assert contract.lines
    assert {line.promise.unit for line in contract.lines} <= {*VARIABLE_UNITS.values()}


def test_the_tender_promises_what_the_page_publishes():
    text = (ROOT / "config" / "contracts" / "archer2-tender.yaml").read_bytes()
    contract = parse_contract(text, Path("c.yaml"))
    bands = yaml.safe_load((ROOT / "config" / "bands" / "archer2.yaml").read_text())
    published = {
        (band["match"]["pattern"], band["match"]["medium"]): band
        for band in bands["epochs"][0]["bands"]
        if "median" in band and "case" not in band["match"]
    }
    names = {0.5: "median", 0.25: "lower_quartile"}
    for line in contract.lines:
        band = published[line.match["pattern"], line.match["medium"]]
        assert line.promise.rate == band[names[line.promise.quantile]]
        assert {**band["match"], "file_system": line.match["file_system"]} == dict(line.match)
