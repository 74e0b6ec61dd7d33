"""Whether a site is fit to be measured: its file systems, its environments and its nodes.

Shell scripts that look (`probe`), pure functions that judge what they printed (`file_system`,
`quota`, `clocks`), and the jobs that every check needs (`jobs`). The checks that tell of it by
name are in checks/environment_checks.py.
"""
