"""Build EasyBuild's recipes of a release in a bare Debian, and run what they install.

    python setup/recipes.py DIST RECIPES     as root, with debootstrap

DIST has the wheel and the source distribution, RECIPES the easyconfigs of the same version.
EasyBuild comes from PyPI, the modules tool from Debian; toolchain, MPI and Python are the system's.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path
from typing import Final

from bare import RELEASES, inside, made

EASYBUILD: Final = "easybuild==5.4.1"
_PLACES: Final = (
    "export EASYBUILD_PREFIX=$PWD/built EASYBUILD_SOURCEPATH=$PWD/dist "
    "EASYBUILD_MODULES_TOOL=EnvironmentModules EASYBUILD_MODULE_SYNTAX=Tcl "
    # Debian's path, which a login shell would set
    "MODULES_CMD=$(echo /usr/lib/*/modulecmd.tcl) EB_PYTHON=$PWD/eb/bin/python "
    "PATH=$PATH:$PWD/eb/bin; "  # EasyBuild looks for its scripts next to the program
)
_LOAD: Final = ". /usr/share/modules/init/sh; module use built/modules/all; module load "


def main() -> None:
    """Build both recipes, and use the results only through their modules."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("dist", type=Path)
    parser.add_argument("recipes", type=Path)
    given = parser.parse_args()
    system = made(RELEASES[-1])
    install = "DEBIAN_FRONTEND=noninteractive apt-get install -qq -y environment-modules"
    inside(system, f"{install} >/dev/null", user="root")
    home = system / "home" / "me"
    shutil.rmtree(home, ignore_errors=True)
    inside(system, "install -d -o me -g me /home/me", user="root")
    shutil.copytree(given.dist, home / "dist")
    shutil.copytree(given.recipes, home / "recipes")
    inside(system, "chown -R me: /home/me", user="root")  # EasyBuild saves the sources it fetches
    inside(system, f"python3 -m venv eb && eb/bin/pip install -q {EASYBUILD}")
    for recipe in sorted(path.name for path in given.recipes.glob("*.eb")):
        print(inside(system, f"{_PLACES} eb recipes/{recipe}"), end="")
    said = inside(system, f"{_LOAD} iobands benchio; iobands --version; benchio --version")
    print(said, end="", flush=True)
    digest = inside(system, f"{_LOAD} iobands; iobands init site; cd site; iobands run --tag smoke")
    if "IOBANDS OK" not in digest or "GiB/s" not in digest:
        sys.exit(f"the module of iobands measures nothing:\n{digest}")


if __name__ == "__main__":
    main()
