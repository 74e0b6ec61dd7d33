"""The benchmark: its arithmetic on values worked out by hand, and real runs of it."""

import json
import mmap
import shutil
from itertools import count
from pathlib import Path

import pytest
from typer.testing import CliRunner

from benchmarks import benchio, fio, ior
from benchmarks.__main__ import app
from benchmarks.errors import BenchmarkError
from benchmarks.launch import run_ranks
from benchmarks.machine import libraries
from benchmarks.measure import Effort, Finding, measure
from benchmarks.memory import peak_ratio
from benchmarks.page_cache import drop_files
from benchmarks.pairs import Contender, Pairs, Quartiles, highest_rates, quartiles, take_turns
from benchmarks.report import MemoryFinding, page, terminal_table
from benchmarks.rows import Row
from benchmarks.workload import MIB, Place, Workload, parse_size
from tests.kernel.conftest import plain_build

MEMORY = Place("memory", Path("/dev/shm"), is_disk=False)
DISK = Place("disk", Path(), is_disk=True)


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    for tool in ("cmake", "mpirun"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed")
    return plain_build(tmp_path_factory) / "benchio"


def contender(name, *rates, log=None):
    """Return a contender that measures these rates one after the other."""
    at = count()

    def run():
        if log is not None:
            log.append(name)
        return rates[next(at) % len(rates)]

    return Contender(name, run)


# Arithmetic


def test_quartiles_are_interpolated():
    # Of 1, 2, 4, 8: a quarter of the way is at position 0.75, the middle at 1.5.
    assert quartiles([8.0, 1.0, 4.0, 2.0]) == Quartiles(1.75, 3.0, 5.0)
    assert quartiles([3.0]) == Quartiles(3.0, 3.0, 3.0)


def test_ratios_are_taken_pair_by_pair():
    # The machine became ten times slower in the middle: the ratio of the medians, 6/50, would come
    # from no pair.
    pairs = Pairs((100.0, 6.0, 5.0), (50.0, 6.0, 100.0))
    assert pairs.ratio == quartiles([2.0, 1.0, 0.05])
    assert pairs.ratio.median == 1.0


def test_all_run_in_turn():
    log = []
    ours = contender("a", 1, 2, log=log)
    others = [contender("b", 4, 5, log=log), contender("c", 8, 6, log=log)]
    taken = take_turns([ours, *others], 2)
    assert log == ["a", "b", "c"] * 2
    assert taken == {"a": (1, 2), "b": (4, 5), "c": (8, 6)}


def test_the_best_has_the_highest_rate_of_its_tries():
    log = []
    refusal = BenchmarkError("no O_DIRECT here")

    def refused():
        log.append("refused")
        raise refusal

    slow, lucky = contender("slow", 3, 3, log=log), contender("lucky", 1, 9, log=log)
    found = highest_rates([slow, lucky, Contender("refused", refused)], 2)
    assert found == {"slow": 3, "lucky": 9, "refused": refusal}
    assert log == ["slow", "lucky", "refused", "slow", "lucky"]


def row(*theirs, aim=1.0, missing=""):
    return Row("files", "write", MEMORY, aim, contender("ours", 4.0, 6.0, 5.0), theirs, missing)


@pytest.mark.parametrize(
    ("theirs", "aim", "verdict"),
    [(5.0, 1.0, "reached"), (5.1, 1.0, "short, within the spread"), (9.0, 0.5, "reached"),
     (9.0, 1.0, "short")],
)  # fmt: skip
def test_the_verdict_is_that_of_the_median(theirs, aim, verdict):
    # The pairs are 4, 6, 5, with a median of 5 and an upper quartile of 5.5.
    (found,) = measure([row(contender("theirs", theirs), aim=aim)], Effort(pairs=3))
    assert found.verdict == verdict
    assert found.against == "theirs"
    assert found.ratio.median == 5.0 / theirs


def test_what_cannot_be_measured_is_left_out_with_its_reason():
    (found,) = measure([row(missing="ior is not on the PATH")], Effort(pairs=3))
    assert found.verdict == "left out: ior is not on the PATH"
    assert found.ratio is None


def test_a_way_that_the_system_refuses_is_not_held_against_benchio():
    def refused():
        raise BenchmarkError("no O_DIRECT here")

    ways = Contender("refused", refused), contender("able", 5.0)
    (found, alone) = measure([row(*ways), row(ways[0])], Effort(pairs=1))
    assert found.against == "able"
    assert alone.verdict == "left out: no O_DIRECT here"


@pytest.mark.parametrize(
    ("text", "size"), [("1G", 2**30), ("512m", 2**29), ("4096", 4096), ("3K", 3072)]
)
def test_sizes(text, size):
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "G", "1.5G", "-1M", "1T"])
def test_what_is_no_size_is_refused(text):
    with pytest.raises(BenchmarkError, match="no size"):
        parse_size(text)


