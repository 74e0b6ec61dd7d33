"""Contract 6, iobands-status/5: the schema agrees with the types, and old documents can be read."""

from pathlib import Path

from iobands.snapshot.stored import STATUS_SCHEMA, to_json
from tests.contracts.documented import DOCUMENT, first_column
from tests.snapshot import schema
from tests.snapshot.read_back import from_json

GOLDEN = Path(__file__).parent / "golden" / "status-5.json"


def test_the_schema_is_what_the_types_say():
    # after a change of a type: python -m tests.snapshot.schema
    assert schema.FILE.read_text(encoding="utf-8") == schema.text()


def test_a_text_of_this_version_stays_as_it_is():
    text = GOLDEN.read_text(encoding="utf-8")
    site = from_json(text)
    assert to_json(site, summary="IOBANDS WARNING: 1 degraded (acknowledged)") + "\n" == text
    (alert,) = site.alerts
    assert (alert.subject, alert.severity.value, site.exit_status) == (
        "a fpp writes",
        "degraded",
        1,
    )
    assert {each.series.label for each in alert.members} == {each.label for each in site.series}
    assert alert.acknowledgement.action.who == "jane"


def test_documented_fields():
    assert STATUS_SCHEMA in DOCUMENT.read_text(encoding="utf-8")
    assert set(first_column("## Contract 6", "Field")) == set(schema.schema()["properties"])
