"""mdtest."""
