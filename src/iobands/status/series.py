"""A series with its samples and its status: what alerts are built from and views show."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    pass
