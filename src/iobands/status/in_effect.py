"""The settings in effect in a run, as the run itself proved them."""

from __future__ import annotations
