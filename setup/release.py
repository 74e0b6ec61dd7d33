"""Make a release in dist/ from a clean clone: `make release VERSION=1.2.3`. Nothing is uploaded.

The version and the tag are set in the clone; the last line of the output says how to fetch them.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
MOST_BYTES: Final = 1_500_000  # of the wheel
#: The files that contain the version, and the text around it. benchio has its own version, because
#: each new one begins a new epoch for its series.
PLACES: Final = {
    "src/iobands/version.py": r'(__version__ = ")[^"]+(")',
    "CITATION.cff": r"(^version: )\S+($)",
    "packaging/easybuild/iobands.eb": r"(^version = ')[^']+(')",
    "packaging/easybuild/benchio.eb": r"(^version = ')[^']+(')",
    "packaging/spack/spack_repo/iobands/packages/iobands/package.py": r'(version\(")[^"]+("\))',
    "packaging/spack/spack_repo/iobands/packages/benchio/package.py": r'(version\(")[^"]+("\))',
}
#: Each step that takes long, and its command.
CHECKS: Final = {"lint": "lint", "tests": "test", "faults": "test-faults"}
#: The trials of the built files, and their programs.
PROOFS: Final = {"bare": "bare.py", "reframe": "reframe_versions.py", "recipes": "recipes.py"}


def main() -> None:
    """Take the arguments, and make the release."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("version")
    steps = [*CHECKS, *PROOFS]
    parser.add_argument("--skip", nargs="*", default=[], choices=steps, help="for a rehearsal")
    given = parser.parse_args()
    if not re.fullmatch(r"\d+\.\d+\.\d+((a|b|rc)\d+)?", given.version):
        sys.exit(f"{given.version}: write MAJOR.MINOR.PATCH")
    if said("git", "status", "--porcelain", cwd=ROOT):
        sys.exit("the clone has changes: commit them first")
    tag = f"v{given.version}"
    if said("git", "tag", "--list", tag, cwd=ROOT):
        sys.exit(f"{tag} exists: a version is released once")
    notes = section(given.version)
    clone, dist = ROOT / "build" / "release", ROOT / "dist"
    for place in (clone, dist):
        shutil.rmtree(place, ignore_errors=True)
    dist.mkdir()
    call("git", "clone", "--quiet", "--no-hardlinks", ROOT, clone, cwd=ROOT)
    set_version(clone, given.version)
    for name, target in CHECKS.items():
        if name in given.skip:
            print(f"Skipped: {name}", flush=True)
        else:
            call("make", target, cwd=clone)
    if said("git", "status", "--porcelain", "--untracked-files=no", cwd=clone):
        call(
            "git", "commit", "--quiet", "--all", "--message", f"Release {given.version}", cwd=clone
        )
    call("git", "tag", "--annotate", tag, "--message", notes, cwd=clone)
    build(clone, dist)
    prove(clone, dist, given.skip)
    recipes(clone, dist)
    documents(clone, dist)
    bill_of_materials(clone, dist)
    (dist / "NOTES.md").write_text(notes + "\n", encoding="utf-8")
    sums = [f"{digest(path)}  {path.name}" for path in sorted(dist.iterdir())]
    (dist / "SHA256SUMS").write_text("\n".join(sums) + "\n")
    print(f"In dist/, not uploaded:\n{chr(10).join(sums)}")
    if given.skip:
        print(f"A rehearsal, and no release: without {', '.join(given.skip)}")
        return
    print(f"The tag: git fetch {clone} tag {tag} && git merge --ff-only {tag}")


def section(version: str) -> str:
    """Return the section of the changelog about a version."""
    text = (ROOT / "CHANGELOG.md").read_text("utf-8")
    found = re.search(rf"^## {re.escape(version)}\b[^\n]*\n(.*?)(?=^## |\Z)", text, re.M | re.S)
    if found is None or not found[1].strip():
        sys.exit(f"CHANGELOG.md has no section '## {version}': write it first")
    return found[0].strip()


def set_version(clone: Path, version: str) -> None:
    """Write the version in each of its places."""
    for name, pattern in PLACES.items():
        path = clone / name
        text, count = re.subn(
            pattern, rf"\g<1>{version}\g<2>", path.read_text("utf-8"), flags=re.MULTILINE
        )
        if count != 1:
            sys.exit(f"{name}: its version is in {count} places")
        path.write_text(text, encoding="utf-8")
    citation = clone / "CITATION.cff"
    lines = citation.read_text("utf-8").splitlines()
    lines = [line for line in lines if not line.startswith("date-released:")]  # of the last one
    lines.append(f"date-released: {date.today().isoformat()}")
    citation.write_text("\n".join(lines) + "\n", encoding="utf-8")


