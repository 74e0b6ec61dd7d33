"""The address of an alert's page in the dashboard."""

from __future__ import annotations

import hashlib
import re
from typing import Final

from iobands.snapshot import Alert

_PLAIN: Final = re.compile(r"[A-Za-z0-9_-]{1,60}", re.ASCII)


def page_of(alert: Alert) -> str:
    """Return the file of an alert's page below the dashboard; empty without a number.

    It never changes: numbers are permanent in their system.
    """
    if alert.number is None:
        return ""
    system = alert.system
    if not _PLAIN.fullmatch(system):  # ReFrame has no such names, but a directory may
        system = hashlib.sha256(system.encode("utf-8", "replace")).hexdigest()[:10]
    return f"alerts/{system}-{alert.number}.html"


def address_of(alert: Alert, dashboard: str) -> str:
    """Return the address of an alert's page; of the dashboard itself for other alerts.

    `dashboard` is the configured address, empty if there is none.
    """
    page = page_of(alert)
    if not dashboard or not page:
        return dashboard
    base = dashboard.partition("#")[0].partition("?")[0]
    return f"{base.removesuffix('index.html').rstrip('/')}/{page}"
