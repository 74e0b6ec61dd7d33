"""A site's directory: `iobands init` makes one, `doctor` checks it, `reframe` uses it."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
import shlex
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from difflib import unified_diff
from pathlib import Path
from typing import Annotated, Final

import typer

import iobands
from iobands import measure
from iobands.commands import cli
from iobands.commands.checkup import Line, failed, moved_store, site_lines, warned
from iobands.measure import site_directory
from iobands.measure.site_directory import GENERIC, LOCAL
from iobands.model import SessionError, __version__, read_small
from iobands.notify.outbox import scrubbed
from iobands.views.writing import plural

_LOG_BYTES: Final = 20_000  # of the last session's output, for a report
_ROOT: Final = Path(iobands.__file__).resolve().parents[2]
_IS_CLONE: Final = (_ROOT / "setup.cfg").is_file()  # pip must not put PyPI's package in its place
_WHAT: Final = f"--editable {_ROOT}" if _IS_CLONE else "--force-reinstall iobands"
_REINSTALL: Final = f"install it again: pip install {_WHAT}"
_HOOK: Final = re.compile(r"(?i)(https?://[^/\s]*hook[^/\s]*/)\S+")
#: Patterns of what never goes into a report, and their replacements.
_PRIVATE: Final = {
    r"(://)[^/\s@]+@": r"\1…@",
    r"(?i)\b(bearer|basic)\s+[\w.~+/=-]+": r"\1 …",
    r"(?i)\b(\w*(?:token|password|passwd|secret|api[_-]?key))(['\"]?\s*[:=]\s*['\"]?)[^\s'\",;]+":
        r"\1\2…",
    r"\b(?:glpat-|gh[pousr]_|github_pat_|xox[a-z]-|AKIA)[\w-]+": "…",
    r"(?i)\b(cookie\s*:\s*)[^\n]+": r"\1…",
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----(?s:.*?)(?:-----END [A-Z ]*-----|\Z)": "…",
    r"(?i)/(?:home|users)/[^/\s:'\"]+|/root\b": "~",
}  # fmt: skip


def doctor(
    root: cli.RootOption = None,
    report: Annotated[Path | None, "FILE", "Also write a report without secrets."] = None,
) -> None:
    """Check the installation and the site: print one line for each item, and what to do.

    It measures nothing and sends no message. The exit status is 0 if a session would run, 1 if
    something should be looked at, and 3 if a session would fail.

    The report has the findings, the versions of all packages, and the end of the output of the last
    session. It leaves out passwords, tokens, credentials in addresses, and home directories; read
    it before you send it.
    """
    site, found = root or cli.find_root(Path.cwd()), []
    for each in all_lines(site):
        remedy = [f"      {each.remedy}"] if each.remedy else []
        cli.say(f"{each.level.name:4}  {each.what}: {each.found}", *remedy)
        found.append(each)
    if report:
        cli.write_file(report, report_of(found, site).encode())
        cli.say(f"Report: {report.resolve()}; read it before you send it")
    raise typer.Exit(max(each.level for each in found))


def all_lines(site: Path | None) -> Iterator[Line]:
    """Check the installation and the site's directory, and yield a line for each finding."""
    yield Line("iobands", f"{__version__}, in {Path(iobands.__file__).parent}")
    yield Line("Python", f"{platform.python_version()}, {sys.executable}")
    yield from _copies()
    yield _packages()
    yield _reframe()
    if site and cli.is_site(site):
        yield from site_lines(site.resolve())
    else:
        remedy = "cd to a site's directory, give --site DIR, or make one: iobands init DIR"
        yield failed("site", f"{site or Path.cwd()}: no config/systems", remedy)


def _copies() -> Iterator[Line]:
    """Yield a line for each other copy of iobands that ReFrame or cron may import."""
    here = Path(iobands.__file__).resolve().parent
    entries = [*os.environ.get("PYTHONPATH", "").split(os.pathsep), *sys.path]
    found = {(Path(entry) / "iobands").resolve() for entry in entries if entry} - {here}
    for other in sorted(each for each in found if (each / "version.py").is_file()):
        yield failed("another iobands", str(other), "unset PYTHONPATH, or uninstall one of them")


def _packages() -> Line:
    """Check for a half-done upgrade: mixed versions, or packages outside of their ranges."""
    try:
        known = importlib.metadata.version("iobands")
        wrong = [each for text in _requirements("") if (each := _mismatch(text))]
    except importlib.metadata.PackageNotFoundError:
        return warned("packages", "pip does not know iobands", _REINSTALL)
    if known != __version__:
        wrong.insert(0, f"the package is {known}, its files are {__version__}: half upgraded")
    if wrong:
        return failed("packages", "; ".join(wrong), _REINSTALL)
    return Line("packages", "all are in their ranges")


