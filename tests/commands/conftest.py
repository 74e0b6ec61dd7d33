"""The command as users call it, and caches that no test outlives."""

from tests.package.conftest import caches, iobands

__all__ = ["caches", "iobands"]
