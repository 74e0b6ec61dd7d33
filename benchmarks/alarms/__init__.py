"""Error rates of the alerts: simulations, a real year, and other detectors on both."""
