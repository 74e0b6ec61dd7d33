"""Where a site has the programs that iobands does not build."""

from __future__ import annotations

import re
from pathlib import Path

from .fields import SiteConfigurationError, check_choice, check_fields
from .words import PROGRAMS

_PROGRAM = {"path": (str, None), "modules": (list, None), "spack": (str, None)}


def check_program(name: str, program: dict, where: str) -> None:
    """Check one entry of `programs`.

    Raises:
        SiteConfigurationError: something is missing, unknown or of the wrong type or value.
    """
    here = f"{where}: program {name!r}"
    check_choice(name, PROGRAMS, f"{where}: programs: the name")
    check_fields(program, _PROGRAM, here)
    if not program:
        raise SiteConfigurationError(f"{here}: say its path, its modules or its Spack spec")
    if "path" in program and not Path(program["path"]).is_absolute():
        raise SiteConfigurationError(f"{here}: path {program['path']!r} must be absolute")
    # They become words of a job script.
    words = (program.get("path", ""), *program.get("modules", ()))
    for word in words:
        if not isinstance(word, str) or not re.fullmatch(r"[\w./@+~-]*", word):
            raise SiteConfigurationError(f"{here}: {word!r} is no such name")
