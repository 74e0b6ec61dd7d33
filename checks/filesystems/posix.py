"""File systems without stripes that a user could set: any that is mounted, and GPFS.

GPFS spreads every file over all disks of its pool by itself.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from .layout import Asked, Layout, Targets


@dataclass(frozen=True)
class NoStriping:
    """Does nothing, and reports no layout."""

    mounted_as: tuple[str, ...] = ()
    script: Path | None = None
    counts_clients: bool = False

    def stripe(self, asked: Asked) -> list[str]:
        return []

    def in_effect(self, stage: Path, asked: Asked) -> Layout:
        return Layout()

    def targets_of_files(self, text: str) -> Mapping[str, tuple[int, ...]]:
        return {}

    def count_targets(self, text: str) -> Targets | None:
        return None
