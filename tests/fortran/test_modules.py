"""benchio's modules without MPI: each Fortran program in src/benchio/tests is one test."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.kernel.conftest import SOURCES, build_kernel

PROGRAMS = sorted(path.stem for path in (SOURCES / "tests").glob("test_*.f90"))
GOLDEN = Path(__file__).with_name("golden")


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    for tool in ("cmake", "gfortran"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed")
    # Integer overflow ends the program, even if the final sum would be right.
    settings = ("-DBENCHIO_TESTS=ON", "-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_Fortran_FLAGS=-ftrapv")
    return build_kernel(tmp_path_factory.mktemp("modules"), *settings)


def test_there_are_programs():
    assert len(PROGRAMS) > 10


@pytest.mark.parametrize("program", PROGRAMS)
def test_module(built, program, request):
    command = [built / "tests" / program]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    golden = GOLDEN / f"{program}.txt"
    if request.config.getoption("--store-golden") and done.stdout:
        golden.write_text(done.stdout, encoding="utf-8")
    assert done.stdout == (golden.read_text(encoding="utf-8") if golden.exists() else "")
