"""What `make bench-alarms` runs: the error rates of `iobands.charts`, by Monte Carlo."""
