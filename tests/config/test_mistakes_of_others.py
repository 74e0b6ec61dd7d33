"""A mistake in one site file stops ReFrame for that system, and for no other."""

import pytest

pytestmark = pytest.mark.machine

MISTAKES = {
    "no Python": "system = {",
    "an error": "raise RuntimeError('no such cluster')",
    "nothing": "",
    "no system": "environments = []",
    "no site": "system = {'name': 'wrong', 'hostnames': ['nowhere']}\nenvironments = 1",
}


@pytest.fixture
def site(site_copy, tmp_path):
    file_systems = {"disk": {"path": str(tmp_path), "type": "posix", "medium": "disk"}}
    scale = {"nodes": 1, "tasks_per_node": 1, "mib_per_task": 1}
    site_copy.add_local_system("right", file_systems, scale)
    return site_copy


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_stops_no_other_system(site, mistake):
    path = site.root / "config" / "systems" / "wrong.py"
    path.write_text(f"{MISTAKES[mistake]}\n", encoding="utf-8")
    listed = site.reframe("-l", "--system=right", "-n", "BenchioSerial")
    said = listed.stdout + listed.stderr
    assert listed.returncode == 0, said
    assert "BenchioSerial" in listed.stdout
    assert f"WARNING: left out: {path}" in said
    refused = site.reframe("-l", "--system=wrong")
    assert refused.returncode == 1
    if mistake in ("nothing", "no system"):
        assert f"ERROR: {path}: does not define `system`" in refused.stdout + refused.stderr


def test_a_file_that_may_be_of_this_host_is_no_other(site):
    """Without it ReFrame would take `local`, and measure as another system."""
    path = site.root / "config" / "systems" / "aaa.py"
    path.write_text("system = {\n", encoding="utf-8")
    assert site.reframe("-l").returncode == 1