def _requirements(extra: str) -> list[str]:
    wanted = f'extra == "{extra}"' if extra else ""
    every = importlib.metadata.requires("iobands") or []
    parts = [text.replace("'", '"').partition(";") for text in every]
    return [text.strip() for text, _, when in parts if when.strip() == wanted]


def _mismatch(requirement: str) -> str:
    """Return how an installed package violates a requirement such as `rich<16,>=13`, or ""."""
    name = re.split(r"[<>=!~ ]", requirement)[0]
    try:
        version = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return f"{name} is missing"
    return "" if is_within(version, requirement) else f"{name} {version} is not {requirement}"


def is_within(version: str, requirement: str) -> bool:
    """Whether a version is in a range of `>=` and `<`, the only operators in setup.cfg."""

    def number(text: str) -> list[int]:
        return [*map(int, re.findall(r"\d+", text)), 0, 0, 0][:3]

    bounds = re.findall(r"(>=|<)\s*([\d.]+)", requirement)
    return all((number(version) >= number(end)) == (sign == ">=") for sign, end in bounds)


def _reframe() -> Line:
    try:
        program = measure.reframe_command(Path.cwd())[0]
    except SessionError as error:
        return failed("ReFrame", "not found", str(error))
    said = measure.output_of(program, "--version")
    if not (version := re.match(r"\d+(\.\d+)+", said)):
        return failed("ReFrame", f"{program} does not start", "install it again")
    tested = ""
    with suppress(importlib.metadata.PackageNotFoundError):
        tested = next((each for each in _requirements("checks") if each.startswith("reframe")), "")
    text = f"{version[0]}, {program}"
    if not is_within(version[0], re.sub(r"<[\d.]+", "", tested)):
        return failed("ReFrame", text, f"too old; install a tested one: {tested}")
    if not is_within(version[0], tested):
        return warned("ReFrame", text, f"not tested; iobands is tested with {tested}")
    return Line("ReFrame", text)


def report_of(found: list[Line], site: Path | None) -> str:
    """Return the text of `doctor --report`: findings, packages and logs, without secrets."""
    every = importlib.metadata.distributions()
    packages = sorted({f"{each.metadata['Name']} {each.version}" for each in every})
    lines = [f"{each.level.name} {each.what}: {each.found}" for each in found]
    blocks = ["\n".join(lines), platform.platform(), "\n".join(packages)]
    for name in ("last-session.json", measure.LOG) if site else ():
        with suppress(OSError):
            content = read_small(site / "perflogs" / name)[-_LOG_BYTES:]  # type: ignore[operator]
            blocks.append(f"{name}:\n{content.decode(errors='replace')}")
    # hooks first: a secret in use, which `scrubbed` replaces, may be the beginning of the address
    text = scrubbed(_HOOK.sub(r"\1…", "\n\n".join(blocks)))
    with suppress(RuntimeError):  # the user has no home directory
        if (home := str(Path.home())) != "/":
            text = re.sub(re.escape(home) + r"\b", "~", text)
    for private, instead in _PRIVATE.items():
        text = re.sub(private, instead, text)
    return text + "\n"


_TEMPLATE: Final = (
    "The site file to begin with: generic is filled in from this machine, local is for a machine "
    "without a scheduler, example has every entry; the others are those of sites: archer2, cirrus, "
    "frontera, lonestar6, lumi, mahti, minisite, puhti."
)
_CLONE: Final = "Copy a clone's site file, bands, actions and perflogs; the clone stays as it is."


def init(
    directory: Annotated[
        Path, cli.argument("DIR", "A new directory; with --check, one of a site.")
    ],
    template: Annotated[str, cli.option("--from TEMPLATE", _TEMPLATE)] = GENERIC,
    name: Annotated[
        str | None, "NAME", "The system's name. [default: the host's; local without a scheduler]"
    ] = None,
    clone: Annotated[Path | None, cli.option("--from-clone CLONE", _CLONE)] = None,
    check: Annotated[bool, "Show what this version would write differently."] = False,
    dry_run: cli.DryRunOption = False,
) -> None:
    """Make a directory for a site: site file, bands, actions and perflogs.

    No later version of iobands changes it. Run the other commands in it, or name it with --site.
    """
    if check:
        cli.refuse("with --check", "template", "name", "clone", "dry_run")
        _check(cli.root_of(directory))
        return
    if cli.is_site(directory):
        raise cli.failure(
            f"{directory}: is the directory of a site already; nothing was changed. "
            f"See: iobands init {shlex.quote(str(directory))} --check"
        )
    if directory.resolve() == directory.resolve().parent:  # "/" would contain everything
        raise cli.failure(f"{directory}: is the root directory; name one for the site alone")
    measure.require_plain(directory.resolve())
    if clone:
        cli.refuse("with --from-clone", "template", "name")
        _refuse_busy(clone)
        copied = site_directory.files_of_clone(clone)
        texts = site_directory.texts_of_any(site_directory.systems_among(copied))
    else:
        found = site_directory.machine()
        copied, texts = [], site_directory.new_site(_name(name, template, found), template, found)
    paths = [*texts, *copied]
    if not dry_run:
        site_directory.write_site(directory, texts, clone)
    for path in paths if len(paths) <= 20 or dry_run else ():  # noqa: PLR2004
        cli.say(f"{'would write' if dry_run else 'wrote'} {directory / path}")
    if clone:
        _say_copied(clone, copied, [] if dry_run else moved_store(clone, directory), dry_run)
    elif site_directory.systems_among(paths) == [LOCAL]:
        if template == GENERIC:
            why = " (`sinfo` names no partition)" if shutil.which("sinfo") else ""
            cli.say(f"No scheduler was found{why}: the site is this machine alone, as {LOCAL!r}.")
        shared = (str(each["path"]) for each in found.file_systems.values())
        if said := ", ".join(each.removesuffix(f"/{site_directory.EDIT}") for each in shared):
            file = directory / "config" / "systems" / f"{LOCAL}.py"
            cli.say(f"Not measured: {said}; to measure it, add it to 'filesystems' in {file}")
        go = "" if directory.resolve() == Path.cwd() else f"cd {directory} && "
        cli.say(f"Next: {go}iobands run")
    else:
        edit = site_directory.marked(texts)
        todo = f"replace {site_directory.EDIT} in" if edit else "check"
        files = edit or [path for path in paths if path.match("config/systems/*")]
        where = " and ".join(str(directory / path) for path in files)
        cli.say(f"Next: {todo} {where}, then iobands cost")


