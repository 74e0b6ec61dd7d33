"""Reads results: perflogs, run reports or a store become a frame of samples and missing runs."""
