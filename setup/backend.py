"""How a wheel is built: by setuptools, once the commands have written their man pages."""

import os
import subprocess
import sys
from configparser import ConfigParser
from pathlib import Path
from typing import Any

from setuptools import build_meta
from setuptools.build_meta import *  # noqa: F403 (the other hooks are setuptools' own)

_ROOT = Path(__file__).resolve().parents[1]


def get_requires_for_build_wheel(settings: Any = None) -> list[str]:  # noqa: ANN401
    """Return what the commands import: they are asked for their options."""
    setup = ConfigParser()
    setup.read(_ROOT / "setup.cfg")
    core, report = setup["options"]["install_requires"], setup["options.extras_require"]["report"]
    return [*build_meta.get_requires_for_build_wheel(settings), *core.split(), *report.split()]


def build_wheel(directory: str, settings: Any = None, metadata: str | None = None) -> str:  # noqa: ANN401
    """Build the wheel; setup.cfg says where the pages go."""
    subprocess.run(
        [sys.executable, _ROOT / "setup" / "manual.py", _ROOT / "build" / "man"],
        env={**os.environ, "PYTHONPATH": str(_ROOT / "src"), "PYTHONDONTWRITEBYTECODE": "1"},
        check=True,
    )
    return build_meta.build_wheel(directory, settings, metadata)