def test_the_block_has_the_share_of_a_rank():
    # 16 MiB are 2048 rows of 8 KiB: 32 x 64; 3 MiB are 384: 16 x 24.
    assert Workload(2, 16 * MIB).block == (1024, 32, 64)
    assert Workload(2, 3 * MIB).block == (1024, 16, 24)
    assert Workload(3, 3 * MIB).volume == 9 * MIB
    with pytest.raises(BenchmarkError, match="whole number of MiB"):
        Workload(2, MIB + 1)


def test_transfer_sizes_divide_the_share():
    assert ior.transfer_sizes(Workload(2, 6 * MIB), (MIB, 4 * MIB)) == [MIB, 6 * MIB]


# What the programs leave


def ior_summary(**changes):
    test = {
        "Parameters": {"fsync": 1, "blockSize": 64 * MIB, "segmentCount": 1},
        "Options": {"tasks": 2},
        "Results": [{"access": "write", "bwMiB": 1019.1249, "totalTime": 0.1256} | changes],
    }
    return json.dumps({"tests": [test]})


def test_the_rate_of_ior_is_that_of_its_total_time():
    assert ior.rate_of(ior_summary(), "write", 128 * MIB, True) == 1019.1249 * MIB
    # Twice the rate would mean half the time, without opening and closing.
    with pytest.raises(BenchmarkError, match="total time"):
        ior.rate_of(ior_summary(bwMiB=2038.25), "write", 128 * MIB, True)


@pytest.mark.parametrize(
    ("operation", "volume", "fsync"),
    [("read", 128 * MIB, True), ("write", 64 * MIB, True), ("write", 128 * MIB, False)],
)
def test_an_ior_that_did_something_else_is_no_measurement(operation, volume, fsync):
    with pytest.raises(BenchmarkError, match="as asked"):
        ior.rate_of(ior_summary(), operation, volume, fsync)


def test_the_rate_of_fio_is_that_of_its_slowest_job():
    jobs = [
        {"error": 0, "read": {"io_bytes": 3000, "runtime": 100}},
        {"error": 0, "read": {"io_bytes": 3000, "runtime": 200}},
    ]
    output = "fio: a warning\n" + json.dumps({"jobs": jobs})
    assert fio.rate_of(output, "read", 6000) == 30000.0
    with pytest.raises(BenchmarkError, match="6000 of 9000 bytes"):
        fio.rate_of(output, "read", 9000)


@pytest.mark.parametrize(
    ("operation", "place", "changes"),
    [
        ("write", DISK, {"fsync": False}),
        ("write", MEMORY, {"bytes": 99}),
        ("read", DISK, {"cache": "none"}),
    ],
)
def test_a_benchio_that_did_something_else_is_no_measurement(operation, place, changes):
    cache = None if operation == "write" else ("dropped" if place.is_disk else "none")
    right = {
        "operation": operation,
        "bytes": 800,
        "seconds": 0.25,
        "direct": False,
        "fsync": place.is_disk and operation == "write",
        "cache": cache,
    }
    assert benchio.rate_of(json.dumps(right), operation, 800, place) == 3200.0
    # Of 2, 1, 0.25 and 0.5 s, without the first: 0.5 s.
    lines = [json.dumps(right | {"seconds": seconds}) for seconds in (2, 1, 0.25, 0.5)]
    assert benchio.rate_of("\n".join(lines), operation, 800, place) == 1600.0
    with pytest.raises(BenchmarkError, match=f"benchio says {next(iter(changes))}"):
        benchio.rate_of(json.dumps(right | changes), operation, 800, place)


