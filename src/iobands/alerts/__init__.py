"""Alerts: what people act on, what they did about it, and which series belong together."""
