"""Filling in the configuration files that lie in `templates/`."""

from pathlib import Path
from string import Template

from minisite.place import Place

TEMPLATES = Path(__file__).parent / "templates"


def fill(place: Place, name: str, **values: object) -> Path:
    """Write a template with its values into the site's directory."""
    text = Template((TEMPLATES / name).read_text()).substitute(root=place.root, **values)
    path = place.root / name
    # In one step: a file that is there is whole.
    new = path.with_name(f".{name}.new")
    new.write_text(text)
    new.replace(path)
    return path
