"""Site: perflogs, run reports, bands and actions brought together, and questions about them all."""
