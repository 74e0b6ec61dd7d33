"""benchio."""
