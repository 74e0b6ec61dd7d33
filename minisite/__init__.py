"""A real HPC site on one machine: munge, Slurm with four nodes, CephFS, a fast and a slow disk.

Knows the operating system and the daemons that it starts; nothing of ReFrame, of the checks or
of the package `iobands`, and needs nothing but Python's standard library. All that a site has
lies in one directory, so that whatever carries that directory's name belongs to it.
"""
