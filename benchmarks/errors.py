"""The errors of a benchmark."""


class BenchmarkError(Exception):
    """Nothing could be measured; the message says why."""


class HangError(BenchmarkError):
    """A program did not end: `mpirun` sometimes misses that its processes have ended."""
