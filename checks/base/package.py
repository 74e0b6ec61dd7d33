"""What the checks take from the package iobands, so that its layout is known in one place.

These modules need nothing beyond PyYAML, which ReFrame brings.
"""

from iobands import __version__ as suite_version
from iobands.bands import NO_BAND, Bands
from iobands.bands_file import load_bands
from iobands.ratios import FEWEST_PAIRS, Ratio, paired_ratio
from iobands.vocabulary import MATCH_FIELDS, SERIES_FIELDS, VARIABLE_UNITS, canonical

__all__ = [
    "FEWEST_PAIRS",
    "MATCH_FIELDS",
    "NO_BAND",
    "SERIES_FIELDS",
    "VARIABLE_UNITS",
    "Bands",
    "Ratio",
    "canonical",
    "load_bands",
    "paired_ratio",
    "suite_version",
]
