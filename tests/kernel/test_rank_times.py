"""The CSV file of each rank's times, compared with the record of the same phase."""

import csv

import pytest

from tests.kernel.conftest import injecting

COLUMNS = [
    "layer", "operation", "repeat", "path", "rank", "host", "seconds_open", "seconds_transfer",
    "seconds_sync", "seconds_close", "seconds",
]  # fmt: skip
STAGES = COLUMNS[6:10]
RANKS = 3
# They are written with six digits.
ROUNDING = 2e-5


def rows_of(benchio):
    with (benchio.cwd / "ranks.csv").open(newline="") as file:
        reader = csv.DictReader(file)
        rows = list(reader)
    assert reader.fieldnames == COLUMNS
    return rows


@pytest.fixture
def measured(benchio):
    """The records, and for each the rows of its ranks."""
    where = benchio.cwd / 'a "quoted", name'
    where.mkdir()
    (benchio.cwd / "ranks.csv").write_text("old\n" * 1000)
    done = benchio.run(
        8, 8, 12, "local", "serial", "proc", "node", "mpiio", "mpiio-independent",
        f"--directory={where}", "fsync", "--verify", "--repeats=2", "--result=result.jsonl",
        "--ranks=ranks.csv", ranks=RANKS,
    )  # fmt: skip
    assert done.status == 0, done.err
    records, rows = benchio.records(), rows_of(benchio)
    assert len(rows) == len(records) * RANKS
    return [(record, rows[at * RANKS : (at + 1) * RANKS]) for at, record in enumerate(records)]


def test_a_row_a_rank_and_phase(measured):
    assert len(measured) == 5 * 2 * 2
    for record, rows in measured:
        assert [row["rank"] for row in rows] == ["0", "1", "2"]
        for row in rows:
            for name in ("layer", "operation", "path"):
                assert row[name] == record[name]
            assert row["repeat"] == str(record["repeat"])
            assert row["host"] == record["slowest_host"]  # there is one only


def test_the_record_is_made_of_the_rows(measured):
    for record, rows in measured:
        totals = [float(row["seconds"]) for row in rows]
        for row, total in zip(rows, totals, strict=True):
            stages = [float(row[stage]) for stage in STAGES]
            assert min(stages) >= 0
            assert sum(stages) == pytest.approx(total, rel=ROUNDING)
        for stage in STAGES:
            longest = max(float(row[stage]) for row in rows)
            assert record[stage] == pytest.approx(longest, rel=ROUNDING)
        assert record["rank_seconds_min"] == pytest.approx(min(totals), rel=ROUNDING)
        assert record["rank_seconds_median"] == pytest.approx(sorted(totals)[1], rel=ROUNDING)
        assert record["rank_seconds_max"] == pytest.approx(max(totals), rel=ROUNDING)
        assert totals[record["slowest_rank"]] == max(totals)
        assert max(totals) <= record["seconds"] * (1 + ROUNDING)
        if record["operation"] == "read":
            assert {float(row["seconds_sync"]) for row in rows} == {0.0}


def test_a_straggler_stands_out(benchio):
    # The second of three ranks takes half a second longer to write.
    delay = " ".join(injecting("pwritev", "delay_enter=500000:when=1"))
    slow = f'test "$OMPI_COMM_WORLD_RANK" = 1 && set -- {delay} "$@"; exec "$@"'
    done = benchio.run(
        8, 8, 8, "local", "proc", "unstriped", "--result=result.jsonl", "--ranks=ranks.csv",
        ranks=RANKS, wrapper=["sh", "-c", slow, "sh"],
    )  # fmt: skip
    assert done.status == 0, done.err
    (record,) = benchio.records()
    times = [float(row["seconds_transfer"]) for row in rows_of(benchio)]
    assert times[1] >= 0.5
    assert record["seconds"] >= record["rank_seconds_max"] >= 0.5


def test_a_file_that_cannot_be_made_or_written(benchio, full_file_system, says):
    run = (8, 8, 8, "local", "proc", "unstriped", "--keep")
    done = benchio.run(*run, "--ranks=nowhere/ranks.csv", ranks=2)
    assert done.status == 1
    says(done)
    assert list((benchio.cwd / "unstriped").iterdir()) == []
    done = benchio.run(*run, f"--ranks={full_file_system}/ranks.csv", ranks=2)
    assert done.status == 1
    says(done)
