"""A site's own directory: what a new one has, and what an existing clone brings to it.

All of it belongs to the site's staff from then on; no later version changes it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from pprint import pformat
from shutil import copy2
from typing import Final

from iobands.measure import installed_suite
from iobands.measure.machine import Machine, site_of_machine
from iobands.model import FileError

#: The template that is filled in with what this machine says of itself.
GENERIC: Final = "generic"
#: The site file of a machine without a scheduler, which needs no change.
LOCAL: Final = "local"

_SYSTEMS: Final = Path("config/systems")
_NOTIFY: Final = Path("config/notify.yaml")
_BANDS: Final = Path("config/bands")
_SITE_FILE: Final = '''"""The site file of {name}, from what `iobands init` found on {host}.

Replace what is marked EDIT, and check the rest. Contract 4 explains each entry; {example}
has an example of each.
"""

schema = 4  # of contract 4

system = {system}

environments = {environments}
'''
_README: Final = """\
# The I/O performance of {name}

What iobands measures here, and how. No upgrade of iobands changes this directory.

- `config/systems/{name}.py`: the site file: partitions, file systems, scales, environments
- `config/bands/`, `config/alerts/`: bands and epochs; the answers to alerts
- `perflogs/`: the samples and the log of alerts; keep a backup

Estimate the cost with `iobands cost`, measure with `iobands run`, and print the digest with
`iobands status`. `iobands schedule cron` prints the line for cron.
"""
_IGNORED: Final = """\
/build/
/builds/
/dashboard/
/outbox/
/output/
/perflogs/
/stage/
/config/alerts/*.lock
reframe.log
reframe.out
__pycache__/
"""


def templates() -> list[str]:
    """Return the names of the site files that the suite brings."""
    files = (installed_suite() / _SYSTEMS).glob("[!_]*.py")
    return sorted(path.stem for path in files if path.stem != "example")


def new_site(name: str, template: str, found: Machine) -> dict[Path, str]:
    """Return the text of each file of a new site, by its path in the directory of the site.

    Raises:
        FileError: there is no such template.
    """
    if template == GENERIC and found.scheduler is None:
        template = name = LOCAL
    if template == GENERIC:
        system, environments = site_of_machine(name, found)
        texts = {
            _SYSTEMS / f"{name}.py": _SITE_FILE.format(
                name=name,
                host=found.host,
                example=installed_suite() / _SYSTEMS / "example.py",
                system=pformat(system, width=96, sort_dicts=False),
                environments=pformat(environments, width=96, sort_dicts=False),
            )
        }
    elif template in templates():
        name, texts = template, _from_suite(template)
    else:
        known = ", ".join([GENERIC, *templates()])
        raise FileError(f"{template}: no such template; write one of {known}")
    return {
        Path("README.md"): _README.format(name=name),
        Path(".gitignore"): _IGNORED,
        **texts,
    }


def _from_suite(template: str) -> dict[Path, str]:
    """Return the texts of a site file, of the files beside it that it reads, and of its bands."""
    suite = installed_suite()
    text = (suite / _SYSTEMS / f"{template}.py").read_text("utf-8")
    paths = [_SYSTEMS / f"{template}.py", _BANDS / f"{template}.yaml"]
    paths += [_SYSTEMS / f"{name}.py" for name in re.findall(r"\b(_\w+)\.py\b", text)]
    return {path: (suite / path).read_text("utf-8") for path in paths if (suite / path).exists()}


def files_of_clone(clone: Path) -> list[Path]:
    """Return the files of a site in a clone, by their paths in it.

    These are all perflogs, the actions and the settings of messages; of site files and bands those
    of systems with perflogs, and those that the suite does not bring or has otherwise.
    """
    measured = {path.name for path in (clone / "perflogs").glob("*/") if path.is_dir()}
    suite = installed_suite()
    own = [
        path
        for pattern in (_SYSTEMS / "*.py", _BANDS / "*.yaml")
        for path in clone.glob(str(pattern))
        if path.stem in measured or path.name.startswith("_") or _differs(path, clone, suite)
    ]
    data = [path for path in (clone / "perflogs").rglob("*") if path.parent != clone / "perflogs"]
    return sorted(
        path.relative_to(clone)
        for path in (
            *own,
            *data,
            *clone.glob("config/alerts/*.jsonl"),
            clone / "config/notify.yaml",
        )
        if path.is_file() and not path.is_symlink() and path.suffix != ".lock"
    )


def _differs(path: Path, clone: Path, suite: Path) -> bool:
    other = suite / path.relative_to(clone)
    return not other.is_file() or other.read_bytes() != path.read_bytes()


def write_site(directory: Path, texts: Mapping[Path, str], clone: Path | None) -> None:
    """Write a new site's files, and copy those of a clone, which stays as it is.

    Raises:
        FileExistsError: a file is there already; nothing was written.
        OSError: a file cannot be written.
    """
    copied = {path: clone / path for path in files_of_clone(clone)} if clone else {}
    for path in (*texts, *copied):
        if (directory / path).exists():
            raise FileExistsError(f"{directory / path} exists; nothing was written")
    for name in ("config/bands", "config/alerts", "config/systems", "perflogs"):
        (directory / name).mkdir(parents=True, exist_ok=True)
    for path, text in texts.items():
        (directory / path).write_text(text, encoding="utf-8")
    for path, own in copied.items():
        (directory / path).parent.mkdir(parents=True, exist_ok=True)
        copy2(own, directory / path)
