"""Two checks that would feed one series are refused, with real ReFrame, before anything runs."""

import pytest

from tests.site_copy import copy_suite

pytestmark = pytest.mark.machine

CHECK = "checks/tools/benchio/wide.py"

WIDE = '''
import reframe as rfm
from reframe.core.builtins import run_after

from .check import BenchioFPP


@rfm.simple_test
class BenchioWide(BenchioFPP):
    """As a user would try stripes of 8 MiB."""

    {settings}
'''


TWINS = '''case = "fpp-8mib"


@rfm.simple_test
class BenchioTwin(BenchioFPP):
    """Another user's."""

    case = "fpp-8mib"
'''


OF_THEIR_OWN = '''case = "fpp-8mib"


@rfm.simple_test
class BenchioPattern(BenchioFPP):
    """Of another pattern."""

    pattern = "fpp-8mib"


@rfm.simple_test
class BenchioLate(BenchioFPP):
    """Named by a hook, as cases are."""

    @run_after("init")
    def name_it(self):
        self.case = "fpp-late"
'''


@pytest.fixture(scope="module")
def suite(tmp_path_factory):
    """Runs a dry run of benchio's checks and one that extends BenchioFPP with these settings."""
    site = copy_suite(tmp_path_factory.mktemp("site"), CHECK, "checks/tools/benchio/check.py")
    disk = {"path": str(tmp_path_factory.mktemp("disk")), "type": "posix", "medium": "disk"}
    scale = {"tasks_per_node": 2, "mib_per_task": 1}
    site.add_local_system("fixed", {"disk": disk}, {"nodes": 1, **scale})
    site.add_local_system("flexible", {"disk": disk}, {"nodes": "all", **scale})

    def run(settings, *arguments, system="fixed", checks=site.checks):
        (site.root / CHECK).write_text(WIDE.format(settings=settings), encoding="utf-8")
        alone = type(site)(site.root, checks)
        flexible = ("--flex-alloc-nodes=1",) if system == "flexible" else ()
        done = alone.reframe(f"--system={system}", "--dry-run", *flexible, *arguments)
        cases = {case["name"].split()[0]: case for case in site.test_cases(system)}
        return done, {
            name: (case["result"], case["fail_phase"], case["fail_reason"])
            for name, case in cases.items()
            if name.startswith("Benchio")
        }

    return run


@pytest.mark.parametrize(("system", "settings"), [("fixed", "pass"), ("flexible", "fsync = False")])
def test_the_one_that_extends_the_other_is_refused(suite, system, settings):
    done, cases = suite(settings, "-n", "Benchio(FPP|Wide)", system=system)
    assert done.returncode == 1
    assert cases["BenchioFPP"][0] == "pass"
    result, phase, reason = cases["BenchioWide"]
    assert (result, phase) == ("fail", "setup")
    # It names both, and the field to set.
    for word in ("BenchioWide %", "BenchioFPP %", "'case'"):
        assert word in reason


def test_it_is_refused_without_the_other_in_the_session(suite):
    done, cases = suite("pass", "-n", "BenchioWide")
    assert (done.returncode, cases["BenchioWide"][0]) == (1, "fail")
    done, cases = suite("pass", "-n", "BenchioWide", checks=(CHECK,))
    assert (done.returncode, cases["BenchioWide"][0]) == (1, "fail")


def test_a_series_of_its_own_is_not_refused(suite):
    done, cases = suite(OF_THEIR_OWN, "-n", "Benchio(FPP|Wide|Pattern|Late)")
    assert done.returncode == 0, done.stdout + done.stderr
    names = ("BenchioFPP", "BenchioWide", "BenchioPattern", "BenchioLate")
    assert {name: cases[name][0] for name in names} == dict.fromkeys(names, "pass")


def test_of_two_that_extend_neither_both_are_refused(suite):
    done, cases = suite(TWINS, "-n", "Benchio(Wide|Twin)")
    assert done.returncode == 1
    assert [cases[name][:2] for name in ("BenchioWide", "BenchioTwin")] == [("fail", "setup")] * 2


def test_points_of_a_check_that_reframe_repeats_are_not_refused(suite):
    done, _ = suite('case = "fpp-8mib"', "-n", "BenchioFPP", "--repeat=2")
    assert done.returncode == 0, done.stdout + done.stderr


def test_points_that_differ_in_what_no_field_says_are_refused(suite):
    parameters = "-P", "BenchioFPP.repeats=1,2"
    done, cases = suite('case = "fpp-8mib"', "-n", "BenchioFPP", *parameters)
    assert done.returncode == 1
    assert cases["BenchioFPP"][:2] == ("fail", "setup")
