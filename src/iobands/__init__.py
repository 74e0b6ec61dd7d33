"""iobands: the I/O performance of an HPC site, from perflogs to verdicts.

This module stays light on purpose: `iobands.bands` is imported by ReFrame checks under a
site's own ReFrame, where neither pandas nor matplotlib need exist.
"""

__version__ = "0.1.0"
