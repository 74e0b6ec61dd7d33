"""Whether a site is fit to be measured: its file systems, environments and nodes.

`jobs` has the fixtures that collect, `checks` the checks that report; the other modules are pure
functions that judge.
"""
