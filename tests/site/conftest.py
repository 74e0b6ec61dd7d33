"""Caches that no test outlives."""

from tests.package.conftest import caches

__all__ = ["caches"]
