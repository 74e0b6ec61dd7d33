"""The columns about the calls and processes that moved a run's data, and where its time went."""

import pytest

from checks.base.covariates import Gathered, measure, time_shares
from checks.base.witnesses import calls_of, calls_text, movers_text, printed_calls, shares_text

# What Cray's library printed with MPICH_MPIIO_STATS=1, as two texts publish it: of writes, the file
# of 4.1 GB from 192 processes in a post on MPI-IO in CP2K; of reads, the array of four processes in
# section 16.6.1 of the book "Parallel and High Performance Computing". The first lines are of the
# form of MPICH_MPIIO_HINTS_DISPLAY=1, with the value that this suite sets.
CRAY = """\
PE 0: MPICH MPIIO environment settings:
PE 0:   MPICH_MPIIO_STATS                         = 1
+--------------------------------------------------------+
| MPIIO write access patterns for large-cube-SPIN_DENSITY-1_0.cube
|   independent writes      = 106
|   collective writes       = 192
|   independent writers     = 1
|   aggregators             = 1
|   stripe count            = 1
|   stripe size             = 1048576
|   system writes           = 4286
|   aggregators active      = 192,0,0,0 (1, <= 1, > 1, 1)
|   total bytes for writes  = 4382277718 = 4179 MiB = 4 GiB
|   ave system write size   = 1022463
|   read-modify-write count = 0
|   read-modify-write bytes = 0
|   number of write gaps    = 0
|   ave write gap size      = NA
+--------------------------------------------------------+
"""
READS = """\
| MPIIO read access patterns for example.data
|   independent reads       = 0
|   collective reads        = 4
|   independent readers     = 0
|   aggregators             = 1
|   stripe count            = 1
|   stripe size             = 524288
|   system reads            = 1
|   stripe sized reads      = 0
|   total bytes for reads   = 3200
|   ave system read size    = 3200
|   number of read gaps     = 0
|   ave read gap size       = NA
"""


def phase(operation, **fields):
    times = {"open": 0.5, "transfer": 6.0, "sync": 1.0, "close": 0.5}
    return {
        "operation": operation,
        **{f"seconds_{part}": seconds for part, seconds in times.items()},
        **fields,
    }


def test_what_cray_s_library_prints_is_counted_by_operation():
    calls = printed_calls(CRAY + READS + CRAY)
    assert calls == {
        "write": {"collective": 384, "independent": 212},
        "read": {"collective": 4, "independent": 0},
    }
    assert calls_text(calls) == (
        "write_bw=collective:384,independent:212;read_bw=collective:4,independent:0"
    )
    assert list(printed_calls(CRAY)) == ["write"]


def test_without_statistics_there_are_no_calls():
    head, _, _ = CRAY.partition("+---")
    assert printed_calls(head) == printed_calls("") == {}
    assert calls_text({}) is None


def test_calls_of_repeats_are_added_and_one_without_leaves_none():
    counted = {"collective": 4, "independent": 1}
    records = [phase("write", calls=counted), phase("write", calls=counted)]
    assert calls_of(records) == {"write": {"collective": 8, "independent": 2}}
    assert calls_of([*records, phase("read", calls=None)]).keys() == {"write"}
    assert calls_of([*records, phase("write", calls=None)]) == {}


def test_movers_are_the_most_of_the_repeats():
    records = [phase("write", movers=4), phase("write", movers=5), phase("read", movers=None)]
    assert movers_text(records) == "write_bw=5"
    assert movers_text(records[2:]) is None


def test_the_parts_share_the_time_of_all_repeats():
    slow = phase("write", seconds_open=8.0)  # 15.5 s beside 8 s
    assert time_shares([phase("read")])["read"] == {
        "open": 0.0625, "transfer": 0.75, "sync": 0.125, "close": 0.0625,
    }  # fmt: skip
    assert shares_text([phase("write"), slow]) == (
        "write_bw=open:0.362,transfer:0.511,sync:0.0851,close:0.0426"
    )


@pytest.mark.parametrize(
    ("phases", "percent"),
    [
        ([], None),
        ([{"operation": "list", "rate": 5.0}], None),
        ([phase("write")], 12.5),
        # (8 + 0.5) / 15.5
        ([phase("write"), phase("read", seconds_open=8.0)], 54.8),
    ],
)
def test_the_share_of_opens_and_closes_is_a_covariate(phases, percent):
    assert measure("open_close_percent", Gathered(nodes=1, phases=phases)) == percent
