"""`python -m iobands` is the command `iobands`."""

from iobands.commands.main import entry

entry()
