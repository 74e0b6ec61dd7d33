"""The build backend: setuptools, after the man pages have been written from the commands."""

import gzip
import io
import os
import subprocess
import sys
import tarfile
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


def build_sdist(directory: str, settings: Any = None) -> str:  # noqa: ANN401
    """Build the source distribution; with the same SOURCE_DATE_EPOCH, builds are identical."""
    name = build_meta.build_sdist(directory, settings)
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    if epoch:
        path = Path(directory) / name
        packed = io.BytesIO()
        with tarfile.open(path) as before, tarfile.open(fileobj=packed, mode="w") as after:
            for each in sorted(before, key=lambda member: member.name):
                each.mtime, each.uid, each.gid, each.uname, each.gname = int(epoch), 0, 0, "", ""
                each.pax_headers = {}
                after.addfile(each, before.extractfile(each) if each.isfile() else None)
        path.write_bytes(gzip.compress(packed.getvalue(), mtime=int(epoch)))
    return name
