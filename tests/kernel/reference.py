"""The expected content of benchio's files, derived from the contract independently of its sources.

The data function is implemented a second time here, with NumPy's unsigned integers; the rest is
plain indexing of one global array.
"""

import numpy as np

_PATTERN = np.uint64(0x1E3779B97F4A7C15)


def _mixed(bits):
    bits = bits ^ (bits << np.uint64(13))
    bits = bits ^ (bits >> np.uint64(7))
    return bits ^ (bits << np.uint64(17))


def values(indices, seed: int):
    """The elements with these global indices (0-based, in Fortran order)."""
    mixed_seed = _mixed(_mixed(_mixed(np.uint64(seed) ^ _PATTERN)))
    return _mixed(_mixed(np.asarray(indices, dtype=np.uint64) ^ mixed_seed))


def stream(length: int, seed: int) -> bytes:
    """The first bytes of the data."""
    return values(np.arange(length // 8 + 1), seed).tobytes()[:length]


def divided(elements: int, files: int, seed: int) -> tuple[bytes, ...]:
    """The data, divided evenly among files; the first have one element more."""
    least, more = divmod(elements, files)
    ends = np.cumsum([8 * (least + (file < more)) for file in range(files)])
    return tuple(
        stream(end, seed)[start:] for start, end in zip([0, *ends[:-1]], ends, strict=True)
    )


def whole_array(shape: tuple[int, int, int], seed: int):
    """The global array, as in the file of one shared array."""
    count = shape[0] * shape[1] * shape[2]
    return values(np.arange(count), seed).reshape(shape, order="F")


def process_grid(grid: tuple[int, int, int]) -> list[tuple[int, int, int]]:
    """The coordinates of each rank: the last axis varies fastest."""
    return [
        (first, second, third)
        for first in range(grid[0])
        for second in range(grid[1])
        for third in range(grid[2])
    ]


def blocks(shape: tuple[int, int, int], grid: tuple[int, int, int], seed: int) -> list[bytes]:
    """Each rank's block, as the bytes of its file."""
    whole = whole_array(shape, seed)
    block = [length // parts for length, parts in zip(shape, grid, strict=True)]
    result = []
    for place in process_grid(grid):
        cut = tuple(
            slice(at * length, (at + 1) * length) for at, length in zip(place, block, strict=True)
        )
        result.append(whole[cut].tobytes(order="F"))
    return result
