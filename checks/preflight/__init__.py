"""Whether a site is fit to be measured: its file systems, environments and nodes.

`jobs` has the fixtures that look, `checks` the checks that report what they saw; the other modules
are pure functions that judge it.
"""
