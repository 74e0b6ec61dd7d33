"""`iobands init`: a directory for a site, separate from the suite."""

import json
import resource
import runpy
import shutil
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

import pytest

from config.validation import CONTRACT
from iobands.measure import site_directory
from iobands.measure.lock import acquire, new_holder, release
from iobands.measure.reframe import installed_suite
from iobands.measure.site_directory import (
    Machine,
    file_systems_of,
    files_of_clone,
    new_site,
    templates,
    write_site,
)
from iobands.model import FileError
from tests.commands.calling import call
from tests.conftest import Command
from tests.sites import whole_demo

LISTED = ("config/systems/local.py", "README.md", ".gitignore")


def tree(directory: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for path in directory.rglob("*")
        if path.is_file()
    }


def test_a_site_is_there_once(tmp_path: Path, iobands: Command) -> None:
    done = iobands("init", "site", "--from", "local", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    before = tree(tmp_path / "site")
    assert sorted(before) == sorted(LISTED)
    again = iobands("init", "site", "--from", "archer2", cwd=tmp_path)
    assert again.returncode == 3
    assert "is the directory of a site already; nothing was changed" in again.stderr
    assert tree(tmp_path / "site") == before


def test_files_of_others_stay(tmp_path: Path, iobands: Command) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "README.md").write_text("mine\n")
    done = iobands("init", "site", "--from", "local", cwd=tmp_path)
    assert done.returncode == 3
    assert "README.md exists; nothing was written" in done.stderr
    assert tree(tmp_path / "site") == {"README.md": b"mine\n"}


@pytest.mark.parametrize("given", ["/", "//", "/dev/../"])
def test_the_root_directory_is_no_site(given: str) -> None:
    # as in `iobands init $SITE/` with SITE unset
    status, said = call("init", given, "--from", "local", "--dry-run")
    assert status == 3
    assert said.endswith(": is the root directory; name one for the site alone\n")


def test_a_site_that_cannot_be_written_whole_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    texts = {Path("config/systems/x.py"): "x" * 100, Path("README.md"): "x"}
    unlimited = resource.getrlimit(resource.RLIMIT_FSIZE)
    for directory in (tmp_path / "there", tmp_path / "new" / "site"):
        resource.setrlimit(resource.RLIMIT_FSIZE, (64, unlimited[1]))
        try:
            with pytest.raises(OSError, match="File too large"):
                write_site(directory, texts, None)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, unlimited)
        assert list(tmp_path.rglob("*")) == [tmp_path / "there"]
    write_site(tmp_path / "there", texts, None)
    assert tree(tmp_path / "there") == {str(path): text.encode() for path, text in texts.items()}


def test_a_link_that_leads_nowhere_is_a_file_of_others(tmp_path: Path) -> None:
    (tmp_path / "README.md").symlink_to("nowhere")
    with pytest.raises(FileError, match=r"README\.md exists; nothing was written"):
        write_site(tmp_path, {Path("README.md"): "x"}, None)


def test_a_dry_run_writes_nothing(tmp_path: Path, iobands: Command) -> None:
    done = iobands("init", "site", "--from", "archer2", "--dry-run", cwd=tmp_path)
    assert done.returncode == 0
    assert "would write site/config/systems/archer2.py" in done.stdout
    assert "would write site/config/systems/_cray.py" in done.stdout  # the site file imports it
    assert not (tmp_path / "site").exists()


def test_check_shows_what_a_newer_version_would_write(tmp_path: Path, iobands: Command) -> None:
    iobands("init", "site", "--from", "local", cwd=tmp_path)
    same = iobands("init", "site", "--check", cwd=tmp_path)
    assert same.stdout == "This version would write the same.\n"
    path = tmp_path / "site" / "config" / "systems" / "local.py"
    path.write_text(path.read_text().replace('"repeats": 3', '"repeats": 5'))
    before = tree(tmp_path / "site")
    other = iobands("init", "site", "--check", cwd=tmp_path)
    assert '-                        "repeats": 5,' in other.stdout
    assert '+                        "repeats": 3,' in other.stdout
    assert other.stdout.endswith("1 file differs.\n")
    assert tree(tmp_path / "site") == before


