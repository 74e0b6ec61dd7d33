"""What every striping backend speaks of."""

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol


class StripingError(ValueError):
    """A layout could not be read, or is not the one that was asked for."""


@dataclass(frozen=True)
class Layout:
    """The layout in effect: the number of stripes and their size in bytes.

    Both are None on a file system without stripes.
    """

    stripe_count: int | None = None
    stripe_size: int | None = None


class Striping(Protocol):
    """One type of file system. Commands run in the stage directory of a job script."""

    def set_commands(self, stripe_count: int | None) -> list[str]:
        """Shell commands that stripe `$run_directory`, before anything is written there."""

    def read_back_commands(self) -> list[str]:
        """Shell commands that leave the layout of the files in `$run_directory` in files."""

    def in_effect(self, stage_directory: Path, stripe_count: int | None) -> Layout:
        """The layout of the files that were written.

        Raises:
            StripingError: it could not be read, or it differs from what was asked.
        """
