"""What `make bench-alarms` runs: the error rates of `iobands.detection`, by Monte Carlo."""
