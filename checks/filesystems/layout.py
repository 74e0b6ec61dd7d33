"""Striping of any file system: requested, in effect, and whether both agree."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

#: The stripe count that stands for all targets.
ALL_TARGETS = -1

BYTES_PER_KIB = 1024

#: The files with the storage targets and the layouts that job scripts leave in the stage directory.
TARGETS_FILE = "targets.txt"
LAYOUT_FILE = "layout.txt"


class StripingError(ValueError):
    """A layout could not be read, or differs from the request.

    If it could be read, `layout` is the one in effect.
    """

    def __init__(self, message: str, layout: "Layout | None" = None) -> None:
        """Take the message, and the layout if there is one."""
        super().__init__(message)
        self.layout = layout


@dataclass(frozen=True)
class Asked:
    """The requested striping of a run; None keeps the file system's own, which is recorded."""

    stripe_count: int | None = None
    size_kib: int | None = None
    object_size_kib: int | None = None
    index: int | None = None
    pool: str | None = None
    #: The fileset and the copies of the data; only on Spectrum Scale.
    fileset: str | None = None
    replicas: int | None = None
    #: Options of `lfs setstripe` in place of all others; only on Lustre.
    layout: str | None = None
    #: How many targets −1 stands for, if the site file says so.
    targets: int | None = None
    #: How many of the targets may take no files; only on Lustre.
    tolerated: int = 0

    @property
    def anything(self) -> bool:
        """Whether the run directory has to be striped at all."""
        asked = {**vars(self), "targets": None, "tolerated": None}
        return any(value is not None for value in asked.values())


@dataclass(frozen=True)
class Layout:
    """The layout of a file, sizes in bytes; all None on a file system without stripes."""

    stripe_count: int | None = None
    stripe_size: int | None = None
    object_size: int | None = None
    index: int | None = None
    pool: str | None = None
    fileset: str | None = None
    replicas: int | None = None
    #: The program that showed it, where several may.
    shown_by: str | None = field(default=None, compare=False)

    @property
    def placement(self) -> str | None:
        """The placement of the files besides stripes, in the form of the column."""
        values = {"pool": self.pool, "fileset": self.fileset, "replicas": self.replicas}
        return ",".join(f"{name}={value}" for name, value in values.items() if value) or None


@dataclass(frozen=True)
class Targets:
    """The numbers of storage targets in and out of service."""

    active: int
    inactive: int


@dataclass(frozen=True)
class Space:
    """The space of a target in KiB: total and free."""

    size_kib: int
    free_kib: int


@dataclass(frozen=True)
class TargetFaults:
    """The faults of a file system's targets, and what could not be seen."""

    #: Faults that stop any file.
    stopping: tuple[str, ...] = ()
    #: Faults that stop files over all targets.
    over_all: str | None = None
    #: Faults that stop nothing.
    others: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    #: How many targets take new files, if that was seen.
    taking: int | None = None


class Striping:
    """The base of all types of file systems, and the type without stripes.

    The script of a type defines `stripe`, `read_layout` and `list_targets`;
    docs/howto/add-a-file-system.md shows how to add a type.
    """

    #: Its names in the mount table; empty for any.
    mounted_as: Sequence[str] = ()

    #: The entries of `striping` that a site file may have, by the names of `Asked`.
    options: Sequence[str] = ()

    #: Whether a site file may have `stripe_counts`.
    has_stripes = False

    #: The script with the bash functions for job scripts; None if the type has no functions.
    script: Path | None = None

    #: Whether layouts name the target of each stripe.
    names_targets = False

    #: Whether the target of each stripe can be queried: the script defines `list_stripes`.
    lists_stripes = False

    #: Whether the script defines `client_statistics`, the counters of Lustre's clients.
    counts_clients = False

    def stripe(self, asked: Asked) -> list[str]:
        """Shell commands that stripe `$run_directory` before anything is written to it."""
        return []

    def in_effect(self, stage: Path, asked: Asked) -> Layout:
        """The layout of the written files.

        Raises:
            StripingError: it could not be read, or it differs from the request.
        """
        return Layout()

    def command(self, asked: Asked, found: Layout) -> str | None:
        """The shell command, without the directory, that stripes a directory like a run's files.

        `found` is the layout in effect. The site publishes this command.
        """
        return None

    def targets_of_files(self, text: str) -> Mapping[str, tuple[int, ...]]:
        """The index of the target of each stripe by the name of the file, from LAYOUT_FILE.

        They are in the order of the stripes, for all components in use; a target with several
        stripes appears as often. Empty if layouts name no targets.

        Raises:
            StripingError: a layout could not be read.
        """
        return {}

    def count_targets(self, text: str) -> Targets | None:
        """The storage targets in the output of `list_targets`; None without targets."""
        return None

    def targets_in_reach(self, text: str) -> Mapping[str, Space | None]:
        """The targets in service of the requested pool, by name; None if the space is unknown."""
        return {}

    def judge_targets(
        self, said: Mapping[str, str], tolerated: int, needed_kib: float, declared: int | None
    ) -> TargetFaults | None:
        """The faults of the targets by the sections of the probe; None if nothing was seen.

        Up to `tolerated` targets may be out of service, and each needs `needed_kib` of free space.
        `declared` is their number in the site file, if any.
        """
        if self.script is None:
            return TargetFaults()
        seen = self.count_targets(said.get("targets", ""))
        if seen is None:
            return None
        if seen.inactive <= tolerated:
            return TargetFaults(taking=seen.active)
        number = seen.active + seen.inactive
        return TargetFaults((f"{seen.inactive} of {number} storage targets are not in service",))


