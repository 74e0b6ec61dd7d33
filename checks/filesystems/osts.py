"""Which OSTs of a Lustre file system take no files, and why. Pure functions.

`lfs osts` calls a target active even if it is drained, full or gone. A drained one has no letter in
`lfs df`. So the probe makes a file over all targets and writes to each of its stripes
(lustre.sh). A target that is not in the layout takes no new files. A target on which the write
failed or hung stops any file on it.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from .layout import StripingError, TargetFaults
from .lfs import Ost, OstSpace, components_of_files, failed_checks, listed_osts, space_of_osts

#: The states of `lfs df` in which a target takes no new files; lfs-df(1).
_LETTERS = {"R": "read-only", "S": "out of space", "I": "out of inodes", "N": "no new objects"}

#: If the MDS sees less than a thousandth of an OST free, in whole MiB, the OST gets no new files
#: until two thousandths are free: osp_statfs_update, reserved_mb_low and reserved_mb_high.
_RESERVED = 0.002
_KIB_PER_MIB = 1024

#: The most stripes of a file without large xattrs on the MDT, even for a file over all targets.
_MOST_STRIPES = 160


@dataclass(frozen=True)
class _Written:
    """The probe's file: the targets of its layout, and how the write to each ended."""

    targets: tuple[int, ...]
    pool: str | None
    ended: Mapping[int, str | None]

    @classmethod
    def read(cls, text: str) -> "_Written":
        """Read its `lfs getstripe`, and a line `wrote STRIPE` or `failed STRIPE WORDS` per stripe.

        Raises:
            StripingError: it has no layout.
        """
        ends = re.findall(r"^(?:wrote (\d+)|failed (\d+) (.*))$", text, re.MULTILINE)
        layout = re.sub(r"^(wrote|failed) \d+.*$", "", text, flags=re.MULTILINE)
        *_, (*_, component) = components_of_files(layout).values()
        targets = tuple(component.targets)
        ended = {int(good or bad): words or None for good, bad, words in ends}
        ended = {targets[n]: words for n, words in ended.items() if n < len(targets)}
        return cls(targets, component.fields.get("lmm_pool"), ended)


@dataclass(frozen=True)
class _Seen:
    """A target, and what `lfs df` and `lfs check` report about it."""

    ost: Ost
    space: OstSpace | str | None
    failed_check: str | None

    @property
    def free(self) -> str:
        if isinstance(self.space, OstSpace):
            return f"{self.space.free_kib} KiB are free"
        return "free space is unknown"

    @property
    def letters(self) -> str:
        return self.space.letters if isinstance(self.space, OstSpace) else ""

    @property
    def silence(self) -> str | None:
        """Why it does not answer, if a command shows it: an inactive target fails its check."""
        return "inactive" if not self.ost.active else self.failed_check

    def why_avoided(self, needed_kib: float) -> str | None:
        """Why it takes no new files, if a command shows it.

        Only the MDS shows that it is out of space; clients do not get the letters of the MDS.
        """
        if words := [_LETTERS[letter] for letter in self.letters if letter in _LETTERS]:
            return f"{', '.join(words)}; {self.free}"
        if isinstance(self.space, OstSpace) and self.ost.active:
            reserved = self.space.size_kib * _RESERVED + _KIB_PER_MIB
            if self.space.free_kib < max(needed_kib, reserved):
                return f"full; {self.free}"
        return self.silence or (self.space if isinstance(self.space, str) else None)

    def stops(self, index: int, written: _Written, needed_kib: float) -> str | None:
        """The fault of a target that gets new files."""
        if index not in written.ended:
            said = f" ({self.silence})" if self.silence else ""
            return f"{self.ost} does not answer: a write to it did not end{said}"
        if isinstance(self.space, OstSpace) and self.space.free_kib < needed_kib:
            return f"{self.ost} is full: {self.free}, {needed_kib:.0f} are needed"
        words = written.ended[index]
        return f"{self.ost} cannot be written to: {words}; {self.free}" if words else None


def judge(
    said: Mapping[str, str], tolerated: int, needed_kib: float, declared: int | None
) -> TargetFaults | None:
    """The faults of all targets by the sections of the probe; None if no targets are listed.

    Up to `tolerated` targets may take no new files, and each needs `needed_kib` for the smallest
    check. `declared` is the number of targets in the site file, if any.
    """
    listed = f"{said.get('targets', '')}\n{said.get('target pool', '')}"
    osts = listed_osts(listed)
    if not osts:
        return None
    space = space_of_osts(said.get("target space", ""))
    failed = failed_checks(said.get("target check", ""))
    seen = {
        index: _Seen(ost, space.get(ost.name), failed.get(ost.name)) for index, ost in osts.items()
    }
    degraded = tuple(f"{each.ost} is degraded" for each in seen.values() if "D" in each.letters)
    try:
        written = _Written.read(said.get("target files", ""))
    except StripingError as error:
        known = {each.ost: each.why_avoided(needed_kib) for each in seen.values()}
        avoided = {ost: why for ost, why in known.items() if why}
        over_all = _over_all(f"{len(osts)} targets", len(osts), avoided, tolerated, declared)
        return TargetFaults((), over_all, degraded, (f"a file over all targets: {error}",))
    asked = "Pool: " in said.get("targets", "")
    own = f" of the directory's default pool {written.pool}" if written.pool and not asked else ""
    if written.pool and "Pool: " not in listed:  # its members could not be listed
        seen = {index: each for index, each in seen.items() if index in written.targets}
    avoided = {
        each.ost: each.why_avoided(needed_kib)
        or ("degraded" if "D" in each.letters else "no state is shown: drained on the MDS?")
        for index, each in seen.items()
        if index not in written.targets and len(written.targets) < _MOST_STRIPES
    }
    stopping = [
        stops
        for index, each in seen.items()
        if index in written.targets and (stops := each.stops(index, written, needed_kib))
    ]
    if len(stopping) == len(written.targets) > 1:  # such as over quota: not the targets' fault
        stopping = []
    strangers = sorted(set(written.targets) - set(seen))
    renumbered = [f"a new file lies on OST {n}, which lfs osts does not list" for n in strangers]
    return TargetFaults(
        stopping=(*stopping, *renumbered),
        over_all=_over_all(f"{len(seen)} targets{own}", len(seen), avoided, tolerated, declared),
        others=degraded,
        taking=len(seen) - len(avoided),
    )


def _over_all(
    words: str, number: int, avoided: Mapping[Ost, str], tolerated: int, declared: int | None
) -> str | None:
    if declared not in (None, number):
        return f"{words}, {declared} in the site file: has a pool changed?"
    if len(avoided) <= tolerated:
        return None
    named = "; ".join(f"{ost} takes no new files ({why})" for ost, why in avoided.items())
    return f"{words}, {named}"
