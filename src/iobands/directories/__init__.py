"""Run directories: the notes of them, which of them are orphans, and how these are removed.

Needs nothing beyond Python, because the checks import it under a site's own ReFrame.
"""
