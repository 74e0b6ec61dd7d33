"""The site configuration that ReFrame loads: `reframe -C config/site.py`.

It merges config/results.py with every config/systems/<name>.py of the site's directory. A new site
is one more file there; nothing here names a site. It puts the package on the path, so that the
checks find `iobands` under a site's own ReFrame.
"""

import argparse
import os
import re
import socket
import sys
from functools import partial
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

CONFIG = Path(__file__).resolve().parent
SOURCE = CONFIG.parent / "src" / "iobands"
if SOURCE.is_dir():
    sys.path.insert(0, str(SOURCE.parent))
else:  # installed, among packages that must not hide ReFrame's own
    sys.path.append(str(CONFIG.parents[2]))

import reframe  # noqa: E402
from reframe.utility.osext import osuser  # noqa: E402

import iobands  # noqa: E402
from iobands.measure import WRONG_ARGUMENT, SessionError, require_plain  # noqa: E402
from iobands.measure.inside import begin_in_reframe, is_run, mend_loading  # noqa: E402
from iobands.measure.perflogs import takes_locks  # noqa: E402
from iobands.model import FileError, mistake_in, not_read, one_of, read_content, run_in_time  # noqa: E402

_OLDEST = (4, 10)  # the first with these run reports and settings of perflogs

# by prefix, as ReFrame accepts abbreviations
_UNFIT_OPTIONS = {
    "--skip-sa": "--skip-sanity-check: a run without it proves nothing; leave it out",
    "--res": "--restore-session: a session measures only what its own preflight has examined; "
    "leave it out, as builds are kept anyway",
    "--ci-": "--ci-generate: each of its jobs would need the preflight of another session; "
    "call `iobands run` in one job",
}


def _refuse_versions() -> None:
    """Refuse a ReFrame that is too old, and an iobands that does not belong to these checks."""
    if (*map(int, re.findall(r"\d+", reframe.VERSION)[:2]),) < _OLDEST:
        needs = ".".join(map(str, _OLDEST))
        raise SystemExit(f"ERROR: ReFrame {reframe.VERSION} is too old: iobands needs {needs}")
    own = SOURCE.resolve() if SOURCE.is_dir() else CONFIG.parents[1]
    found = Path(iobands.__file__).resolve().parent
    if found != own:
        remedy = "unset PYTHONPATH, or uninstall one of them"
        raise SystemExit(f"ERROR: ReFrame finds {found} before {own}: {remedy}")


def _refuse_options() -> None:
    """Refuse options of ReFrame after which checks would fail without naming the cause."""
    for word in sys.argv[1:] if "reframe.frontend.cli" in sys.modules else ():
        for beginning, why in _UNFIT_OPTIONS.items():
            if word.startswith(beginning):
                raise SystemExit(f"ERROR: {why}")


def _load(path: Path) -> ModuleType:
    """The module at `path`, without putting its directory on the path."""
    spec = spec_from_file_location(f"iobands_config_{path.stem}", path)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _requested_system() -> str | None:
    """The name of the system in ReFrame's arguments, if any."""
    parser = argparse.ArgumentParser(add_help=False)  # accepts abbreviations, as ReFrame does
    parser.add_argument("--system", default=os.environ.get("RFM_SYSTEM"))
    asked = parser.parse_known_args()[0].system
    return asked.partition(":")[0] if asked else None


def _is_used(system: dict) -> bool:
    """Whether `--system` or the host name matches, so that ReFrame picks the first such system."""
    asked = _requested_system()
    if asked:
        return asked == system["name"]
    host = socket.gethostname()
    return any(re.match(pattern, host) for pattern in system.get("hostnames", []))


def _is_surely_unused(path: Path, site: ModuleType | None) -> bool:
    """Whether it is certain that ReFrame will not pick the system of a file with a mistake."""
    try:
        return not _is_used(site.system)
    except Exception:  # only the name of the file is known
        return _requested_system() not in {None, path.stem}


def _site_files(directory: Path) -> list[Path]:
    """The site files in the order in which ReFrame tries them; `local` matches any host.

    A name that begins with a dot belongs to an editor, such as its lock, a dangling link.
    """
    try:
        found = [each for each in directory.iterdir() if each.suffix == ".py"]
    except OSError as error:
        raise SystemExit(f"ERROR: {not_read(directory, error)}") from None
    own = [each for each in found if each.name[0] not in "._"]
    return sorted(own, key=lambda path: (path.stem == "local", path.stem))


