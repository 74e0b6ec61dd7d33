"""Measuring: one session at a time, its lock and jobs, ReFrame, and what it leaves on disk.

ReFrame's own process imports this room: nothing here needs more than Python.
"""

from collections.abc import Callable, Mapping
from typing import Any, Protocol


class SiteFile(Protocol):
    """The partitions of a system by name, with what its site file says of each."""

    @property
    def partitions(self) -> Mapping[str, Mapping[str, Any]]:
        """The extras by the name of the partition."""


#: Reads the site file of a system; raises FileError.
ReadSiteFile = Callable[[str], SiteFile]
