"""Fills in the configuration files in `templates/`."""

from pathlib import Path
from string import Template

from minisite.place import Place

TEMPLATES = Path(__file__).parent / "templates"


def fill(place: Place, name: str, **values: object) -> Path:
    """Write a template with its values into the site's directory."""
    text = Template((TEMPLATES / name).read_text()).substitute(root=place.root, **values)
    path = place.root / name
    # Replace it atomically, so that an existing file is always complete.
    new = path.with_name(f".{name}.new")
    new.write_text(text)
    new.replace(path)
    return path