@pytest.mark.parametrize("template", templates())
def test_every_template_can_be_run_where_it_lies(template: str, tmp_path: Path) -> None:
    for path, text in new_site("x", template, Machine("host")).items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text, encoding="utf-8")
    found = runpy.run_path(str(tmp_path / "config" / "systems" / f"{template}.py"))
    assert (found["schema"], found["system"]["name"]) == (CONTRACT, template)


def test_a_machine_with_a_scheduler(tmp_path: Path) -> None:
    found = Machine(
        host="login1",
        scheduler="slurm",
        launcher="srun",
        partitions={"standard": 128, "7.days": None, "été": None},
        file_systems=file_systems_of([("/work", "lustre")], {}),
    )
    text = new_site("falcon", "generic", found)[Path("config/systems/falcon.py")]
    path = tmp_path / "falcon.py"
    path.write_text(text, encoding="utf-8")
    said = runpy.run_path(str(path))
    system = said["system"]
    assert (said["schema"], system["name"]) == (CONTRACT, "falcon")
    assert system["partitions"][0]["launcher"] == "srun"
    # only letters, digits, - and _, as ReFrame demands
    named = {each["name"]: each["access"] for each in system["partitions"]}
    assert named["_7-days"] == ["--partition=7.days"]
    assert named["_-t-"] == ["--partition=été"]
    example = str(installed_suite() / "config/systems/example.py")
    assert max(len(line) for line in text.splitlines() if line != example) <= 100


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--name", "falcon"), "the system is 'local', as no scheduler was found"),
        (("--name", "falcon", "--from", "archer2"), "'archer2', as its template names it"),
        (("a b",), "ReFrame needs a path of letters"),
    ],
)
def test_what_a_new_site_cannot_have(
    words: tuple[str, ...], why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(site_directory, "machine", lambda: Machine("login7"))
    status, said = call("init", *words, *([] if " " in words[0] else ["site"]))
    assert (status, list(tmp_path.iterdir())) == (3, [])
    assert why in said


@pytest.mark.parametrize(
    ("sinfo", "why"), [(None, ""), ("/bin/sinfo", " (`sinfo` names no partition)")]
)
def test_a_machine_without_a_scheduler_is_a_site_of_its_own(
    sinfo: str | None, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(shutil, "which", lambda _: sinfo)
    monkeypatch.setattr(site_directory, "machine", lambda: Machine("login7"))
    status, said = call("init", "site")
    assert status == 0
    text = f"No scheduler was found{why}: the site is this machine alone, as 'local'."
    assert text in " ".join(said.split())


def test_a_shared_file_system_that_is_not_measured_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shared = file_systems_of([(str(tmp_path), "lustre")], {})
    found = Machine("login7", file_systems=shared)
    monkeypatch.setattr(site_directory, "machine", lambda: found)
    said = " ".join(call("init", "site")[1].split())
    add = "to measure it, add it to 'filesystems' in site/config/systems/local.py"
    assert f"Not measured: {tmp_path}; {add}" in said


@pytest.mark.parametrize(
    ("account", "mount", "todo"),
    [
        (None, "lustre", "replace EDIT in"),
        ("z01", "ext4", "replace EDIT in"),  # no shared file system, which the file needs
        ("z01", "lustre", "check"),
    ],
)
def test_what_is_left_to_do_in_a_new_site_file_is_said(
    account: str | None, mount: str, todo: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    parts, shared = {"standard": 128}, file_systems_of([(str(tmp_path), mount)], {})
    found = Machine(
        "login7", scheduler="slurm", partitions=parts, file_systems=shared, account=account
    )
    monkeypatch.setattr(site_directory, "machine", lambda: found)
    status, said = call("init", "site")
    assert status == 0
    assert said.endswith(f"Next: {todo} site/config/systems/login.py, then iobands cost\n")
    text = (tmp_path / "site/config/systems/login.py").read_text("utf-8")
    assert ("EDIT" in text) is (todo != "check")


@pytest.mark.parametrize(("where", "go"), [(".", ""), ("site", "cd site && ")])
def test_the_next_command_is_said_for_a_machine_without_a_scheduler(
    where: str, go: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(site_directory, "machine", lambda: Machine("laptop"))
    assert call("init", where)[1].endswith(f"Next: {go}iobands run\n")


@pytest.mark.parametrize(("template", "files"), [("lumi", "{}/lumi.py"), ("puhti", "{}/_csc.py")])
def test_what_is_left_to_do_in_a_template_is_said(
    template: str, files: str, tmp_path: Path
) -> None:
    site = tmp_path / "site"
    said = " ".join(call("init", str(site), "--from", template)[1].split())
    assert said.endswith(
        f"Next: replace EDIT in {files.format(site / 'config/systems')}, then iobands cost"
    )


@pytest.mark.parametrize(
    ("given", "host", "name"),
    [
        (None, "login7", "login"),
        (None, "3dlab_a1", "dlab-a"),
        ("falcon", "login7", "falcon"),
        ("a/b", "login7", None),
        ("7x", "login7", None),
        ("a.b", "login7", None),
    ],
)
def test_the_name_of_a_site_with_a_scheduler(
    given: str | None, host: str, name: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(site_directory, "machine", lambda: Machine(host, scheduler="slurm"))
    status, said = call("init", "site", *(["--name", given] if given else []))
    if name is None:
        assert (status, f"'{given}': not a name" in said) == (3, True)
    else:
        assert (status, f"config/systems/{name}.py" in said) == (0, True)


def test_the_help_names_each_template() -> None:
    said = " ".join(call("init", "--help")[1].split())
    assert [each for each in templates() if f" {each}" not in said] == []


def test_an_unknown_template_is_said_with_the_known_ones() -> None:
    with pytest.raises(FileError, match=r"nope: no such template; write one of generic, archer2"):
        new_site("x", "nope", Machine("host"))


def test_a_clone_becomes_a_site_with_the_same_digest(tmp_path: Path, iobands: Command) -> None:
    made_up = tmp_path / "clone"
    whole_demo(made_up, datetime(2026, 6, 1, 12, tzinfo=timezone.utc))
    (made_up / "perflogs" / "README.md").write_text("of the clone, not of the site\n")
    (made_up / "config" / "alerts" / "made-up.jsonl.lock").write_text("")
    times = {"began": "2026-06-01T05:00:00+00:00", "ended": "2026-06-01T06:00:00+00:00"}
    session = {"schema": 1, "session": "20260601T050000Z-1", "host": "login1", "tag": "daily"}
    session |= {"system": "made-up-site", "how": "completed", "reason": None, "counts": {}}
    session |= {"seconds": {}, **times}
    (made_up / "perflogs" / "last-session.json").write_text(json.dumps(session))
    (made_up / "perflogs" / "plan.json").write_text("{}")
    (made_up / "outbox").mkdir(mode=0o700)
    (made_up / "outbox" / "causes.json").write_text("{}")
    (made_up / "outbox" / ".lock").write_text("")
    expected = set(files_of_clone(made_up))
    assert Path("perflogs/README.md") not in expected
    # without these the site would send each open alert again
    copied = {"perflogs/last-session.json", "perflogs/plan.json", "outbox/causes.json"}
    assert set(map(Path, copied)) < expected
    before = tree(made_up)
    done = iobands("init", "site", "--from-clone", str(made_up), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    own = {Path("README.md"), Path(".gitignore")}
    assert set(map(Path, tree(tmp_path / "site"))) == expected | own
    assert "# The I/O performance of made-up-site\n" in (tmp_path / "site/README.md").read_text()
    assert (tmp_path / "site" / "outbox").stat().st_mode & 0o777 == 0o700
    assert tree(made_up) == before
    digests = [
        iobands("status", "--as-of", "2026-06-02", cwd=place)
        for place in (made_up, tmp_path / "site")
    ]
    assert digests[0].stdout == digests[1].stdout
    assert "degraded" in digests[0].stdout


def test_a_clone_brings_its_epochs_its_store_and_its_acceptances(
    tmp_path: Path, iobands: Command
) -> None:
    made_up = tmp_path / "clone"
    whole_demo(made_up, datetime(2026, 6, 1, 12, tzinfo=timezone.utc))
    words = ("--since", "2026-05-30", "--reason", "firmware", "--yes")
    assert iobands("epoch", "new", *words, cwd=made_up).returncode == 0
    (made_up / "config" / "store.yaml").write_text("url: /store\n")
    (made_up / "perflogs" / "site.id").write_text("of this site\n")
    (made_up / "acceptances" / "tender").mkdir(parents=True)
    (made_up / "acceptances" / "tender" / "contract.yaml").write_text("schema: 1\n")
    done = iobands("init", "site", "--from-clone", str(made_up), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    own = {"config/store.yaml", "perflogs/site.id", "acceptances/tender/contract.yaml"}
    assert own | {"config/bands/made-up-site/new.yaml"} < set(tree(tmp_path / "site"))
    digests = [
        iobands("status", "--as-of", "2026-06-02", cwd=place).stdout
        for place in (made_up, tmp_path / "site")
    ]
    assert digests[0] == digests[1]
    assert "scratch writes" not in digests[0]  # its alert ended with the epoch
    assert "The store was" not in done.stdout
    (made_up / "config" / "store.yaml").write_text("url: results\n")
    said = iobands("init", "other", "--from-clone", str(made_up), cwd=tmp_path).stdout
    moved = f"The store was {made_up}/results; config/store.yaml now means {tmp_path}/other/results"
    assert f"{moved}: write one of them." in " ".join(said.split())


def test_site_files_that_a_clone_keeps_to_itself_are_named(
    tmp_path: Path, iobands: Command
) -> None:
    systems = tmp_path / "clone" / "config" / "systems"
    systems.mkdir(parents=True)
    for name in ("cirrus", "archer2", "_cray"):
        shutil.copy(installed_suite() / "config" / "systems" / f"{name}.py", systems)
    (systems.parents[1] / "perflogs" / "archer2").mkdir(parents=True)
    done = iobands("init", "site", "--from-clone", "clone", cwd=tmp_path)
    assert [path.name for path in (tmp_path / "site/config/systems").glob("[!_]*")] == [
        "archer2.py"
    ]
    said = "Left out, as they have no perflogs and the suite has them, too: cirrus; copy the one"
    assert said in " ".join(done.stdout.split())
    assert "too: archer2" not in " ".join(done.stdout.split())


def test_a_clone_is_copied_unless_a_session_runs_there(tmp_path: Path, iobands: Command) -> None:
    perflogs, holder = tmp_path / "clone" / "perflogs", new_holder("iobands run")
    perflogs.mkdir(parents=True)
    (tmp_path / "clone" / "config" / "systems").mkdir(parents=True)
    acquire(perflogs, holder)
    refused = iobands("init", "site", "--from-clone", "clone", cwd=tmp_path)
    assert (refused.returncode, "a session runs there" in refused.stderr) == (3, True)
    release(perflogs, holder.session)
    acquire(perflogs, replace(holder, processes=(replace(holder.processes[0], boot="before"),)))
    done = iobands("init", "site", "--from-clone", "clone", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


def test_check_knows_a_directory_of_several_systems(tmp_path: Path, iobands: Command) -> None:
    clone = tmp_path / "clone"
    for name in ("archer2", "local"):
        for path, text in new_site(name, name, Machine("host")).items():
            (clone / path).parent.mkdir(parents=True, exist_ok=True)
            (clone / path).write_text(text, encoding="utf-8")
        (clone / "perflogs" / name).mkdir(parents=True)
    done = iobands("init", "site", "--from-clone", str(clone), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    same = iobands("init", "site", "--check", cwd=tmp_path)
    assert same.stdout == "This version would write the same.\n"
