"""The error that ends a command, in one line."""


class SiteError(Exception):
    """Something that the user has to know, worded for the user."""