def test_libraries_are_told_by_the_files_they_come_from():
    listing = """
        libmpi.so.40 => /nowhere/libmpi.so.40 (0x00007f)
        libm.so.6 => /lib/libm.so.6 (0x00007f)
        libmpi_usempif08.so.40 => /nowhere/libmpi_usempif08.so.40 (0x00007f)
        libhdf5_openmpi.so.103 => not found
    """
    assert libraries(listing) == ["libmpi.so.40", "libmpi_usempif08.so.40"]


# The page


def test_the_page_says_what_was_measured_and_what_was_not():
    measured = Finding(
        "files", "write", "disk", 0.95, "fio psync", 1.5, 2.0, Quartiles(0.7, 0.75, 0.8)
    )
    missing = Finding("shared", "read", "disk", 1.0, missing="ior is not on the PATH")
    memory = [MemoryFinding("proc", 1.3), MemoryFinding("hdf5", None, "no layer hdf5")]
    text = page(
        [measured, missing], memory, {"Memory": "8.0 GiB"}, Workload(2, MIB), 7, "2026-01-31"
    )
    assert (
        "| files, write | disk | fio psync | 1.50 | 2.00 | 0.75 | 0.70–0.80 | 0.95 | short |"
        in text
    )
    assert "| shared, read | disk | | | | | | 1.00 | left out: ior is not on the PATH |" in text
    assert "| `proc` | 1.30 | over |" in text
    assert "| `hdf5` |  | left out: no layer hdf5 |" in text
    assert "Measured on 2026-01-31" in text
    assert "| Memory | 8.0 GiB |" in text
    assert terminal_table([measured, missing], memory).row_count == 4


# Real runs


def test_pages_that_stay_in_memory_are_reported(tmp_path):
    if shutil.which("fincore") is None:
        pytest.skip("fincore is not installed")
    path = tmp_path / "data"
    path.write_bytes(bytes(MIB))
    with path.open("r+b") as file, mmap.mmap(file.fileno(), MIB) as used:
        used[0] = 1
        with pytest.raises(BenchmarkError, match="stay in memory"):
            drop_files(tmp_path)


def test_the_memory_of_a_layer_is_that_of_its_array(program, tmp_path):
    # 32 MiB are 4096 rows in 64 x 64: with the halo around, 1026 x 66 x 66 elements are 1.065 of
    # them, and the tiny array's halo, which is subtracted, makes it a little less.
    ratio = peak_ratio(program, Workload(2, 32 * MIB), "proc", False, tmp_path)
    assert 1.0 < ratio < 1.25


def test_what_fails_is_reported(program, tmp_path):
    with pytest.raises(BenchmarkError, match="No such file"):
        run_ranks(1, [program, 4, 4, 4, "local", "proc", f"--directory={tmp_path}/none"])


def test_a_whole_run(program, tmp_path):
    if shutil.which("ior") is None:
        pytest.skip("ior is not installed")
    report = tmp_path / "page.md"
    done = CliRunner().invoke(
        app,
        [
            f"--program={program}",
            f"--directory={tmp_path / 'here'}",
            f"--memory-directory={tmp_path / 'there'}",
            "--quick",
            "--only=file per process, read, disk",
            f"--report={report}",
        ],
    )
    assert done.exit_code == 0, done.output
    (line,) = [
        line for line in report.read_text().splitlines() if "file per process, read |" in line
    ]
    cells = [cell.strip() for cell in line.split("|")]
    assert cells[2:4] == ["disk", "IOR -a POSIX -F, its block a call"]
    ours, theirs, ratio = (float(cell) for cell in cells[4:7])
    assert ours > 0
    assert theirs > 0
    assert ratio > 0
    # Nothing is left in the directories.
    assert list((tmp_path / "here").iterdir()) == []
    assert list((tmp_path / "there").iterdir()) == []


def test_a_program_that_is_not_there_is_reported(tmp_path):
    done = CliRunner().invoke(app, [f"--program={tmp_path / 'none'}"])
    assert done.exit_code == 1
    assert "there is no program" in done.output
