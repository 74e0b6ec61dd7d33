"""How a wheel is built: by setuptools, once the commands have written their man pages."""

import subprocess
import sys
from pathlib import Path
from typing import Any

from setuptools import build_meta
from setuptools.build_meta import *  # noqa: F403 (the other hooks are setuptools' own)

_SETUP = Path(__file__).resolve().parent


def build_wheel(directory: str, settings: Any = None, metadata: str | None = None) -> str:  # noqa: ANN401
    """Build the wheel; setup.cfg says where the pages go."""
    pages = _SETUP.parent / "build" / "man"
    subprocess.run([sys.executable, "-B", _SETUP / "man_pages.py", pages], check=True)
    return build_meta.build_wheel(directory, settings, metadata)
