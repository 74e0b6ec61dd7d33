"""A real HPC site on one machine: munge, Slurm with four nodes, CephFS, a fast and a slow disk.

It depends only on the operating system, the daemons that it starts and Python's standard library,
not on ReFrame, the checks or the package `iobands`. A site is in one directory, whose path marks
all processes, mounts and devices that belong to it.
"""
