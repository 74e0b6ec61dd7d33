"""Evidence of a phase from outside the layer: MPI-IO calls, processes that moved data, variables.

The counts are compared with system calls and with what each layer is known to call.
"""

import re

import pytest

from tests.kernel.conftest import tracing

RANKS = 4
# 64 KiB each: 32 rows of 8 planes
RUN = (32, 32, 8, "local")


def counted(benchio, layer, *more, **settings):
    """Return the records of a write and a read of a layer."""
    done = benchio.run(
        *RUN, layer, "unstriped", "--read", "--result=result.jsonl", *more, ranks=RANKS, **settings
    )
    assert done.status == 0, done.err
    return benchio.records()


@pytest.mark.parametrize(
    ("layer", "kind"),
    [
        ("hdf5", "collective"),
        ("netcdf", "collective"),
        ("pnetcdf", "collective"),
        ("pnetcdf-nonblocking", "collective"),
        ("hdf5-independent", "independent"),
        ("netcdf-independent", "independent"),
    ],
)
def test_what_a_library_calls_is_counted(benchio, layer, kind):
    if layer not in benchio.layers():
        pytest.skip(f"{layer} was not compiled in")
    for record in counted(benchio, layer):
        other = {"collective": "independent", "independent": "collective"}[kind]
        assert record["calls"][other] == 0
        # One call moves all data, but independent HDF5 moves rows or planes one by one.
        calls = {"hdf5-independent": RANKS * 32 * 8, "netcdf-independent": RANKS * 8}
        assert record["calls"][kind] in {RANKS, calls.get(layer, RANKS)}


@pytest.mark.parametrize(
    ("layer", "calls", "movers"),
    [
        ("mpiio", {"collective": RANKS, "independent": 0}, 1),
        ("mpiio-independent", {"collective": 0, "independent": RANKS}, RANKS),
    ],
)
def test_mpich_is_given_the_calls_of_fortran_too(benchio_mpich, layer, calls, movers):
    hints = ("--hint=romio_cb_write=enable", "--hint=romio_cb_read=enable")
    for record in counted(benchio_mpich, layer, *hints):
        assert (record["calls"], record["movers"]) == (calls, movers)


@pytest.mark.parametrize("buffering", ["enable", "disable"])
@pytest.mark.parametrize("aggregators", [1, 2])
def test_movers_are_the_processes_that_made_the_system_calls(benchio, buffering, aggregators):
    hints = [f"--hint=romio_cb_{way}={buffering}" for way in ("write", "read")]
    records = counted(
        benchio, "mpiio", *hints, f"--hint=cb_config_list=*:{aggregators}",
        env={"OMPI_MCA_io": "romio321"}, wrapper=tracing("pwrite64,pread64"),
    )  # fmt: skip
    traces = [trace.read_text() for trace in benchio.cwd.glob("trace.*")]
    for record, call in zip(records, ("pwrite64", "pread64"), strict=True):
        made = sum(bool(re.search(rf"{call}\(\d+<\S*/mpiio\.dat>", trace)) for trace in traces)
        assert record["movers"] == made == (aggregators if buffering == "enable" else RANKS)


def test_a_variable_is_recorded_where_all_processes_have_the_same(benchio):
    names = ("FI_OFI_RXM_SAR_LIMIT", "OMPI_COMM_WORLD_RANK", "NO_SUCH_VARIABLE")
    (write, read) = counted(
        benchio, "proc", *(f"--environment={name}" for name in names),
        env={"FI_OFI_RXM_SAR_LIMIT": "64K"},
    )  # fmt: skip
    assert write["environment"] == read["environment"] == {"FI_OFI_RXM_SAR_LIMIT": "64K"}


def test_a_variable_that_is_asked_for_twice_is_one_field(benchio):
    named = ["--environment=FI_OFI_RXM_SAR_LIMIT"] * 2
    counted(benchio, "proc", *named, env={"FI_OFI_RXM_SAR_LIMIT": "64K"})
    record, _ = (benchio.cwd / "result.jsonl").read_text(encoding="utf-8").splitlines()
    assert '"environment": {"FI_OFI_RXM_SAR_LIMIT": "64K"}}' in record
