"""What goes wrong in a benchmark."""


class BenchmarkError(Exception):
    """Nothing could be measured; the message says why."""


class HangError(BenchmarkError):
    """A program did not end. `mpirun` at times does not notice that its processes have."""
