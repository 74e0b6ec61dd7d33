"""Status: the verdict and the state of each series, its outliers, and what preflight found."""
