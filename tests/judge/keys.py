"""A series key from which tests make others with `replace`."""

from iobands.model import SeriesKey

KEY = SeriesKey(
    "here", "cpu", "gnu", "benchio", "fpp", "mpiio", "a", None, "ofi", "default", 1, 4, 0.5,
    "write_bw",
)  # fmt: skip
