"""`python -m iobands` is the command `iobands`."""

from iobands.cli import entry

entry()
