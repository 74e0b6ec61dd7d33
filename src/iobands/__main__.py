"""`python -m iobands` is the command `iobands`."""

from iobands.cli import app

app(prog_name="iobands")
