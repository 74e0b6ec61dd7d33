"""Judges a file system by the probe's output: faults, and what is unknown. Pure functions."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..base.package import figure
from ..filesystems import BACKENDS, mount_names
from ..filesystems.layout import ALL_TARGETS
from .clocks import DEFAULT_SKEW_SECONDS, Span, disagreement
from .probe import PATIENCE_SECONDS
from .quota import quotas

KIB_PER_GIB = 2**20

#: The default limit of a quota's use, in percent.
DEFAULT_QUOTA_PERCENT = 95


@dataclass(frozen=True)
class Wanted:
    """The requirements on a file system."""

    type: str
    mounted_as: Sequence[str]
    free_gib: float
    free_files: int
    volume_gib: float = 0.0
    declared_targets: int | None = None
    quota_percent: float = DEFAULT_QUOTA_PERCENT
    inactive_targets: int = 0
    skew_seconds: float = DEFAULT_SKEW_SECONDS

    @classmethod
    def of(cls, settings: Mapping, gib: float, files: int, skew_seconds: float) -> "Wanted":
        """The site configuration's requirements, plus room for a check's `gib` and `files`."""
        return cls(
            type=settings["type"],
            mounted_as=mount_names(settings, BACKENDS[settings["type"]]),
            free_gib=settings.get("min_free_gib", 0) + gib,
            free_files=settings.get("min_free_inodes", 0) + files,
            volume_gib=gib,
            declared_targets=settings.get("striping", {}).get("targets"),
            quota_percent=settings.get("max_quota_percent", DEFAULT_QUOTA_PERCENT),
            inactive_targets=settings.get("max_inactive_targets", 0),
            skew_seconds=skew_seconds,
        )


@dataclass(frozen=True)
class Findings:
    """Problems that stop checks, problems that do not, and what could not be seen; a line each.

    `over_all` stops only checks of files over all targets, or over more than the `taking` ones that
    take files. `size_gib` is the size of the file system. The last two are None if not seen.
    """

    problems: tuple[str, ...] = ()
    over_all: str | None = None
    others: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    size_gib: float | None = None
    taking: int | None = None

    def blocking(self, stripe_count: int | None = None) -> str | None:
        """Why files with this number of stripes cannot be measured, in one line."""
        too_many = self.taking is not None and (stripe_count or 0) > self.taking
        over_all = self.over_all if stripe_count == ALL_TARGETS or too_many else None
        return "; ".join(filter(None, (*self.problems, over_all))) or None

    @property
    def wrong(self) -> str | None:
        """All faults, in one line."""
        return "; ".join(filter(None, (*self.problems, self.over_all, *self.others))) or None


def sections(text: str) -> dict[str, str]:
    """The output of each command by its name."""
    found = re.split(r"^@@@ (.*)\n", text, flags=re.MULTILINE)[1:]
    return dict(zip(found[::2], (said.strip("\n") for said in found[1::2]), strict=True))


def silent(unfinished: str, wanted: Wanted) -> Findings:
    """The findings about a file system that did not answer in time, by its answers until then."""
    said = sections(unfinished)
    last = list(said or ["node"])[-1]
    problem = f"does not answer within {PATIENCE_SECONDS} s (asked for: {last})"
    targets = _targets(said, wanted)
    return Findings((problem, *targets.problems, *filter(None, [targets.over_all])))


def judge(answer: str, wanted: Wanted) -> Findings:
    """The findings about a file system by its `answer`, the complete output of the probe."""
    said = sections(answer)
    node, mounted = said.get("node", "this node"), said.get("mounted", "")
    away = _not_mounted(mounted, wanted, node)
    if away:
        return Findings((away,))
    targets = _targets(said, wanted)
    problems, unknown, others = [], [], list(targets.others)
    space = _numbers(said.get("space", ""))
    size_gib = space[0] / KIB_PER_GIB if space else None
    if said.get("missing commands"):
        missing = ", ".join(said["missing commands"].splitlines())
        problems.append(f"command missing on {node}: {missing}")
    for judged in (
        _space(said.get("space", ""), wanted),
        _files(said.get("files", ""), wanted),
        _quota(said.get("quota", ""), wanted),
        targets,
    ):
        problems += judged.problems
        unknown += judged.unknown
    written = said.get("write", "")
    clock = re.match(r"clock (\S+) (\S+) (\S+)$", written)
    if not clock:
        words = written.rpartition(": ")[2] or "without a message"
        problems.append(f"not writable on {node}: {words}")
    else:
        before, time, after = map(float, clock.groups())
        off = disagreement(
            "clock off: new files are",
            Span(before, after).off(time),
            f"the clock of {node}",
            wanted.skew_seconds,
        )
        others += [off] if off else []
    return Findings(
        problems=tuple(problems),
        over_all=targets.over_all,
        others=tuple(others),
        unknown=tuple(unknown),
        size_gib=size_gib,
        taking=targets.taking,
    )


def _not_mounted(mounted: str, wanted: Wanted, node: str) -> str | None:
    kind, _, where = mounted.partition(" ")
    if kind in ("", "df:"):
        return f"not there on {node}: {where.rpartition(': ')[2] or 'df printed nothing'}"
    if not wanted.mounted_as or kind in wanted.mounted_as:
        return None
    asked = " or ".join(wanted.mounted_as)
    return f"not mounted on {node} as {asked}: there is {kind}, mounted at {where.strip()}"


def _numbers(df: str) -> tuple[int, int] | None:
    """The total and the free amount by df; None if it does not show them."""
    try:
        total, free = map(int, df.split())
    except ValueError:
        return None
    return total, free


def _space(df: str, wanted: Wanted) -> Findings:
    numbers = _numbers(df)
    if not numbers:
        return Findings(unknown=("free space",))
    free = numbers[1] / KIB_PER_GIB
    if free >= wanted.free_gib:
        return Findings()
    return Findings((f"full: {figure(free)} GiB are free, {figure(wanted.free_gib)} are needed",))


def _files(df: str, wanted: Wanted) -> Findings:
    numbers = _numbers(df)
    # If inodes are made as needed, df shows 0 of 0.
    if not numbers or not numbers[0]:
        return Findings(unknown=("free inodes",))
    if numbers[1] >= wanted.free_files:
        return Findings()
    return Findings((f"out of inodes: {numbers[1]} are free, {wanted.free_files} are needed",))


def _quota(text: str, wanted: Wanted) -> Findings:
    found = quotas(text)
    if found is None:
        return Findings(unknown=("quota",))
    used = [f"quota nearly used: {each}" for each in found if each.percent >= wanted.quota_percent]
    return Findings(tuple(used))


def _targets(said: Mapping[str, str], wanted: Wanted) -> Findings:
    faults = BACKENDS[wanted.type].judge_targets(
        said, wanted.inactive_targets, wanted.volume_gib * KIB_PER_GIB, wanted.declared_targets
    )
    if faults is None:
        return Findings(unknown=("storage targets",))
    return Findings(
        problems=faults.stopping,
        over_all=faults.over_all,
        others=faults.others,
        unknown=faults.unknown,
        taking=faults.taking,
    )
