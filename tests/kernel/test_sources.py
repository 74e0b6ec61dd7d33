"""Rules that every source file follows."""

import re

import pytest

from tests.kernel.conftest import SOURCES

# From the lowest to the highest.
FOLDERS = ("core", "io", "patterns", "layers", "run", "app")
FILES = sorted(path for folder in FOLDERS for path in (SOURCES / folder).glob("*.[fF]90"))


def statements(path):
    """The statements of a file, each on one line, without comments."""
    text = "\n".join(re.sub(r"^\s*!.*$", "", line) for line in path.read_text().splitlines())
    text = re.sub(r"&\s*\n\s*(?:\n\s*)*&?", "", text)
    return [line.strip() for line in text.splitlines() if line.strip()]


def test_there_are_sources():
    assert len(FILES) > 20


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_the_status_of_every_library_call_is_looked_at(path):
    lines = statements(path)
    for at, line in enumerate(lines):
        call = re.search(r"\bcall (MPI_\w+|adios2_\w+)\((.*)\)$", line)
        if call is None:
            continue
        assert call[2].endswith("ierr"), f"{call[1]} without a status"
        # The check of a call in a branch may follow the branch.
        after = " ".join(lines[at + 1 : at + 5])
        assert re.search(r"call check(_adios)?\(ierr|if \(ierr [/=]=", after), (
            f"{call[1]} is not checked"
        )


# The calls of each library, and the check that must follow.
LIBRARY_CALLS = {
    "HDF5": (r"\bcall (h5\w+_f)\b|\bierr = (c_H5\w+)\(", r"call check_hdf5\(ierr, "),
    "netCDF": (r"\b(nc_\w+)\(", r"call check_netcdf\(status, "),
    "PnetCDF": (r"\b(nfmpi_\w+)\(", r"call check_pnetcdf\(status, "),
}


@pytest.mark.parametrize("library", LIBRARY_CALLS)
def test_the_status_of_every_call_of_a_library_is_looked_at(library):
    call, check = LIBRARY_CALLS[library]
    calls = 0
    for path in FILES:
        # These declare the calls, and format the errors.
        if path.name.endswith(("_api.f90", f"{library.lower()}_checks.f90")):
            continue
        lines = statements(path)
        for at, line in enumerate(lines):
            found = re.search(call, line)
            if found is None or line.startswith(("use", "call check_")):
                continue
            calls += 1
            name = found[0]
            assert "ierr" in line or line.startswith("status = "), f"{name} without a status"
            assert re.match(check, lines[at + 1]), f"{name} in {path.name} is not checked"
    assert calls > 10


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_one_module_a_file_that_hides_what_it_can(path):
    text = path.read_text()
    module = re.search(r"^module (\w+)", text, re.MULTILINE)
    if path.name == "benchio.f90":
        assert module is None
        return
    assert module[1] == f"benchio_{path.stem}"
    lines = statements(path)
    assert "private" in lines
    assert all("only:" in line for line in lines if re.match(r"use\b", line))
    assert text.startswith("!> "), "says what it is for"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_only_the_main_program_stops(path):
    stops = [line for line in statements(path) if re.search(r"\b(error )?stop\b(?! =)", line)]
    if path.name != "benchio.f90":
        assert stops == []
    # Only an abort ends processes that wait inside an I/O library.
    if path.name not in ("adios_checks.f90", "wait_limit.f90"):
        assert "MPI_Abort" not in path.read_text()


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_module_uses_no_higher_folder(path):
    folder_of = {file.stem: FOLDERS.index(file.parent.name) for file in FILES} | {"version": 0}
    used = re.findall(r"^ +use benchio_(\w+)", path.read_text(), re.MULTILINE)
    here = FOLDERS.index(path.parent.name)
    assert [name for name in used if folder_of[name] > here] == []


def test_every_file_is_compiled():
    listed = (SOURCES / "CMakeLists.txt").read_text()
    assert [path.name for path in FILES if f" {path.parent.name}/{path.name}" not in listed] == []


def test_only_the_registry_is_preprocessed():
    assert [path.name for path in SOURCES.rglob("*.F90")] == ["registry.F90"]
    assert not [path for path in SOURCES.rglob("*.f90") if re.search(r"^#", path.read_text(), re.M)]
