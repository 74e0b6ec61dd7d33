"""Commands: one module a command of `iobands`."""
