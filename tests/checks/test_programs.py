"""Where IOR and the others come from: the site's word, PATH, Spack, in this order."""

import os
import shutil

import pytest

from checks.programs import Found, find, how_to_provide


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


def test_what_helps_is_one_line():
    assert "\n" not in how_to_provide("ior")


SPACK = """#!/bin/sh
echo "$@" >> {log}
case "$*" in *' load --sh '*) echo 'export PATH={installed}:$PATH' ;; esac
"""


def script(path, text):
    path.parent.mkdir()
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)


@pytest.mark.skipif(bool(shutil.which("mdtest")), reason="mdtest is on PATH, before Spack")
def test_spack_installs_once_for_all_checks_and_is_loaded(site_copy, tmp_path, monkeypatch):
    # A stand-in writes down what Spack is asked for; the jobs fail for want of a real mdtest.
    log, disk, installed = tmp_path / "log", tmp_path / "disk", tmp_path / "installed"
    disk.mkdir()
    script(installed / "mdtest", "#!/bin/sh\necho 'cannot do anything' >&2; exit 3\n")
    script(tmp_path / "bin" / "spack", SPACK.format(log=log, installed=installed))
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    site_copy.add_local_system(
        "spacked",
        {"disk": {"path": str(disk), "type": "posix", "medium": "disk"}},
        {"nodes": 1, "tasks_per_node": 1, "mib_per_task": 1},
        programs={"mdtest": {"spack": "ior@4.0.0"}},
    )
    run = site_copy.reframe("--system=spacked", "-r", "--exec-policy=serial", "-n", "Mdtest")
    assert run.returncode == 1
    said = log.read_text(encoding="utf-8")
    assert said.count(" install\n") == 1
    assert "-e rfm_spack_env add ior@4.0.0\n" in said
    assert f"config:install_tree:root:{site_copy.root}/build/spack" in said
    assert said.count("/rfm_spack_env load --sh ior@4.0.0\n") == 2
    assert run.stdout.count("Reason: sanity error: exit status 3: cannot do anything") == 2


def test_io500_too_writes_only_where_the_file_system_is_mounted(site_copy, tmp_path):
    site_copy.add_local_system(
        "here",
        {"work": {"path": str(tmp_path), "type": "lustre", "medium": "hdd", "stripe_counts": [1]}},
        {"nodes": 1, "tasks_per_node": 1, "mib_per_task": 1},
        programs={"io500.sh": {"path": "/opt/io500/io500.sh"}},
    )
    run = site_copy.reframe("--system=here", "--dry-run", "-n", "Io500")
    assert run.returncode == 0, run.stdout + run.stderr
    (script,) = (site_copy.root / "stage").rglob("Io500*/rfm_job.sh")
    said = script.read_text(encoding="utf-8")
    assert "type asked: lustre; mounted there" in said.partition("mktemp -d")[0]
