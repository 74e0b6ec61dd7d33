"""The error that ends a command, in one line."""


class SiteError(Exception):
    """An error with a message for the user."""
