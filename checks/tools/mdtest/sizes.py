"""Sizes of mdtest's cases in IO500, which both tools use."""

#: The bytes of a file in IO500's hard case.
HARD_BYTES = 3901

#: The default number of files of each process.
FILES_PER_TASK = 1000
