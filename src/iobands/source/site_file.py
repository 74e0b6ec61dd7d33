"""The site file (contract 4) as commands need it: file systems, settings, recommendations."""

from __future__ import annotations

import re
import runpy
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from iobands.model import FileError, SeriesKey, mistake_in, path_part, read_content, run_in_time

#: The directory that published commands stripe.
_DIRECTORY: Final = "results"
_HINTS_FILE: Final = "romio-hints"

Section = Mapping[str, Any]


@dataclass(frozen=True)
class SiteFile:
    """The extras of partitions, the environments and the paths of file systems, each by name.

    `hostnames` are patterns for the hosts on which ReFrame uses the file.
    """

    partitions: Mapping[str, Section] = field(default_factory=dict)
    environments: Mapping[str, Section] = field(default_factory=dict)
    paths: Mapping[str, str] = field(default_factory=dict)
    hostnames: Sequence[str] = ()

    def recommends(self, key: SeriesKey) -> bool:
        """Return whether an entry of `recommended` selects the series."""
        extras = self.partitions.get(key.partition, {})
        return any(
            _selects(entry, key, extras)
            for entry in extras.get("recommended", ())
            if "case" not in entry
        )


def read_site_file(directory: Path, system: str) -> SiteFile:
    """Return the site file of `system` in `directory`; without one it is empty.

    Raises:
        FileError: the file cannot be run, or lacks what a site file has.
    """
    path = directory / f"{path_part(system)}.py"
    try:
        path.stat()
    except FileNotFoundError:
        return SiteFile()
    try:
        read_content(path)  # refuses a pipe, which Python would wait for
        found = run_in_time(path, lambda: runpy.run_path(str(path)))
        partitions = {e["name"]: e.get("extras", {}) for e in found["system"]["partitions"]}
        places = [extras.get("filesystems", {}) for extras in partitions.values()]
        hostnames = tuple(found["system"].get("hostnames", ()))
        for name in hostnames:
            re.compile(name)
        return SiteFile(
            partitions,
            {each["name"]: each for each in found.get("environments", ())},
            {name: entry["path"] for each in places for name, entry in each.items()},
            hostnames,
        )
    except re.error as error:
        mistake = f"hostnames: {error.pattern!r} is no regular expression: {error}"
        raise FileError(f"{path}: {mistake}") from error
    except (Exception, SystemExit) as error:
        raise FileError(mistake_in(path, error)) from error


def commands(site_file: SiteFile, key: SeriesKey, newest: Mapping[str, Any]) -> list[str]:
    """Return the shell commands for the settings of a series, as far as these are known.

    They load the environment, stripe the directory `results`, and set the variables of the hint
    preset. `newest` has the fields of the newest sample.
    """
    extras = site_file.partitions.get(key.partition, {})
    environment = site_file.environments.get(key.environ or "", {})
    preset = extras.get("hint_presets", {}).get(key.hints, {})
    lines = list(environment.get("prepare_cmds", ()))
    lines += [_export(name, value) for name, value in environment.get("env_vars", ())]
    striping = newest.get("striping_command")
    lines += [f"mkdir -p {_DIRECTORY}", f"{striping} {_DIRECTORY}"] if striping else []
    lines += [_export(name, value) for name, value in preset.get("env_vars", {}).items()]
    if hints := preset.get("romio_hints", {}):
        words = " ".join(shlex.quote(f"{name} {value}") for name, value in hints.items())
        lines += [
            f"printf '%s\\n' {words} > {_HINTS_FILE}",
            f'export ROMIO_HINTS="$PWD/{_HINTS_FILE}"',
        ]
    return lines


def _selects(entry: Section, key: SeriesKey, extras: Section) -> bool:
    place = extras.get("filesystems", {}).get(key.file_system, {})
    scales = extras.get("scales", {})
    scale = scales.get(entry.get("scale", next(iter(scales), None)), {})
    wanted = {"tool": "benchio", **entry}
    wanted.pop("scale", None)
    known = {**key.fields(), "medium": place.get("medium"), "stripe_count": key.stripe_count_asked}
    if key.stripe_count_asked is None:
        wanted.pop("stripe_count", None)  # a file system without stripes
    if isinstance(scale.get("nodes"), int):
        wanted["gib"] = scale["nodes"] * scale["tasks_per_node"] * scale["mib_per_task"] / 1024
    return all(known.get(name) == value for name, value in wanted.items())


def _export(name: str, value: object) -> str:
    return f"export {name}={shlex.quote(str(value))}"
