"""The changes that iobands makes inside the process of ReFrame."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from iobands.measure.inside import _FLAGS, _WITH_VALUE, is_run, mend_loading
from tests.site_copy import ROOT

# As in a session whose `iobands run` was killed: nobody reads ReFrame's output.
_RAISES = """
from iobands.measure.inside import ForceExitError
try:
    raise ForceExitError("received signal 15")
except ForceExitError:
    raise SystemExit(7)
"""


def test_a_request_to_end_is_raised_where_nobody_reads_it() -> None:
    with subprocess.Popen([sys.executable, "-c", _RAISES], stderr=subprocess.PIPE) as child:
        assert child.stderr is not None
        child.stderr.close()
    assert child.returncode == 7


_APPLIES = """
import sys, time
import reframe
from reframe.frontend.executors import policies
from iobands.measure.inside import apply_workarounds
reframe.VERSION = sys.argv[1]
apply_workarounds()
print(policies.time is not time)
"""


@pytest.mark.machine
@pytest.mark.parametrize(
    ("version", "replaced", "said"),
    [
        ("4.10.4", "True", ""),
        ("4.11.0", "False", "iobands: ReFrame 4.11.0 is not tested; iobands is tested with 4.10.x"),
    ],
)
def test_only_a_known_reframe_is_changed(version: str, replaced: str, said: str) -> None:
    pytest.importorskip("reframe")
    done = subprocess.run(
        [sys.executable, "-c", _APPLIES, version], capture_output=True, text=True, check=True
    )
    assert (done.stdout.strip(), done.stderr.startswith(said)) == (replaced, True)
    assert bool(done.stderr) == bool(said)


@pytest.mark.machine
@pytest.mark.parametrize(
    ("line", "runs"),
    [
        ("-r", True),
        ("--run -l", True),
        ("--ru -n X", True),
        ("-rn X", True),
        ("-vrt daily", True),
        ("-rS X.y=z --system=here", True),
        ("-n X -Rr -J=r", True),
        ("-l", False),
        ("-nr", False),
        ("-t run --dry-run", False),
        ("--repeat=2 -L -J r", False),
    ],
)
def test_reframe_runs_checks_where_its_own_options_say_so(line: str, runs: bool) -> None:
    pytest.importorskip("reframe.frontend.cli")
    assert is_run(line.split()) == runs


@pytest.mark.machine
def test_every_short_option_of_reframe_is_known() -> None:
    cli = pytest.importorskip("reframe.frontend.cli")
    assert cli.__file__ is not None
    own = re.findall(r"^ +'-(\w)', '--", Path(cli.__file__).read_text("utf-8"), re.MULTILINE)
    assert {*own} | {"h", "r"} == {*_FLAGS, *_WITH_VALUE, "r"}


@pytest.mark.machine
def test_a_reframe_of_long_ago_is_refused() -> None:
    pytest.importorskip("reframe")
    loads = "import runpy, sys, reframe; reframe.VERSION = '4.8.4'; runpy.run_path(sys.argv[1])"
    done = subprocess.run(
        [sys.executable, "-c", loads, str(ROOT / "config" / "site.py")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr == "ERROR: ReFrame 4.8.4 is too old: iobands needs 4.10\n"


def test_what_is_deprecated_is_said_of_the_line_that_uses_it(monkeypatch):
    warns = pytest.importorskip("reframe.core.warnings")
    monkeypatch.setattr(warns, "inspect", warns.inspect)  # to be restored after the test
    loader = pytest.importorskip("reframe.frontend.loader").RegressionCheckLoader
    monkeypatch.setattr(loader, "load_from_file", loader.load_from_file)
    field = pytest.importorskip("reframe.core.fields").TypedField
    monkeypatch.setattr(field, "__set__", field.__set__)
    space = pytest.importorskip("reframe.core.variables").VarSpace
    monkeypatch.setattr(space, "_inject", space._inject)
    found = []
    for light in (False, True):
        if light:
            mend_loading()
        with pytest.warns(warns.ReframeDeprecationWarning) as caught:
            warns.user_deprecation_warning("use another")
        found.append((caught[0].filename, caught[0].lineno, str(caught[0].message)))
    assert found[0] == found[1]
    assert found[0][0] == __file__


_SETS = """
from reframe.core.fields import TypedField, make_convertible
import reframe.frontend.loader
from iobands.measure.inside import mend_loading
mend_loading()
class Check:
    nodes = TypedField(int, type(None))