def build(clone: Path, dist: Path) -> None:
    """Build source distribution and wheel twice, and compare them."""
    epoch = said("git", "log", "-1", "--format=%ct", cwd=clone)
    for place in (dist, clone / "build" / "again"):
        words = ("-m", "build", "--outdir", place, clone)
        call(sys.executable, *words, cwd=clone, SOURCE_DATE_EPOCH=epoch)
        shutil.rmtree(clone / "build" / "lib", ignore_errors=True)
    for path in dist.iterdir():
        if digest(path) != digest(clone / "build" / "again" / path.name):
            sys.exit(f"{path.name} differs in two builds")
    (wheel,) = dist.glob("*.whl")
    if wheel.stat().st_size > MOST_BYTES:
        sys.exit(f"{wheel.name} has {wheel.stat().st_size} bytes, more than {MOST_BYTES}")


def prove(clone: Path, dist: Path, skipped: Sequence[str]) -> None:
    """Try the built files in bare systems, with each tested ReFrame, and with EasyBuild."""
    (wheel,) = dist.glob("*.whl")
    for name, program in PROOFS.items():
        if name in skipped:
            print(f"Skipped: {name}", flush=True)
            continue
        what = (dist, clone / "packaging" / "easybuild") if name == "recipes" else (wheel,)
        call(sys.executable, ROOT / "setup" / program, *what, cwd=ROOT)


def recipes(clone: Path, dist: Path) -> None:
    """Pack Spack's recipes with the checksum that those in the source distribution cannot have."""
    (source,) = dist.glob("iobands-*.tar.gz")
    for path in [clone / name for name in PLACES if name.startswith("packaging/spack/")]:
        text = re.sub(r'(version\("[^"]+")', rf'\1, sha256="{digest(source)}"', path.read_text())
        path.write_text(text, encoding="utf-8")
    with tarfile.open(dist / "spack.tar.gz", "w:gz") as archive:
        archive.add(clone / "packaging" / "spack", "spack")


def documents(clone: Path, dist: Path) -> None:
    """Check the citation, and pack the documentation."""
    # cffconvert needs an older jsonschema than iobands does
    call(
        alone(clone, "cffconvert==2.0.0") / "cffconvert",
        "--validate",
        "--infile",
        "CITATION.cff",
        cwd=clone,
    )
    shutil.copy(clone / "CITATION.cff", dist)
    place = clone / "build" / "docs"
    call(
        ROOT / ".venv" / "bin" / "mkdocs",
        "build",
        "--strict",  # not with --quiet, which would hide warnings from it
        "--site-dir",
        place,
        cwd=clone,
        NO_MKDOCS_2_WARNING="1",
    )
    with tarfile.open(dist / "docs.tar.gz", "w:gz") as archive:
        archive.add(place, "docs")


def bill_of_materials(clone: Path, dist: Path) -> None:
    """Install the wheel with all its requirements, and list them in CycloneDX's format."""
    (wheel,) = dist.glob("*.whl")
    place = clone / "build" / "installed"
    call(sys.executable, "-m", "venv", place, cwd=clone)
    call(place / "bin" / "pip", "install", "--quiet", f"{wheel}[all]", cwd=clone)
    call(place / "bin" / "iobands", "--version", cwd=clone)
    for path in place.rglob("iobands-*.dist-info/direct_url.json"):
        path.unlink()  # or the list would contain the path of the wheel on this machine
    output = ("--output-reproducible", "--output-file", dist / "sbom.cdx.json")
    # a package that it brings would make each start of ReFrame compile a grammar for two seconds
    program = alone(clone, "cyclonedx-bom==7.5.0") / "cyclonedx-py"
    call(program, "environment", *output, place, cwd=clone)


def alone(clone: Path, package: str) -> Path:
    """Install a package in a separate virtual environment, and return its directory of programs."""
    place = clone / "build" / package.partition("=")[0]
    call(sys.executable, "-m", "venv", place, cwd=clone)
    call(place / "bin" / "pip", "install", "--quiet", package, cwd=clone)
    return place / "bin"


def digest(path: Path) -> str:
    """Return the SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def call(*command: object, cwd: Path, **environment: str) -> None:
    """Call a program, and end if it fails."""
    words = [*map(str, command)]
    print("+", *words, flush=True)
    done = subprocess.run(words, cwd=cwd, env={**os.environ, **environment}, check=False)
    if done.returncode:
        sys.exit(f"{words[0]} ended with {done.returncode}: no release")


def said(*command: str, cwd: Path) -> str:
    """Return what a program prints."""
    return subprocess.run(
        command, cwd=cwd, check=True, capture_output=True, text=True
    ).stdout.strip()


if __name__ == "__main__":
    main()
