"""The preflight: whether the file systems, environments and nodes of a site are fit to measure.

`jobs` has the fixtures that collect, `checks` the checks that report. The other modules judge, with
pure functions.
"""
