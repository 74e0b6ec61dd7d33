"""Contract 4 (docs/contracts.md): what iobands reads from a site file, checked.

ReFrame passes a partition's `extras` through unread, and skips a check file that fails to load
with exit status 0. So a mistake in a site file is found here, where it stops ReFrame with a
message. A module for each part of a site file: what it may say, and what is checked of it.
"""

from .fields import SiteConfigurationError
from .sites import check_site

__all__ = ["SiteConfigurationError", "check_site"]
