"""Conversion: results that something else wrote, turned into perflogs of contract 2 once."""
