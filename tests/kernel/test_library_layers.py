"""The layers of HDF5, netCDF and PnetCDF; other programs read their files."""

import os
import re
import shutil
import subprocess

import numpy as np
import pytest

from tests.kernel.conftest import SOURCES, Difference, tracing
from tests.kernel.reference import values, whole_array

LAYERS = ["hdf5", "netcdf", "pnetcdf", "pnetcdf-nonblocking"]
INDEPENDENT = ["hdf5-independent", "netcdf-independent"]
SEED = 3
SHAPE = (8, 6, 9)
RANKS = 3
# 1.6 MiB in all, for a file system of 1 MiB
TOO_LARGE = (66, 66, 48)


@pytest.fixture(autouse=True)
def needs_the_layers(kernel_build):
    cache = (kernel_build / "CMakeFiles/benchio_core.dir/flags.make").read_text()
    for name in ("HDF5", "NETCDF", "PNETCDF"):
        if f"-DBENCHIO_{name}" not in cache:
            pytest.skip(f"{name} was not found by CMake")
    for tool in ("h5dump", "ncdump", "ncvalidator", "ncoffsets"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed")


def said_by(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def start_of_data(path):
    """Return the byte where the array begins in a file, according to the library's tools."""
    if path.name.startswith("pnetcdf"):
        return int(re.search(r"start file offset =\s*(\d+)", said_by("ncoffsets", path))[1])
    return int(re.search(r"OFFSET (\d+)", said_by("h5dump", "-p", "-H", "-d", "/data", path))[1])


def read_by_tools(path, where):
    """Return the elements of a file in the order of the file, as read by its library's tools."""
    if path.name.startswith("hdf5"):
        out = where / "dumped"
        said_by("h5dump", "-d", "/data", "-b", "LE", "-o", out, path)
        return np.fromfile(out, dtype="<u8")
    text = said_by("ncdump", "-v", "data", path)
    words = re.search(r"\bdata =\s*(.*?);", text, re.DOTALL)[1].split(",")
    return np.array([int(word) for word in words], dtype=np.int64).view(np.uint64)


def assert_holds(path, shape, where):
    expected = whole_array(shape, SEED).ravel(order="F")
    assert np.array_equal(read_by_tools(path, where), expected)
    # And once more without any library.
    order = ">u8" if path.name.startswith("pnetcdf") else "<u8"
    found = path.read_bytes()[start_of_data(path) :][: expected.nbytes]
    assert np.array_equal(np.frombuffer(found, dtype=order), expected)


@pytest.mark.parametrize(
    ("ranks", "more"),
    [
        (1, ()),
        (2, ("--decomposition=slab",)),
        (4, ("--decomposition=pencil", "--writers=2")),
        (6, ()),
        (6, ("--decomposition=slab", "--writers=4")),
    ],
)
def test_the_files_hold_the_array(benchio, tmp_path, ranks, more):
    shape = (5, 6, 12)
    done = benchio.run(
        *shape, "global", *LAYERS, *INDEPENDENT, "unstriped", "--verify", "--keep",
        f"--seed={SEED}", "--result=result.jsonl", *more, ranks=ranks,
    )  # fmt: skip
    assert done.status == 0, done.err
    for layer in [*LAYERS, *INDEPENDENT]:
        assert_holds(benchio.cwd / f"unstriped/{layer}.dat", shape, tmp_path)
    for record in benchio.records():
        assert record["verified_bytes"] == record["bytes"] == 8 * 5 * 6 * 12
        assert record["writers"] == (int(more[1][-1]) if len(more) > 1 else ranks)
    assert [record["interface"] for record in benchio.records()[::2]] == [
        "hdf5", "hdf5", "netcdf", "netcdf", "pnetcdf", "pnetcdf",
    ]  # fmt: skip


def test_arrays_of_one_element_a_process(benchio):
    done = benchio.run(1, 1, 1, "local", *LAYERS, "unstriped", "--verify", "--repeats=2", ranks=3)
    assert done.status == 0, done.err


def test_what_the_formats_say_of_themselves(benchio):
    done = benchio.run(*SHAPE, "global", *LAYERS, "unstriped", "--keep", ranks=RANKS)
    assert done.status == 0, done.err
    where = benchio.cwd / "unstriped"
    about = said_by("h5dump", "-p", "-H", "-d", "/data", where / "hdf5.dat")
    assert "H5T_STD_I64LE" in about
    assert "SIMPLE { ( 9, 6, 8 ) / ( 9, 6, 8 ) }" in about
    assert "CONTIGUOUS" in about
    assert "FILL_TIME H5D_FILL_TIME_NEVER" in about
    assert said_by("ncdump", "-k", where / "netcdf.dat").strip() == "netCDF-4"
    assert "int64 data(n3, n2, n1)" in said_by("ncdump", "-h", where / "netcdf.dat")
    for layer in ("pnetcdf", "pnetcdf-nonblocking"):
        path = where / f"{layer}.dat"
        assert said_by("ncdump", "-k", path).strip() == "cdf5"
        assert "is a valid NetCDF classic CDF-5 file" in said_by("ncvalidator", path)


def test_the_steps_of_btio_as_pnetcdfs_own_tools_read_them(benchio):
    layers = ("btio-pnetcdf", "btio-pnetcdf-nonblocking")
    done = benchio.run(
        3, 4, 5, "global", *layers, "unstriped", "--steps=3", f"--seed={SEED}", "--keep", ranks=4
    )
    assert done.status == 0, done.err
    for layer in layers:
        path = benchio.cwd / f"unstriped/{layer}.dat"
        assert "valid NetCDF classic CDF-5" in said_by("ncvalidator", path)
        dump = said_by("ncmpidump", path)
        assert "step = UNLIMITED ; // (3 currently)" in dump
        assert "int64 data(step, z, y, x, value)" in dump
        numbers = np.array(re.findall(r"-?\d+", dump.split("data =")[1]), dtype=np.int64)
        assert np.array_equal(numbers.view(np.uint64), values(np.arange(5 * 60 * 3), SEED))


@pytest.mark.parametrize("more", [(), ("--writers=2",)], ids=["all", "writers"])
def test_a_changed_byte_is_found_where_it_is(benchio, more):
    common = (*SHAPE, "global", "unstriped", f"--seed={SEED}", "--decomposition=slab", *more)
    assert benchio.run(*common, *LAYERS, "--keep", ranks=RANKS).status == 0
    # The 5th plane is the second of the middle one of three slabs of three planes.
    element = 2 + 8 * (3 + 6 * 4)
    expected = int(whole_array(SHAPE, SEED).ravel(order="F")[element])
    for layer in LAYERS:
        path = benchio.cwd / f"unstriped/{layer}.dat"
        start = start_of_data(path)
        content = bytearray(path.read_bytes())
        at = start + 8 * element
        # The lowest bit of the number, in the last byte if big-endian.
        content[at + (7 if layer.startswith("pnetcdf") else 0)] ^= 1
        path.write_bytes(content)
        done = benchio.run(*common, layer, "--no-write", "--verify", ranks=RANKS)
        assert done.status == 1
        signed = [number - (number >> 63 << 64) for number in (expected, expected ^ 1)]
        assert Difference.of(done.messages[0]) == Difference(
            1, f"unstriped/{layer}.dat", at, element, signed[0], signed[1], 1
        )
        assert len(done.messages) == 1


def test_a_device_that_is_full_for_one_of_two_writers(benchio, tiny_file_system, roomy):
    """OMPIO moves less than requested, which HDF5 notices only after it has reset the view."""
    for layer in LAYERS[:2]:
        done = benchio.run(
            64, 64, 48, "global", layer, f"--directory={tiny_file_system}", "--writers=2",
            ranks=4, env={"OMPI_MCA_io": "ompio"}, wrapper=roomy,
        )  # fmt: skip
        assert done.status == 1, layer
        assert f"{tiny_file_system}/{layer}.dat failed: " in done.messages[0]
        assert "rate" not in done.out
        assert list(tiny_file_system.iterdir()) == []


def test_files_that_another_run_kept_or_that_were_cut_are_refused(benchio, says):
    assert benchio.run(*SHAPE, "global", *LAYERS, "unstriped", "--keep", ranks=RANKS).status == 0
    for layer in LAYERS[:3]:
        path = benchio.cwd / f"unstriped/{layer}.dat"
        # As many elements, in other rows.
        read = ("global", layer, "unstriped", "--no-write", "--read")
        done = benchio.run(6, 8, 9, *read, ranks=RANKS)
        assert done.status == 1
        says(done)
        path.write_bytes(path.read_bytes()[:-700])
        done = benchio.run(*SHAPE, *read, ranks=RANKS)
        assert done.status == 1
        assert f"unstriped/{layer}.dat" in done.messages[0]
        assert "rate" not in done.out
        path.write_bytes(b"no such format" * 1000)
        done = benchio.run(*SHAPE, *read, ranks=RANKS)
        assert done.status == 1
        assert f"of unstriped/{layer}.dat failed: " in done.messages[0]


def test_hints_reach_mpi(benchio):
    """ROMIO's collective buffer has the requested size: no write is larger."""
    largest = {}
    for asked in (12288, 4096):
        for trace in benchio.cwd.glob("trace.*"):
            trace.unlink()
        done = benchio.run(
            16, 16, 12, "global", *LAYERS, "unstriped", "--hint=romio_cb_write=enable",
            f"--hint=cb_buffer_size={asked}", ranks=RANKS, env={"OMPI_MCA_io": "romio321"},
            wrapper=tracing("pwrite64"),
        )  # fmt: skip
        assert done.status == 0, done.err
        traces = "".join(trace.read_text() for trace in benchio.cwd.glob("trace.*"))
        for layer in LAYERS:
            sizes = re.findall(rf"/{layer}\.dat>, .*, (\d+), \d+\) += ", traces)
            largest[layer, asked] = max(map(int, sizes))
    assert largest == {(layer, asked): asked for layer in LAYERS for asked in (12288, 4096)}


@pytest.mark.parametrize("layer", LAYERS)
def test_hints_are_asked_of_the_open_file(benchio, layer, says):
    done = benchio.run(
        *SHAPE, "global", layer, "unstriped", "--hint=cb_nodes=1", "--result=result.jsonl",
        ranks=RANKS,
    )  # fmt: skip
    assert done.status == 0, done.err
    (record,) = benchio.records()
    if "Open MPI v4" not in record["mpi_library"]:
        pytest.skip("this is about Open MPI 4")
    # It reports any hint as in effect, benchio's unknown hint too.
    says(done)
    if layer.startswith("pnetcdf"):
        assert record["hints"]["nc_header_align_size"] == "512"
    else:
        assert record["hints"] == {}


@pytest.mark.parametrize("io", ["ompio", "romio321"])
def test_fsync_is_a_system_call(benchio, io):
    for asked in ((), ("fsync",)):
        (benchio.cwd / "result.jsonl").unlink(missing_ok=True)
        for trace in benchio.cwd.glob("trace.*"):
            trace.unlink()
        done = benchio.run(
            *SHAPE, "global", *LAYERS, "unstriped", "--result=result.jsonl", *asked,
            ranks=RANKS, env={"OMPI_MCA_io": io},
            wrapper=tracing("fsync"),
        )  # fmt: skip
        assert done.status == 0, done.err
        traces = [trace.read_text() for trace in benchio.cwd.glob("trace.*")]
        for layer, record in zip(LAYERS, benchio.records(), strict=True):
            path = re.escape(str(benchio.cwd / f"unstriped/{layer}.dat"))
            counts = [len(re.findall(rf"fsync\(\d+<{path}>\) += 0", trace)) for trace in traces]
            counts = sorted(count for count in counts if count)
            # netCDF flushes after the definitions and in closing, too.
            always = 2 if layer == "netcdf" else 0
            assert counts == [always + len(asked)] * RANKS * bool(always + len(asked)), layer
            assert record["fsync"] is bool(always + len(asked))


def test_that_netcdf_syncs_unasked_is_said(benchio):
    done = benchio.run(*SHAPE, "global", "netcdf", "unstriped", ranks=RANKS)
    assert "Write times include fsync: netcdf always calls it" in done.out


@pytest.mark.parametrize(
    ("layer", "io"),
    [
        *((layer, "ompio") for layer in [*LAYERS, *INDEPENDENT]),
        ("hdf5", "romio321"),
        ("pnetcdf", "romio321"),
    ],
)
def test_a_full_device(benchio, tiny_file_system, roomy, layer, io):
    done = benchio.run(
        *TOO_LARGE, "global", layer, f"--directory={tiny_file_system}", "--verify", "--keep",
        "--result=result.jsonl", "--decomposition=slab", ranks=RANKS, env={"OMPI_MCA_io": io},
        wrapper=roomy,
    )  # fmt: skip
    assert done.status == 1, done.out + done.err
    assert "rate" not in done.out
    assert benchio.records() == []
    assert f"{tiny_file_system}/{layer}.dat" in done.messages[0]
    assert list(tiny_file_system.iterdir()) == []


def test_a_call_of_more_than_2_gib_says_what_to_do(benchio):
    if os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") < 4 * 2**30:
        pytest.skip("less than 4 GiB of memory are free")
    # 5 x 384^3 elements of 8 bytes are 2.1 GiB, and PnetCDF refuses them before it writes.
    done = benchio.run(384, 384, 384, "global", "btio-pnetcdf", "unstriped", "--steps=1")
    assert done.status == 1, done.out
    assert done.messages[0].endswith(
        "exceeds INT_MAX; this PnetCDF moves less than 2 GiB per process and call: use more "
        "processes or a smaller array"
    )


def test_a_file_that_cannot_be_made(benchio, read_only_file_system, says):
    done = benchio.run(
        *SHAPE, "global", "netcdf", f"--directory={read_only_file_system}", ranks=RANKS
    )
    assert done.status == 1
    says(done)
    (benchio.cwd / "unstriped/hdf5.dat").mkdir()
    done = benchio.run(*SHAPE, "global", "hdf5", "unstriped", ranks=RANKS)
    assert done.status == 1
    says(done)


def test_hdf5_that_is_not_collective_is_no_measurement(benchio, says):
    # With this setting HDF5 does not use MPI's datatypes.
    done = benchio.run(
        *SHAPE, "global", "hdf5", "unstriped", ranks=RANKS,
        env={"HDF5_MPI_OPT_TYPES": "0"},
    )  # fmt: skip
    assert done.status == 1
    says(done)
    assert "rate" not in done.out


def test_a_library_of_another_mpi_is_refused(benchio_mpich, tmp_path):
    done = benchio_mpich.run(*SHAPE, "global", "hdf5", "unstriped", ranks=2)
    assert done.status == 2
    assert "was not compiled in" in done.messages[0]
    command = ["cmake", "-S", SOURCES, "-B", tmp_path / "build"]
    settings = ["-DMPI_Fortran_COMPILER=mpifort.mpich", "-DBENCHIO_PNETCDF=ON"]
    made = subprocess.run([*command, *settings], capture_output=True, text=True, check=False)
    assert made.returncode != 0
    assert "BENCHIO_PNETCDF is ON, and PnetCDF cannot be used" in made.stderr
    assert "was built with another MPI library" in made.stderr


def test_a_netcdf_without_mpi_is_refused(tmp_path):
    # as the serial one of 4.9.3 does
    source, library = tmp_path / "netcdf.c", tmp_path / "lib" / "libnetcdf.so"
    source.write_text("int nc_create_par_fortran(void) { return -114; }\n")
    library.parent.mkdir()
    subprocess.run(["cc", "-shared", "-fPIC", source, "-o", library], check=True)
    settings = [f"-DNETCDF_ROOT={tmp_path}", "-DBENCHIO_NETCDF=ON", "-DBENCHIO_ADIOS=OFF"]
    made = said_by("cmake", "-S", SOURCES, "-B", tmp_path / "build", *settings)
    (used,) = [line for line in made.splitlines() if "Parallel netCDF-4: " in line]
    assert str(tmp_path) not in used


@pytest.mark.parametrize(("calls", "expected"), [("getpid", "FALSE"), ("MPI_Barrier", "TRUE")])
def test_a_library_that_the_linker_finds_is_examined_too(tmp_path, calls, expected):
    library, program = tmp_path / "libnetcdf.so", tmp_path / "program"
    (tmp_path / "netcdf.c").write_text(f"int {calls}(); int make(void) {{ return {calls}(); }}\n")
    (tmp_path / "program.c").write_text("int make(void); int main(void) { return make(); }\n")
    compiler = ("cc", "-Wl,--unresolved-symbols=ignore-all", f"-L{tmp_path}")
    said_by(*compiler, "-shared", "-fPIC", tmp_path / "netcdf.c", "-o", library)
    said_by(*compiler, tmp_path / "program.c", f"-Wl,-rpath,{tmp_path}", "-lnetcdf", "-o", program)
    lines = (
        f"include({SOURCES}/cmake/FormatLibraries.cmake)",
        f"benchio_call_mpi(linked {program} -lnetcdf)",
        f"benchio_call_mpi(located {program} {library})",
        'message(NOTICE "${linked} ${located}")',
    )
    (tmp_path / "ask.cmake").write_text("\n".join(lines))
    asked = ["cmake", "-DCMAKE_NM=nm", "-P", tmp_path / "ask.cmake"]
    done = subprocess.run(asked, capture_output=True, text=True, check=True)
    assert done.stderr.split() == [expected, expected]
