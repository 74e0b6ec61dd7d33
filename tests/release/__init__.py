"""Tests of the release: one wheel with the package and the suite."""
