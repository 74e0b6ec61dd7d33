"""Where IOR and the like come from: the site file, PATH or Spack, in this order."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from checks.base.programs import Found, find, how_to_provide
from tests.site_copy import OTHER_TOOLS, ROOT, copy_suite

#: What a job's shell reads to have Environment Modules, as Debian installs them.
INIT = Path("/usr/share/modules/init/bash")


def on_path(name):
    return f"/usr/bin/{name}"


def nowhere(name):
    return None


@pytest.mark.parametrize(
    ("entry", "looked", "found"),
    [
        ({"path": "/opt/bin/ior"}, on_path, Found("/opt/bin/ior")),
        ({"modules": ["ior/4.0"]}, on_path, Found("ior", ("ior/4.0",))),
        ({"path": "/opt/b", "modules": ["mpi", "x"]}, nowhere, Found("/opt/b", ("mpi", "x"))),
        ({"path": "/opt/bin/ior", "spack": "ior@4"}, on_path, Found("/opt/bin/ior")),
        ({"spack": "ior@4"}, on_path, Found("/usr/bin/ior")),
        ({}, on_path, Found("/usr/bin/ior")),
        ({"spack": "ior@4"}, nowhere, Found("ior", spack="ior@4")),
        ({}, nowhere, None),
    ],
)
def test_the_order(entry, looked, found):
    assert find("ior", entry, looked) == found


def in_a_job(commands, modules=""):
    """Run a job script that begins with these commands, and return its output."""
    source = f"source {ROOT / 'checks' / 'base' / 'job.sh'}"
    script = "\n".join([modules, source, *commands, 'echo "goes on with $PROBE"'])
    # No function of the shell that runs the tests.
    done = subprocess.run(
        ["env", "-i", "PATH=/usr/bin:/bin", "bash", "-c", script],
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


def test_a_job_without_the_command_module_ends_with_what_helps():
    status, said, complaint = in_a_job(["load_modules ior ior/4.0 mpi"])
    assert (status, said) == (1, "")
    assert complaint == (
        "iobands: jobs have no command 'module' to load ior/4.0 mpi with: start iobands "
        "from a login shell, define it in the partition's prepare_cmds, or name the path of ior in "
        "the site configuration, under 'programs'\n"
    )


@pytest.mark.skipif(not INIT.exists(), reason="Environment Modules are not installed")
def test_a_module_is_loaded_or_ends_the_job_with_what_helps(tmp_path):
    (tmp_path / "ior").mkdir()
    (tmp_path / "ior" / "4.0").write_text("#%Module1.0\nsetenv PROBE 4.0\n", encoding="utf-8")
    modules = f". {INIT}; module use {tmp_path}"
    loaded = in_a_job(["load_modules ior ior/4.0"], modules)
    assert loaded == (0, "goes on with 4.0\n", "")
    status, said, complaint = in_a_job(["load_modules ior ior/4.0 ior/9"], modules)
    assert (status, said) == (1, "")
    assert complaint.splitlines()[-1] == (
        "iobands: the module ior/9 cannot be loaded: correct it in the site "
        "configuration, under 'programs'"
    )


@pytest.fixture
def tools(tmp_path):
    """A copy of the suite, from which ReFrame loads the checks of IOR and the like."""
    return copy_suite(tmp_path / "site", *OTHER_TOOLS)


@pytest.mark.machine
@pytest.mark.skipif(not shutil.which("modulecmd"), reason="Environment Modules are not installed")
def test_the_jobs_of_a_site_with_modules(tools, tmp_path):
    tools.add_local_system(
        "moduled",
        {"disk": {"path": str(tmp_path), "type": "posix", "medium": "disk"}},
        {"nodes": 1, "tasks_per_node": 1, "mib_per_task": 1},
        programs={"ior": {"modules": ["ior/9"]}},
    )
    site_file = tools.root / "config" / "systems" / "moduled.py"
    text = site_file.read_text(encoding="utf-8")
    changed = text.replace("'hostnames'", "'modules_system': 'tmod4', 'hostnames'")
    site_file.write_text(changed, encoding="utf-8")
    chosen = ("-n", "IorFPP", "-E", "api == 'posix'")
    run = tools.reframe("--system=moduled", "--dry-run", *chosen)
    assert run.returncode == 0, run.stdout + run.stderr
    # ReFrame's own loading would not look at the outcome: another ior on PATH would be measured.
    (script,) = tools.scripts("job").values()
    assert [line for line in script.splitlines() if "load" in line] == ["load_modules ior ior/9"]


@pytest.mark.machine
def test_no_program_is_run_on_a_path_that_it_would_cut(tools, tmp_path):
    disk = tmp_path / "ann@uni.example"
    disk.mkdir()
    tools.add_local_system(
        "here",
        {"disk": {"path": str(disk), "type": "posix", "medium": "disk"}},
        {"nodes": 1, "tasks_per_node": 1, "mib_per_task": 1},
        programs={name: {"path": "/bin/false"} for name in ("ior", "mdtest", "io500.sh")},
    )
    tools.reframe("--system=here", "-r", "-n", "IorFPP|Mdtest|Io500")
    ran = [case for case in tools.test_cases("here") if case["display_name"][:3] != "Env"]
    assert {(case["result"], case["skip_reason"]) for case in ran} == {
        ("skip", f"unusable path: {name} would cut {disk} at the @: name another path of the file "
         "system in the site configuration, such as a link")
        for name in ("ior", "mdtest", "io500.sh")
    }  # fmt: skip


def test_what_helps_is_one_line():
    assert "\n" not in how_to_provide("ior")


SPACK = """#!/bin/sh
echo "$@" >> {log}
case "$*" in
*' install') {install} ;;
*' load --sh '*) {load} ;;
esac
"""

#: The message of Spack 0.23 about a source that it could not fetch.
NO_SOURCE = """\
==> Error: FetchError: All fetchers failed for spack-stage-ior-4.0.0-5mitj3f
        file:///srv/mirror/ior.tar.gz: URLError: <urlopen error [Errno 2] No such file or directory>
