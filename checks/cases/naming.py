"""The name of a case in results: the name of its class, in lower case with hyphens."""

import re


def kebab(name: str) -> str:
    """The name of a class in lower case, with hyphens between its words."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "-", name).lower()
