"""Values of a healthy series, and parts of it at other levels."""

from __future__ import annotations

import numpy as np


def healthy(runs: int, seed: int = 1, median: float = 150.0, spread: float = 0.15) -> np.ndarray:
    """Return lognormal values of shape (runs,)."""
    return median * np.exp(spread * np.random.default_rng(seed).standard_normal(runs))


def levels(*parts: tuple[int, float], seed: int = 1, spread: float = 0.1) -> np.ndarray:
    """Return runs around the healthy level; each part is a number of runs and their factor."""
    runs, factors = zip(*parts, strict=True)
    return healthy(sum(runs), seed, spread=spread) * np.repeat(factors, runs)
