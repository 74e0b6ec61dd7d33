"""make install, where it must not install."""

import shutil
import subprocess
from pathlib import Path

from tests.site_copy import ROOT


def test_a_prefix_with_other_programs_is_refused(tmp_path: Path) -> None:
    shutil.copy(ROOT / "Makefile", tmp_path)  # alone: an installation would fail here
    other = tmp_path / "usr" / "bin" / "python3"
    other.parent.mkdir(parents=True)
    other.touch()
    done = subprocess.run(
        ["make", "--no-print-directory", "install", f"PREFIX={tmp_path}/usr"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stdout == f"{tmp_path}/usr has other programs: name a directory for iobands alone\n"
    assert [path.name for path in other.parent.iterdir()] == ["python3"]
