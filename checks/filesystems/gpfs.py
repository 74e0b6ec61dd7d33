"""GPFS, which spreads every file over all disks of its pool by itself."""

from .layout import Striping


class GpfsStriping(Striping):
    """No stripes that a user could set."""

    mounted_as = ("gpfs",)
