"""How a case is called in results: by the name of its class, as words are written there."""

import re


def kebab(name: str) -> str:
    """The name of a class in small letters, with a hyphen before each word."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "-", name).lower()
