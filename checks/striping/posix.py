"""File systems without stripes that a user could set: any that is mounted, and GPFS.

GPFS spreads every file over all disks of its pool by itself, so there is nothing to ask for.
"""

from dataclasses import dataclass
from pathlib import Path

from .layout import Asked, Layout, Targets


@dataclass(frozen=True)
class NoStriping:
    """Does nothing, and reports no layout."""

    mounted_as: tuple[str, ...] = ()
    tools: tuple[tuple[str, ...], ...] = ()
    client_statistics: str = ""
    targets_command: str = ""

    def set_commands(self, asked: Asked) -> list[str]:
        return []

    def read_back_commands(self) -> list[str]:
        return []

    def in_effect(self, stage_directory: Path, asked: Asked) -> Layout:
        return Layout()

    def targets(self, stage_directory: Path) -> Targets | None:
        return None

    def count_targets(self, text: str) -> Targets | None:
        return None