def _say_copied(clone: Path, copied: Sequence[Path], moved: Sequence[str], dry_run: bool) -> None:
    """Print what was copied of a clone, what was left out, and what to do next."""
    names = site_directory.systems_among(clone.glob("config/systems/*.py"))
    left = ", ".join(sorted({*names} - {*site_directory.systems_among(copied)}))
    why = "Left out, as they have no perflogs and the suite has them, too"
    cli.say(
        f"{'Would copy' if dry_run else 'Copied'} {plural(len(copied), 'file')} of {clone}, which "
        "stays as it is.",
        *([f"{why}: {left}; copy the one of your site by hand."] if left else []),
        *moved,
        "Next: compare `iobands status` in both, change the schedule and then remove the clone's "
        "perflogs.",
    )


def _name(given: str | None, template: str, found: site_directory.Machine) -> str:
    """Return the name of a new system: the template's if that is fixed, `given`, or the host's."""
    fixed = template if template != GENERIC else None if found.scheduler else LOCAL
    if fixed:
        why = "no scheduler was found" if template == GENERIC else "its template names it"
        if given not in {None, fixed}:
            said = f"the system is {fixed!r}, as {why}; leave --name out"
            raise cli.failure(f"--name {given}: {said}")
        return fixed
    name = given
    if name is None:
        plain = found.host.lower().replace("_", "-")
        host = re.sub(r"^[^a-z]+|[\d-]+$", "", plain) or "site"
        name = typer.prompt("Name of the system", default=host) if sys.stdin.isatty() else host
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_-]*", name):  # as ReFrame demands
        said = "not a name; write letters, digits, - and _, and no digit first"
        raise cli.failure(f"{name!r}: {said}")
    return name


def _refuse_busy(clone: Path) -> None:
    if not cli.is_site(clone):
        raise cli.failure(f"{clone}: no clone with a site; there is no config/systems")
    holder = measure.read_holder(clone / "perflogs")
    if holder and holder.is_alive is not False:
        raise cli.failure(f"{clone}: a session runs there ({holder}); wait for its end")


def _check(root: Path) -> None:
    known = site_directory.templates()
    names = sorted(path.stem for path in (root / "config" / "systems").glob("[!_]*.py"))
    different, found = 0, site_directory.machine()
    texts: dict[Path, str] = {}
    for name in names:
        texts |= site_directory.new_site(name, name if name in known else GENERIC, found)
    for path, text in (texts | site_directory.texts_of_any(names)).items():
        place = root / path
        before = place.read_text("utf-8").splitlines() if place.is_file() else []
        lines = [*unified_diff(before, text.splitlines(), str(place), "new", lineterm="", n=1)]
        different += bool(lines)
        cli.show("".join(f"{line}\n" for line in lines))
    count = f"{plural(different, 'file')} {'differs' if different == 1 else 'differ'}."
    cli.say(count if different else "This version would write the same.")


def reframe(root: cli.RootOption = None, extra: cli.ReframeArguments = None) -> None:
    """Call ReFrame with the configuration and the checks of a site, such as `-- -l` or `-- -r`.

    The exit status is ReFrame's own, such as 1 if a check failed, or 3 if ReFrame or the site is
    missing.
    """
    site = cli.root_of(root)
    command = measure.reframe_command(site)
    os.environ[measure.SITE_ENV] = str(site)
    os.execv(command[0], [*command, *(extra or ())])  # noqa: S606 (words, not a shell's line)