check = Check()
check.nodes = make_convertible("2")
assert check.nodes == 2
check.nodes = make_convertible("two")
"""


def test_a_value_that_is_no_number_is_said_with_its_variable() -> None:
    pytest.importorskip("reframe")
    command = [sys.executable, "-c", _SETS]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "ValueError: failed to set variable 'nodes': invalid literal" in done.stderr


_POINTS = """
import reframe as rfm
import reframe.frontend.loader
from reframe.core.builtins import parameter, variable
from reframe.core.config import load_config
from reframe.core.fields import make_convertible
from reframe.core.runtime import init_runtime
from iobands.measure.inside import mend_loading
mend_loading()
site = load_config("<builtin>")
site.select_subconfig()
init_runtime(site)
class Check(rfm.RunOnlyRegressionTest):
    point = parameter([1, 2, 3])
    words = variable(list, value=["a"])
    number = variable(int, value=1)
    unset = variable(int)
class Other(Check):
    number = 7
one, two = Check(variant_num=0), Check(variant_num=1)
two.words.append("b")
one.unset = 4
Check.setvar("number", make_convertible("2"))
three, other = Check(variant_num=2), Other(variant_num=2)
two.number = 9
print([(each.point, each.words, each.number) for each in (one, two, three, other)])
print(hasattr(two, "unset"), one.unset)
try:
    three.number = "no"
except TypeError as error:
    print(error)
"""


def test_each_point_of_a_check_has_values_of_its_own(tmp_path) -> None:
    pytest.importorskip("reframe")
    script = tmp_path / "points.py"  # as ReFrame asks for the file of a class
    script.write_text(_POINTS, encoding="utf-8")
    command = [sys.executable, str(script)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        "[(1, ['a'], 1), (2, ['a', 'b'], 9), (3, ['a'], 2), (3, ['a'], 7)]",
        "False 4",
        "failed to set variable 'number': 'no' is not of type 'int'",
    ]


_IS_INTERRUPTED = """
import os, random, signal
from reframe.core.environments import snapshot
from reframe.frontend.executors import _force_exit
from iobands.measure.inside import apply_workarounds
apply_workarounds()
before = dict(os.environ)
for _ in range(100):
    signal.signal(signal.SIGALRM, _force_exit)
    saved = snapshot()
    try:
        signal.setitimer(signal.ITIMER_REAL, random.uniform(1e-5, 1e-3))
        while True:
            saved.restore()
    except KeyboardInterrupt:
        assert dict(os.environ) == before
"""


@pytest.mark.machine
def test_a_signal_leaves_the_environment_whole() -> None:
    """ReFrame once asked the wrong Slurm: a signal had come while it restored PATH."""
    pytest.importorskip("reframe")
    command = [sys.executable, "-c", _IS_INTERRUPTED]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-1000:]


_COPIES = """
import sys
from pathlib import Path
from reframe.utility import osext
from iobands.measure.inside import apply_workarounds
source, copy = map(Path, sys.argv[1:])
apply_workarounds()
osext.copytree_virtual(str(source), str(copy), ["linked"], dirs_exist_ok=True)
print(*(oct(path.stat().st_mode & 0o777) for path in (copy, copy / "part", copy / "part" / "x")))
print((copy / "linked").is_symlink())
"""


@pytest.mark.machine
def test_sources_of_a_read_only_installation_are_copied_to_be_written(tmp_path) -> None:
    source, copy = tmp_path / "source", tmp_path / "stage"
    (source / "part").mkdir(parents=True)
    for path in (source / "linked", source / "part" / "x"):
        path.touch(0o444)
    for path in (source / "part", source):
        path.chmod(0o555)
    copy.mkdir()
    command = [sys.executable, "-c", _COPIES, str(source), str(copy)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["0o755", "0o755", "0o444", "True"]


_LOADS = """
import sys
from pathlib import Path
import reframe
from reframe.frontend.loader import RegressionCheckLoader
from iobands.measure.inside import _FLAGS, _WITH_VALUE, is_run, mend_loading
from tests.site_copy import ROOT
site, is_mended = Path(sys.argv[1]), sys.argv[2] == "mended"
sys.path.insert(0, str(site))
reframe.INSTALL_PREFIX = str(site)
if is_mended:
    mend_loading()
loader = RegressionCheckLoader([])
for name in ("user", "base"):
    loader.load_from_file(str(site / "pkg" / f"{name}.py"), force=True)
print(sys.modules["pkg.user"].Size is sys.modules["pkg.base"].Size)
"""


@pytest.mark.machine
@pytest.mark.parametrize(("how", "is_one"), [("as it is", "False"), ("mended", "True")])
def test_checks_beside_reframe_share_their_classes(tmp_path, how: str, is_one: str) -> None:
    """As in an environment with the wheel and ReFrame, if a base class was imported before."""
    package = tmp_path / "site-packages" / "pkg"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "base.py").write_text("import reframe\n\nclass Size:\n    pass\n")
    (package / "user.py").write_text("import reframe\nfrom .base import Size\n")
    done = subprocess.run(
        [sys.executable, "-c", _LOADS, str(package.parent), how],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split()[-1] == is_one
