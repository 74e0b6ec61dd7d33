"""The arguments of benchio for a volume: the sizes of each kind of data, scaled to it.

Pure functions of benchio's command line (contract 1). A case moves the volume of its source, or the
scale's if that is less (docs/decisions/0009): then there is less of the same kind of data.
"""

import math
from dataclasses import dataclass

BYTES_PER_MIB = 2**20
BYTES_PER_ELEMENT = 8


@dataclass(frozen=True)
class Volume:
    """A volume, and the number of processes that move it."""

    tasks: int
    mib: float

    @property
    def bytes_per_task(self) -> int:
        """The volume of each process, rounded down."""
        return int(self.mib * BYTES_PER_MIB / self.tasks)


@dataclass(frozen=True)
class Shape:
    """The words and options of the sizes; `bytes` is the total that a phase then moves."""

    sizes: tuple[int, int, int]
    extent: str
    bytes: int
    options: tuple[str, ...] = ()
    files: int = 1

    def words(self) -> list[str]:
        """The first words of benchio's command line."""
        return [*map(str, self.sizes), self.extent]


def array(volume: Volume, edge: int = 128) -> Shape:
    """A block for each process; its planes have `edge` x `edge` elements, 128 KiB by default."""
    plane = edge * edge * BYTES_PER_ELEMENT
    planes = max(1, volume.bytes_per_task // plane)
    return Shape((edge, edge, planes), "local", planes * plane * volume.tasks)


def snapshots(volume: Volume, steps: int = 16) -> Shape:
    """`steps` arrays one after the other, a block of planes of 32 KiB for each process."""
    one = array(Volume(volume.tasks, volume.mib / steps), edge=64)
    return Shape(one.sizes, one.extent, steps * one.bytes, (f"--steps={steps}",))


# The grid of NAS BT-IO on CSC's page: 2048 x 1024 x 256 points on 16 x 16 processes; each has
# 128 x 64 along the first two axes. A point has five values, and there are five steps.
_BTIO_BLOCK = (128, 64, 256)
_BTIO_STEPS = 5
_BTIO_POINT_BYTES = 5 * BYTES_PER_ELEMENT * _BTIO_STEPS


def btio(volume: Volume) -> Shape:
    """A grid as on CSC's page, all axes shortened alike; `tasks` is a square number."""
    published = math.prod(_BTIO_BLOCK) * _BTIO_POINT_BYTES
    factor = min(1.0, (volume.bytes_per_task / published) ** (1 / 3))
    # all processes share the third axis, and each must have a part of it
    least = (1, 1, math.isqrt(volume.tasks))
    sizes = tuple(
        max(small, int(size * factor + 1e-9))
        for small, size in zip(least, _BTIO_BLOCK, strict=True)
    )
    moved = math.prod(sizes) * _BTIO_POINT_BYTES * volume.tasks
    return Shape(sizes, "local", moved, (f"--steps={_BTIO_STEPS}",))


#: The records of each process in IOR's cases on Cray's slides.
SEGMENTS = 3220


def records(volume: Volume, record_bytes: int) -> Shape:
    """Records of `record_bytes`, as many for each process as there is volume for."""
    segments = min(SEGMENTS, max(1, volume.bytes_per_task // record_bytes))
    moved = segments * record_bytes * volume.tasks
    return Shape((1, segments, 1), "local", moved, (f"--record={record_bytes}",))


def cells(volume: Volume, values: int = 64) -> Shape:
    """Cells of a mesh with this many values each; each process has as many as fit the volume."""
    number = max(1, volume.bytes_per_task // (values * BYTES_PER_ELEMENT))
    moved = number * values * BYTES_PER_ELEMENT * volume.tasks
    return Shape((values, number, 1), "local", moved)


def stripes(volume: Volume, files: int | None = 1) -> Shape:
    """An array that is divided among `files` files, or among files of 1 MiB if that is None."""
    mib = max(1, int(volume.mib))
    files = mib if files is None else files
    return Shape((128, 128, 8 * mib), "global", mib * BYTES_PER_MIB, files=files)
