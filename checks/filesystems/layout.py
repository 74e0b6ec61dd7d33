"""Striping of any file system: what is asked for, what is in effect, and whether both agree."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

#: What stands for "all targets" in a stripe count.
ALL_TARGETS = -1

BYTES_PER_KIB = 1024

#: Where job scripts leave the storage targets and the layout of the files, in the stage directory.
TARGETS_FILE = "targets.txt"
LAYOUT_FILE = "layout.txt"


class StripingError(ValueError):
    """A layout could not be read, or is not the one that was asked for.

    Where it could be read, `layout` is the one in effect.
    """

    def __init__(self, message: str, layout: "Layout | None" = None) -> None:
        """Take the message, and the layout where there is one."""
        super().__init__(message)
        self.layout = layout


@dataclass(frozen=True)
class Asked:
    """The striping that a run asks for; None leaves the file system's own, which is recorded."""

    stripe_count: int | None = None
    size_kib: int | None = None
    object_size_kib: int | None = None
    index: int | None = None
    pool: str | None = None
    #: The fileset and the copies of the data, of Spectrum Scale alone.
    fileset: str | None = None
    replicas: int | None = None
    #: Options of `lfs setstripe` in place of all others, of Lustre alone.
    layout: str | None = None
    #: How many targets −1 stands for, where the site file says so.
    targets: int | None = None
    #: How many of them may take no files; of Lustre alone.
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

    @property
    def placement(self) -> str | None:
        """Where the files lie besides their stripes, as the column has it."""
        values = {"pool": self.pool, "fileset": self.fileset, "replicas": self.replicas}
        return ",".join(f"{name}={value}" for name, value in values.items() if value) or None


@dataclass(frozen=True)
class Targets:
    """How many storage targets are in service and how many are not."""

    active: int
    inactive: int


@dataclass(frozen=True)
class Space:
    """Space in KiB, of a target: in all and free."""

    size_kib: int
    free_kib: int


@dataclass(frozen=True)
class TargetFaults:
    """What is wrong with the targets of a file system, and what could not be seen."""

    #: What is in the way of any file.
    stopping: tuple[str, ...] = ()
    #: What is in the way of files over all targets.
    over_all: str | None = None
    #: What is in nobody's way.
    others: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    #: How many targets take new files, where that was seen.
    taking: int | None = None


class Striping:
    """One type of file system; this one has no stripes.

    Its script defines `stripe`, `read_layout` and `list_targets`. docs/howto/add-a-file-system.md
    adds one.
    """

    #: What the mount table calls it; empty where anything will do.
    mounted_as: Sequence[str] = ()

    #: What a site file may say in `striping`, by the names of `Asked`.
    options: Sequence[str] = ()

    #: Whether a site file may say `stripe_counts`.
    has_stripes = False

    #: The functions of bash for job scripts; None where there is nothing to call.
    script: Path | None = None

    #: Whether layouts name the target of each stripe.
    names_targets = False

    #: Whether the target of each stripe can be asked for: the script defines `list_stripes`.
    lists_stripes = False

    #: Whether the script defines `client_statistics`, what Lustre's clients count.
    counts_clients = False

    def stripe(self, asked: Asked) -> list[str]:
        """Shell commands that stripe `$run_directory`, before anything is written there."""
        return []

    def in_effect(self, stage: Path, asked: Asked) -> Layout:
        """The layout of the files that were written.

        Raises:
            StripingError: it could not be read, or it differs from what was asked.
        """
        return Layout()

    def command(self, asked: Asked, found: Layout) -> str | None:
        """The shell command, without the directory, that stripes one like the files of a run.

        `found` is the layout in effect. It is what the site publishes.
        """
        return None

    def targets_of_files(self, text: str) -> Mapping[str, tuple[int, ...]]:
        """The index of the target of each stripe by the name of the file, from LAYOUT_FILE.

        In the order of the stripes, and of all components that are in use; a target with several
        stripes is there as often. Empty where layouts name no targets.

        Raises:
            StripingError: a layout could not be read.
        """
        return {}

    def count_targets(self, text: str) -> Targets | None:
        """The storage targets by what `list_targets` printed; None if it printed none."""
        return None

    def targets_in_reach(self, text: str) -> Mapping[str, Space | None]:
        """The targets in service, of the pool that was asked for, by name; None: space unknown."""
        return {}

    def judge_targets(
        self, said: Mapping[str, str], tolerated: int, needed_kib: float, declared: int | None
    ) -> TargetFaults | None:
        """What is wrong with the targets by the sections of the probe; None if nothing was seen.

        So many targets may be out of service, and each needs so many KiB; the site file may have
        `declared` how many there are.
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
    """Why so many stripes of a shared file give its processes different shares, in words."""
    if stripe_count > processes:
        return f"is {stripe_count}, more than the {processes} processes"
    if processes % stripe_count:
        return f"is {stripe_count}, which does not divide the {processes} processes"
    return None


def mount_names(settings: Mapping, backend: Striping) -> Sequence[str]:
    """What the mount table may call a file system; empty where anything will do."""
    named = settings.get("mounted_as")
    return [named] if named else backend.mounted_as


def pool_listed(text: str) -> str | None:
    """The pool of the site file, with which a script may begin its list of targets."""
    found = re.match(r"pool (\S+)$", text, re.MULTILINE)
    return found[1] if found else None


def agreed(layouts: Sequence[Layout], asked: Asked, targets: int | None, noun: str) -> Layout:
    """The layout that all `layouts` have, which is the one that was asked for.

    `targets` is how many there are, where that is known, and `noun` what they are called.

    Raises:
        StripingError: they are not; the message names both.
    """
    expected, words = asked.stripe_count, str(asked.stripe_count)
    if asked.stripe_count == ALL_TARGETS:
        if targets is None:
            raise StripingError(
                f"stripe count asked: all {noun}; how many these are could not be seen: "
                "say it as `targets` in the site file's striping"
            )
        expected, words = targets, f"all {targets} {noun}"
    elif targets is not None and expected is not None and expected > targets:
        # Some file systems write such a layout down as it is, and still have no more targets.
        raise StripingError(f"stripe count asked: {expected}; there are {targets} {noun}")
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
                raise StripingError(f"{name} asked: {said}; in effect: {found}", layout)
    for name in ("stripe_count", "stripe_size", "replicas"):
        values = {getattr(layout, name) for layout in layouts}
        if len(values) > 1:
            named = name.replace("_", " ")
            raise StripingError(f"the files differ in {named}: {sorted(values)}")
    return replace(
        layouts[0], index=None, object_size=None, pool=_all_of(each.pool for each in layouts)
    )


def _all_of(names: Iterable[str | None]) -> str | None:
    """The names that files have; Lustre's pools may spill over into others."""
    return " and ".join(sorted(set(filter(None, names)))) or None


def _bytes(kib: int | None) -> tuple[int | None, int | None]:
    size = None if kib is None else kib * BYTES_PER_KIB
    return size, size
