"""Sizes of mdtest's cases in IO500, which that tool has too."""

#: The bytes of a file in IO500's hard case.
HARD_BYTES = 3901

#: How many files each process has where the scale does not say.
FILES_PER_TASK = 1000
