"""Readers: files in, typed tables out. They do not interpret, and they drop nothing in silence.

May know: the contracts and pandas; nothing of verdicts, views or the command line.
"""
