"""What a canary's files prove, and that a healthy node is never blamed."""

import json

import pytest

from checks.base.canary import AskedCanary, finding_of

FIT, UNFIT, UNKNOWN = 0, 2, 3
ASKED = AskedCanary("/scratch", 4, 8, "openmpi", "ucx")
SAID = "[n1:1] select: component ucx selected\n"


def record(operation, repeat, rate, cache="dropped"):
    """A record of benchio for 4 MiB."""
    return {
        "schema": "benchio/4",
        "version": "1.0",
        "layer": "proc",
        "processes": 1,
        "bytes": 4 << 20,
        "files": 1,
        "fsync": operation == "write",
        "verified_bytes": 4 << 20,
        "operation": operation,
        "repeat": repeat,
        "cache": cache if operation == "read" else None,
        "bandwidth_gib_s": rate,
    }


PAIR = (record("write", 1, 1.0), record("read", 1, 2.0))


@pytest.fixture
def finding(tmp_path):
    """Judges a stage directory with these records, output and list of files."""

    def judge(*records, status=0, said=SAID, files="4194304 proc000000.dat\n", begun=True):
        if begun:
            (tmp_path / "begun").touch()
        (tmp_path / "output.txt").write_text(said)
        (tmp_path / "result.jsonl").write_text("".join(f"{json.dumps(e)}\n" for e in records))
        (tmp_path / "files.txt").write_text(files)
        (tmp_path / "libraries.txt").write_text("libmpi.so.40 => /lib/libmpi.so.40\n")
        (tmp_path / "df.txt").write_text("1K-blocks Used Avail Use%\n100 25 75 25%\n")
        return finding_of(tmp_path, status, ASKED)

    return judge


def refusal(reason):
    return {"status": 1, "begun": False, "said": f"iobands: /scratch: {reason}\n"}


def test_medians_of_proven_phases_are_its_rates(finding):
    more = (record("write", 2, 3.0), record("read", 2, 4.0))
    last = (record("write", 3, 1.5), record("read", 3, 2.5))
    found = finding(*PAIR, *more, *last)
    assert (found.status, found.rates) == (FIT, {"write_bw": 1.5, "read_bw": 2.5})
    assert found.columns["transport_in_effect"] == "ucx"
    assert found.columns["fullness_percent"] == "25.00"


@pytest.mark.parametrize(
    ("reason", "name"),
    [
        ("type requested: lustre; mounted there: ext4: is it mounted on n1?", "unmounted"),
        ("No such file or directory", "unmounted"),
        ("Stale file handle", "stale"),
        ("Transport endpoint is not connected", "stale"),
        ("no directory can be made there: Read-only file system", "read-only"),
        ("0.004 GiB are free; this run needs 1 GiB", "full"),
        ("no directory can be made there: Disk quota exceeded", "full"),
        ("no directory can be made there: Permission denied", "failed"),
    ],
)
def test_what_the_guards_refuse_has_a_name(finding, reason, name):
    found = finding(**refusal(reason))
    assert (found.status, found.why) == (UNFIT, f"{name}: {reason}")


def test_an_error_of_a_call_has_one_too(finding):
    said = "benchio: rank 0 (n1): write: /scratch/x: Stale file handle\n"
    found = finding(status=1, said=said)
    assert (found.status, found.why.partition(":")[0]) == (UNFIT, "stale")


def test_a_limit_within_a_repeat_is_no_fault(finding):
    """benchio has removed the files of the repeat before, and the last one lacks its read."""
    found = finding(*PAIR, record("write", 2, 9.0), status=3, files="")
    assert (found.status, found.rates) == (FIT, {"write_bw": 1.0, "read_bw": 2.0})


@pytest.mark.parametrize("status", [3, 124])
def test_too_slow_to_end_bounds_the_rate(finding, status):
    found = finding(status=status, files="")
    # at the rate r or more, 4 MiB are written and read in 8 MiB / r: 8 s at 1/1024 GiB/s
    assert (found.status, found.at_most, found.is_unstarted) == (UNKNOWN, 1 / 1024, False)


@pytest.mark.parametrize(
    ("status", "said", "unstarted"),
    [
        (137, "", False),  # out of memory, or killed by somebody
        (1, "PML ucx cannot be selected\n", True),
        (127, "./benchio: error while loading shared libraries: libmpi.so.40\n", True),
    ],
)
def test_a_program_that_does_not_run_says_nothing_of_the_file_system(
    finding, status, said, unstarted
):
    found = finding(status=status, said=said)
    assert (found.status, found.is_unstarted) == (UNKNOWN, unstarted)


def test_a_place_that_others_may_write_is_not_the_nodes_fault(finding):
    found = finding(**refusal("other users may write there and the directory is not sticky"))
    assert found.status == UNKNOWN


def test_data_on_disk_that_are_too_few_are_a_fault(finding):
    found = finding(*PAIR, files="4194303 proc000000.dat\n")
    assert (found.status, found.why.partition(":")[0]) == (UNFIT, "failed")


def test_another_transport_is_a_fault_and_an_unknown_one_is_not(finding):
    found = finding(*PAIR, said="[n1:1] select: component ob1 selected\n")
    assert (found.status, found.why) == (
        UNFIT,
        "wrong transport: ucx requested, in effect: ob1",
    )
    assert finding(*PAIR, said="").status == UNKNOWN


def test_a_read_from_memory_is_no_rate(finding):
    found = finding(PAIR[0], record("read", 1, 90.0, cache="none"))
    assert (found.status, found.rates) == (FIT, {"write_bw": 1.0})
