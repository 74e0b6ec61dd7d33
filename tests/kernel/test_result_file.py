"""The result file compared with its contract, and the lines that parsers of EPCC's benchio need."""

import json
import re
from pathlib import Path

import pytest

GIB = 2**30
RUN = (16, 8, 12, "local")
KINDS = {
    "serial": ("serial", "posix", 1),
    "proc": ("fpp", "posix", 3),
    "node": ("fpn", "posix", 1),
    "mpiio": ("ssf", "mpiio", 1),
    "hdf5": ("ssf", "hdf5", 1),
    "netcdf": ("ssf", "netcdf", 1),
}
GOLDEN = Path(__file__).resolve().parents[1] / "contracts" / "golden" / "benchio-4.json"
TYPES = {
    "string": (str,),
    "integer": (int,),
    "number": (float,),
    "boolean": (bool,),
    "object": (dict,),
    "null": (type(None),),
}


def types_of_contract():
    """The types of each field according to the contract's golden file."""
    fields = json.loads(GOLDEN.read_text(encoding="utf-8"))
    return {
        name: tuple(kind for word in words.split(" or ") for kind in TYPES[word])
        for name, words in fields.items()
    }


@pytest.fixture
def recorded(benchio):
    done = benchio.run(
        *RUN, "unstriped", "fsync", "--verify", "--repeats=2", "--result=result.jsonl", ranks=3
    )
    assert done.status == 0, done.err
    return benchio.records()


def test_each_phase_has_every_field_of_its_type(recorded):
    assert len(recorded) == len(KINDS) * 2 * 2
    for record in recorded:
        assert list(record) == list(types_of_contract())
        for name, kinds in types_of_contract().items():
            assert type(record[name]) in kinds, name


def test_what_the_fields_say(recorded):
    for record in recorded:
        reading = record["operation"] == "read"
        assert record["schema"] == "benchio/4"
        assert record["version"] == "1.0.0"
        assert record["mpi_library"]
        assert (record["pattern"], record["interface"], record["files"]) == KINDS[record["layer"]]
        assert (record["nodes"], record["processes"], record["processes_per_node"]) == (1, 3, 3)
        assert record["bytes"] == record["verified_bytes"] == 16 * 8 * 12 * 3 * 8
        assert record["fsync"] is not reading
        assert (record["cache"] in ("dropped", "none")) if reading else record["cache"] is None
        assert record["cache_asked"] == ("dropped" if reading else None)
        assert record["decomposition"] == "block"
        assert (record["halo"], record["direct"], record["latency"]) == (1, False, None)
        assert record["writers"] == {"serial": 1, "node": 1}.get(record["layer"], 3)
        assert record["short"] is (record["seconds"] < 1)
        assert record["seconds_compute"] is None
        assert record["seconds_hidden"] is None
        assert 0 <= record["slowest_rank"] < 3
        assert record["slowest_host"]
        assert all(isinstance(value, str) for value in record["hints"].values())
        if record["interface"] == "posix":
            assert record["hints"] == {}
            assert record["calls"] is None
            assert record["movers"] == record["writers"]
        assert record["environment"] == {}
    assert len({record["seed"] for record in recorded}) == 1


def test_times_and_rate_agree(recorded):
    for record in recorded:
        seconds = record["seconds"]
        assert seconds > 0
        assert record["bandwidth_gib_s"] == pytest.approx(record["bytes"] / seconds / GIB)
        stages = [record[f"seconds_{stage}"] for stage in ("open", "transfer", "sync", "close")]
        assert all(stage >= 0 for stage in stages)
        low, middle, high = (record[f"rank_seconds_{which}"] for which in ("min", "median", "max"))
        assert low <= middle <= high <= seconds
        assert max(stages) <= high * 1.000001 <= sum(stages) * 1.000002
        if record["operation"] == "read":
            assert record["seconds_sync"] == 0


