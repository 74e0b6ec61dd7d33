"""Where the suite is, and the site that it measures; in a clone both are the clone.

The suite is what a release brings: checks, the general configuration, benchio's source. A site is
what its staff keep: site files, bands, actions, perflogs. It knows neither of them from within.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

#: Names the site's directory to ReFrame and its checks.
SITE_ENV: Final = "IOBANDS_SITE"

_PACKAGE: Final = Path(__file__).resolve().parents[1]
_INSTALLED: Final = _PACKAGE / "suite"
_CLONE: Final = _PACKAGE.parents[1]


def suite_of(site: Path) -> Path:
    """Return the suite for a site: its own in a clone, else the one of this installation."""
    return site if (site / "checks").is_dir() else installed_suite()


def installed_suite() -> Path:
    """Return the suite of this installation."""
    return _INSTALLED if _INSTALLED.is_dir() else _CLONE


def site_of_suite(suite: Path) -> Path:
    """Return the site that `suite` measures: the one in the environment, else a clone itself."""
    return Path(os.environ.get(SITE_ENV) or suite).resolve()
