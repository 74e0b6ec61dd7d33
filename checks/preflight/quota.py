"""How much of a quota is used, by the output of `lfs quota` or quota(1), or by lines of our own.

This is a plain user's view, and best effort: some commands print the same without a quota and
without access to it. Pure functions.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ..base.package import figure

KIB = 2**10

# lfs quota -q and quota -w -p: used, soft limit, hard limit and grace, of KiB and then of files. A
# star marks an exceeded limit, and brackets a number that Lustre did not get from all servers.
_NUMBER = r"\[?(\d+)\]?\**\s+"
_COLUMNS = re.compile(r"(?<=\s)" + 2 * (3 * _NUMBER + r"\S+(?:\s+|$)"))
_ATTRIBUTES = re.compile(r"^quota-of (bytes|files) (\d+) (\d+)$", re.MULTILINE)


@dataclass(frozen=True)
class Quota:
    """A limit and its use, in bytes or in files."""

    used: int
    limit: int
    unit: str

    @property
    def percent(self) -> float:
        """The used share of the limit."""
        return 100 * self.used / self.limit

    def __str__(self) -> str:
        """The use as text."""
        if self.unit == "bytes":
            return f"{self.percent:.0f} % of {figure(self.limit / 2**30)} GiB"
        return f"{self.percent:.0f} % of {self.limit} files"


def quotas(text: str) -> list[Quota] | None:
    """All limits that are set; None where no command printed any."""
    found = list(_all(text))
    return [quota for quota in found if quota.limit] if found else None


def _all(text: str) -> Iterator[Quota]:
    for columns in _COLUMNS.finditer(text):
        used, soft, hard, files, soft_files, hard_files = map(int, columns.groups())
        yield Quota(used * KIB, (soft or hard) * KIB, "bytes")
        yield Quota(files, soft_files or hard_files, "files")
    for unit, limit, used in _ATTRIBUTES.findall(text):
        yield Quota(int(used), int(limit), unit)
