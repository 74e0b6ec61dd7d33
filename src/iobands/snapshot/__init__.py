"""The snapshot: the one value that every view reads."""
