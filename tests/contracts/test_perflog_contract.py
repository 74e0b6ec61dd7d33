"""Contract 2, version 3: the columns are the published ones, in their order."""

import re
import runpy
from pathlib import Path

from iobands.model import FIELDS, SERIES_FIELDS, VARIABLE_UNITS
from tests.contracts.documented import DOCUMENT, first_column

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = Path(__file__).parent / "golden" / "perflog-header.txt"


def golden_columns():
    return GOLDEN.read_text(encoding="utf-8").strip().split("|")


def test_columns():
    assert [field.name for field in FIELDS] == golden_columns()


def test_reframe_is_asked_for_each_column():
    results = runpy.run_path(str(ROOT / "config" / "results.py"))
    (handler,) = results["logging"](True)[0]["handlers_perflog"]
    columns = re.findall(r"%\((?:check_)?(\w+)\)s", handler["format"])
    assert columns == golden_columns()


def test_documented_columns():
    document = DOCUMENT.read_text(encoding="utf-8")
    table = document.split("| Column | Type | Unit | Meaning |\n|---|---|---|---|\n")[1]
    rows = re.findall(r"^(\| `.+?` \| \w+ \| .*? \|) .+ \|$", table.split("\n\n")[0], re.MULTILINE)
    assert rows == [f"| `{each.name}` | {each.type} | {each.unit} |" for each in FIELDS]


def test_documented_variables():
    assert set(first_column("## Contract 2", "Variable")) == set(VARIABLE_UNITS)


def test_series_fields_are_columns_and_documented():
    assert set(SERIES_FIELDS) <= set(golden_columns())
    listed = ", ".join(f"`{field}`" for field in SERIES_FIELDS)
    assert f"at one combination of {listed}." in DOCUMENT.read_text(encoding="utf-8")
