"""Enough of Flux's Python module for ReFrame to write a script; it submits nothing."""
