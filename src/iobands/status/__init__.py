"""Status: everything about a site brought together, one status a series."""
