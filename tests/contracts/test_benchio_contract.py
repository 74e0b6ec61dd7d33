"""Contract 1, benchio/4: the documented fields are the golden ones.

That benchio writes them, with these types, is tested in tests/kernel/test_result_file.py.
"""

import json
from pathlib import Path

from tests.contracts.documented import first_column

GOLDEN = Path(__file__).parent / "golden" / "benchio-4.json"


def test_documented_fields():
    assert first_column("### Result file", "Field") == list(
        json.loads(GOLDEN.read_text(encoding="utf-8"))
    )