def uneven(stripe_count: int, processes: int) -> str | None:
    """Why this number of stripes of a shared file gives its processes different shares."""
    if stripe_count > processes:
        return f"is {stripe_count}, more than the {processes} processes"
    if processes % stripe_count:
        return f"is {stripe_count}, which does not divide the {processes} processes"
    return None


def mount_names(settings: Mapping, backend: Striping) -> Sequence[str]:
    """The possible names of a file system in the mount table; empty for any."""
    named = settings.get("mounted_as")
    return [named] if named else backend.mounted_as


def mount_asked(settings: Mapping) -> str:
    """The type of a file system and, if the site file gives it, its name in the mount table."""
    named = settings.get("mounted_as")
    return f"{settings['type']}, mounted as {named}" if named else settings["type"]


def pool_listed(text: str) -> str | None:
    """The pool of the site file, which may be the first line of a script's list of targets."""
    found = re.match(r"pool (\S+)$", text, re.MULTILINE)
    return found[1] if found else None


def agreed(layouts: Sequence[Layout], asked: Asked, targets: int | None, noun: str) -> Layout:
    """The layout that all `layouts` have, if it agrees with the request.

    `targets` is the number of targets if known, and `noun` their name.

    Raises:
        StripingError: it does not agree; the message names both.
    """
    expected, words = asked.stripe_count, str(asked.stripe_count)
    if asked.stripe_count == ALL_TARGETS:
        if targets is None:
            raise StripingError(
                f"stripe count requested: all {noun}; their number could not be seen: set "
                "`targets` in the site file's striping"
            )
        expected, words = targets, f"all {targets} {noun}"
    elif targets is not None and expected is not None and expected > targets:
        # Some file systems record such a layout unchanged, although they have fewer targets.
        raise StripingError(f"stripe count requested: {expected}; there are {targets} {noun}")
    for layout in layouts:
        pairs = (
            ("stripe count", words, expected, layout.stripe_count),
            ("stripe size", *_bytes(asked.size_kib), layout.stripe_size),
            ("object size", *_bytes(asked.object_size_kib), layout.object_size),
            ("first target", asked.index, asked.index, layout.index),
            ("pool", asked.pool, asked.pool, layout.pool),
            ("fileset", asked.fileset, asked.fileset, layout.fileset),
            ("copies of the data", asked.replicas, asked.replicas, layout.replicas),
        )
        for name, said, wanted, found in pairs:
            if wanted is not None and found != wanted:
                raise StripingError(f"{name} requested: {said}; in effect: {found}", layout)
    for name in ("stripe_count", "stripe_size", "replicas"):
        values = {getattr(layout, name) for layout in layouts}
        if len(values) > 1:
            named = name.replace("_", " ")
            raise StripingError(f"the files differ in {named}: {sorted(values)}")
    return replace(
        layouts[0], index=None, object_size=None, pool=_all_of(each.pool for each in layouts)
    )


def _all_of(names: Iterable[str | None]) -> str | None:
    """The names of the files' pools, as Lustre's pools may spill over into others."""
    return " and ".join(sorted(set(filter(None, names)))) or None


def _bytes(kib: int | None) -> tuple[int | None, int | None]:
    size = None if kib is None else kib * BYTES_PER_KIB
    return size, size