def _refuse_unknown(systems: list[dict], left_out: list[str]) -> None:
    """Refuse to run without a matching site file: ReFrame would run no check, and not say why."""
    asked = _requested_system()
    if not is_run(sys.argv[1:]) and "--describe" not in sys.argv:
        return
    if asked:
        known = one_of(asked, sorted(system["name"] for system in systems))
        none = f"no site file in config/systems has the system {asked}; {known}"
        print("; left out: ".join([f"ERROR: {none}", *left_out]), file=sys.stderr)
        raise SystemExit(1 if left_out else WRONG_ARGUMENT)
    none = f"no site file in config/systems matches this host, {socket.gethostname()}"
    remedy = "correct its hostnames, or give --system NAME"
    raise SystemExit(f"ERROR: {left_out[0] if left_out else f'{none}; {remedy}'}")


def _in_english(partition: dict) -> dict:
    """The partition with LC_ALL=C, as the checks read messages and decimal points of its jobs."""
    return {**partition, "env_vars": [["LC_ALL", "C"], *partition.get("env_vars", [])]}


def _begin_session(perflogs: Path, system: str) -> str:
    """Begin the session before anything is measured, and return its identifier."""
    try:
        return begin_in_reframe(perflogs, system)
    except SessionError as error:
        raise SystemExit(f"ERROR: {error}") from None


def _remove_first_log() -> None:
    """Remove the log that ReFrame began in TMPDIR before it knew where its log goes."""
    if "reframe.frontend.cli" in sys.modules:
        for path in map(Path, sys.modules["reframe.core.logging"].log_files()):
            if path.name.startswith("rfm-"):
                path.unlink(missing_ok=True)


def _site_configuration() -> dict:
    _refuse_versions()
    _refuse_options()
    mend_loading()
    if osuser() is None:  # a container's user without a name, which ReFrame's perflogs need
        os.environ["USER"] = str(os.geteuid())
    results = _load(CONFIG / "results.py")
    validation = _load(CONFIG / "validation.py")
    try:
        require_plain(CONFIG.parent)
        require_plain(results.SITE)
        validation.check_environment(os.environ)
    except FileError as error:
        raise SystemExit(f"ERROR: {error}") from None
    systems, environments, general = [], [], []
    used, left_out = None, []
    for path in _site_files(results.SITE / "config" / "systems"):
        site = None
        try:
            read_content(path)  # refuses a pipe, which Python would wait for
            site = run_in_time(path, partial(_load, path))
            validation.require_words(site, path)
            newer = validation.leave_out_newer(site, path) if hasattr(site, "schema") else []
            validation.check_site(site.system, site.environments, path)
            if not used and _is_used(site.system):
                validation.refuse_edit(site.system, path)
                for warning in (*newer, *validation.warnings(site.system, path)):
                    print(f"WARNING: {warning}", file=sys.stderr)
                used = site.system["name"]
        except Exception as error:
            said = mistake_in(path, error)
            if used or _is_surely_unused(path, site):
                print(f"WARNING: left out: {said}", file=sys.stderr)
                left_out.append(said)
                continue
            # ReFrame would name config/site.py instead
            raise SystemExit(f"ERROR: {said}") from None
        partitions = [_in_english(each) for each in site.system["partitions"]]
        systems.append({**results.directories(), **site.system, "partitions": partitions})
        environments.extend(
            {**environment, "target_systems": [site.system["name"]]}
            for environment in site.environments
        )
        general.append(results.general(site.system["name"]))
    if not used:
        _refuse_unknown(systems, left_out)
    locks, runs = True, is_run(sys.argv[1:])
    if used and runs:
        session = _begin_session(results.PERFLOGS, used)
        for system in systems:
            system["stagedir"] = f"{system['stagedir']}/{session}"
        locks = takes_locks(results.PERFLOGS)
    _remove_first_log()
    return {
        "systems": systems,
        "environments": environments,
        "logging": results.logging(locks, runs),
        "general": general,
    }


site_configuration = _site_configuration()