def test_without_verification_no_bytes_are_said_to_be_verified(benchio):
    benchio.run(*RUN, "unstriped", "--read", "--result=result.jsonl")
    records = benchio.records()
    assert [record["operation"] for record in records] == ["write", "read"] * len(KINDS)
    assert {record["verified_bytes"] for record in records} == {None}
    # netCDF always syncs.
    assert {record["layer"] for record in records if record["fsync"]} == {"netcdf"}


def test_the_result_file_is_made_new(benchio):
    (benchio.cwd / "result.jsonl").write_text("old\n" * 1000)
    benchio.run(*RUN, "proc", "unstriped", "--result=result.jsonl")
    assert len(benchio.records()) == 1


def test_a_path_that_json_must_escape(benchio):
    where = benchio.cwd / 'a "quoted"\\back\tslash'
    where.mkdir()
    benchio.run(*RUN, "proc", f"--directory={where}", "--result=result.jsonl")
    assert benchio.records()[0]["path"] == f"{where}/proc000000.dat"


def test_reads_from_a_file_system_in_memory_are_said_to_be_so(benchio, tiny_file_system):
    benchio.run(
        8, 8, 8, "local", f"--directory={tiny_file_system}", "--read", "--result=result.jsonl"
    )
    caches = [record["cache"] for record in benchio.records() if record["operation"] == "read"]
    assert caches == ["none"] * len(KINDS)


HINTS = ("--hint=cb_buffer_size=8388608", "--hint=cb_nodes=nonsense", "--hint=no_such_hint=1")


def test_hints_are_read_back_from_the_open_file(benchio_mpich):
    benchio_mpich.run(
        *RUN, "mpiio", "unstriped", *HINTS, "--verify", "--result=result.jsonl", ranks=2
    )  # fmt: skip
    records = benchio_mpich.records()
    assert len(records) == 2
    for record in records:
        assert record["hints"]["cb_buffer_size"] == "8388608"
        assert record["hints"]["cb_nodes"] == "1"  # in effect, whatever was asked
        assert "romio_cb_write" in record["hints"]  # was not asked for
        assert not [name for name in record["hints"] if "hint" in name]


@pytest.mark.parametrize("io", ["ompio", "romio321"])
def test_a_library_that_confirms_any_hint_proves_nothing(benchio, io):
    done = benchio.run(
        *RUN, "mpiio", "unstriped", *HINTS, "--result=result.jsonl", env={"OMPI_MCA_io": io}
    )  # fmt: skip
    if "Open MPI v4" not in benchio.records()[0]["mpi_library"]:
        pytest.skip("this is about Open MPI 4")
    assert benchio.records()[0]["hints"] == {}
    assert done.out.count("Note: hints that may not be in effect") == 1


@pytest.mark.parametrize("layer", ["serial", "proc000000", "node000000", "mpiio"])
@pytest.mark.parametrize("directory", ["unstriped", "striped", "fullstriped"])
def test_parsers_of_epccs_benchio_find_their_lines(benchio, layer, directory):
    done = benchio.run(*RUN, layer.removesuffix("000000"), directory, "fsync", ranks=2)
    pattern = (
        r"Writing to " + directory + "/" + layer + r"\.dat\W*\n"
        r"\W*time\W*=\W*\d+.\d*\W*,\W*rate\W*=\W*(\d+.\d*)"
    )
    (rate,) = re.findall(pattern, done.out)
    assert float(rate) > 0
    assert not re.search(r"\d[eE][+-]?\d", done.out)
    assert done.out.rstrip().endswith("--------\n Finished\n --------")


def test_with_reads_too(benchio):
    done = benchio.run(*RUN, "proc", "unstriped", "--verify", "--repeats=2")
    lines = re.sub(r"\d+\.\d+", "X", done.out).splitlines()
    assert [line for line in lines if "unstriped/" in line or "rate" in line] == [
        " Writing to unstriped/proc000000.dat",
        " time =  X , rate =  X GiB/s (short)",
        " Reading from unstriped/proc000000.dat",
        " time =  X , rate =  X GiB/s (short)",
    ] * 2
