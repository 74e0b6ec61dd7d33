"""A file system without stripes that a user could set."""

from pathlib import Path

from .layout import Layout


class PosixStriping:
    """Does nothing, and reports no layout."""

    def set_commands(self, stripe_count: int | None) -> list[str]:
        return []

    def read_back_commands(self) -> list[str]:
        return []

    def in_effect(self, stage_directory: Path, stripe_count: int | None) -> Layout:
        return Layout()