"""

needs_spack_to_be_asked = pytest.mark.skipif(
    bool(shutil.which("mdtest")), reason="mdtest is on PATH, before Spack"
)


def script(path, text):
    path.parent.mkdir()
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)


@pytest.fixture
def spacked(tools, tmp_path, monkeypatch):
    """Runs mdtest on a site that gets it from a stand-in for Spack, which logs its calls.

    Tests cannot use the real Spack; the calls were tried with Spack 0.23.
    """
    disk, log = tmp_path / "disk", tmp_path / "log"
    disk.mkdir()
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    tools.add_local_system(
        "spacked",
        {"disk": {"path": str(disk), "type": "posix", "medium": "disk"}},
        {"nodes": 1, "tasks_per_node": 1, "mib_per_task": 1},
        programs={"mdtest": {"spack": "ior@4.0.0"}},
    )

    def run(install, load):
        script(tmp_path / "bin" / "spack", SPACK.format(log=log, install=install, load=load))
        done = tools.reframe("--system=spacked", "-r", "--exec-policy=serial", "-n", "Mdtest")
        assert done.returncode == 1
        return done.stdout, log.read_text(encoding="utf-8")

    return run


@pytest.mark.machine
@needs_spack_to_be_asked
def test_spack_installs_once_for_all_checks_and_is_loaded(spacked, tools, tmp_path):
    # The first job fails because mdtest is a fake, the second because nothing can be loaded.
    script(tmp_path / "it" / "mdtest", "#!/bin/sh\necho 'cannot do anything' >&2; exit 3\n")
    loaded = f"echo 'export PATH={tmp_path / 'it'}:$PATH'"
    said, asked = spacked(":", f"mkdir {tmp_path / 'once'} && {loaded}")
    assert asked.count(" install\n") == 1
    assert "-e rfm_spack_env add ior@4.0.0\n" in asked
    assert f"config:install_tree:root:{tools.root}/build/spack" in asked
    assert asked.count("/rfm_spack_env load --sh ior@4.0.0\n") == 4  # a job each
    assert said.count("Reason: sanity error: exit status 3: cannot do anything") == 1
    assert (
        "Reason: sanity error: iobands: Spack cannot load ior@4.0.0 in jobs: do they find the "
        "command spack?\n"
    ) in said


@pytest.mark.machine
@needs_spack_to_be_asked
def test_what_spack_cannot_install_has_its_reason(spacked, tmp_path):
    (tmp_path / "said").write_text(NO_SOURCE, encoding="utf-8")
    said, _ = spacked(f"cat {tmp_path / 'said'} >&2; exit 1", ":")
    assert (
        "Reason: sanity error: ior@4.0.0 cannot be installed by Spack: FetchError: All fetchers "
        "failed for spack-stage-ior-4.0.0-5mitj3f\n"
    ) in said


@pytest.mark.machine
def test_the_job_of_io500_and_its_settings(tools, tmp_path):
    tools.add_local_system(
        "here",
        {"work": {"path": str(tmp_path), "type": "lustre", "medium": "hdd", "stripe_counts": [1]}},
        {"nodes": 1, "tasks_per_node": 1, "mib_per_task": 1},
        programs={"io500.sh": {"path": "/opt/io500/io500.sh"}},
    )
    by_the_rules = ("-n", "Io500", "-S", "Io500.most_gib=1")
    run = tools.reframe("--system=here", "--dry-run", *by_the_rules)
    assert run.returncode == 0, run.stdout + run.stderr
    (script,) = (tools.root / "stage").rglob("Io500*/rfm_job.sh")
    said = script.read_text(encoding="utf-8")
    # It, too, writes only where the file system is mounted.
    assert "require_mounted lustre lustre\n" in said.partition("make_run_directory")[0]
    # With its default of a million files mdtest might end before the stonewall, which is invalid.
    (settings,) = (tools.root / "stage").rglob("Io500*/io500.ini.in")
    assert settings.read_text(encoding="utf-8").splitlines()[3:] == [
        "[debug]",
        "stonewall-time = 300",
        "[mdtest-easy]",
        "n = 100000000",
        "[mdtest-hard]",
        "n = 100000000",
    ]
