"""The program `iobands`: outside of the package, so that it can say if that is incomplete."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from typing import NoReturn


def entry() -> NoReturn:
    """Run the command; end with 3, unknown, if it cannot be imported: a monitor takes 1 for more.

    A directory in PYTHONPATH, a half upgrade or a missing package may be the reason.
    """
    try:
        from iobands.commands.main import entry as run  # noqa: PLC0415
    except KeyboardInterrupt:  # Ctrl-C, with the status of a command that is interrupted later
        sys.exit(130)
    except (ImportError, SyntaxError) as error:  # the latter of packages of an old Python
        spec = find_spec("iobands")
        place = ((spec and spec.submodule_search_locations) or ["iobands"])[0]
        remedy = "unset PYTHONPATH, or install iobands again"
        sys.stderr.write(f"IOBANDS UNKNOWN: {place} is incomplete: {error}; {remedy}\n")
        sys.exit(3)
    run()
