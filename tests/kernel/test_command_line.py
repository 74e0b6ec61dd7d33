"""The command line: which arguments are errors, and their messages."""

import subprocess

import pytest

from tests.kernel.conftest import QUICKLY, Benchio, build_kernel

GOOD = (8, 8, 8, "local")
DEFAULTS = "serial proc node mpiio hdf5 netcdf"
LAYERS = (
    "serial proc node mpiio mpiio-independent group hdf5 hdf5-independent netcdf "
    "netcdf-independent pnetcdf pnetcdf-nonblocking snapshot snapshot-nonblocking "
    "btio btio-independent btio-pnetcdf btio-pnetcdf-nonblocking "
    "strided strided-independent strided-posix mapped mapped-independent "
    "aligned aligned-single aligned-files aligned-random"
)


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        (4, 4, 4),
        (0, 4, 4, "local"),
        (4, -4, 4, "local"),
        (4, 4, "4x", "local"),
        (4, "1,2", 4, "local"),
        (4, "", 4, "local"),
        (4, 4.0, 4, "local"),
        (2**63, 4, 4, "local"),
        (2**31, 4, 4, "local"),
        (2**22, 2**22, 2**22, "local"),
        (4, 4, 4, "locale"),
        (4, 4, 4, "proc"),
        (*GOOD, "serail"),
        (*GOOD, "fsync", "mpiioo"),
        (*GOOD, "fsync", "fsycn"),
        (*GOOD, "unstripped"),
        (*GOOD, "serial "),
        (*GOOD, "--read "),
        (*GOOD, ""),
        (*GOOD, "xyzzy"),
        (*GOOD, "PROC"),
        (*GOOD, "--fsync"),
        (*GOOD, "--repeat=2"),
        (*GOOD, "--repeats=0"),
        (*GOOD, "--repeats=3000000000"),
        (*GOOD, "--repeats="),
        (*GOOD, "--repeats"),
        (*GOOD, "--seed=-1"),
        (*GOOD, "--seed=9223372036854775808"),
        (*GOOD, "--hint=foo"),
        (*GOOD, "--hint==foo"),
        (*GOOD, "--hint=foo="),
        (*GOOD, "--directory="),
        (*GOOD, "--result="),
        (*GOOD, "--read=yes"),
        (*GOOD, "--no-write"),
        (*GOOD, "--no-write", "--verify"),
        (*GOOD, "mpiio", "--files=3"),
        (*GOOD, "mpiio", "btio", "--every=3"),
        (*GOOD, "aligned", "--keep", "--min-seconds=1"),
        (*GOOD, "--max-seconds=0"),
        (*GOOD, f"--min-seconds={'9' * 400}"),
        (*GOOD, "--min-free=1P"),
        (*GOOD, "--hint=a=b\nc"),
        (*GOOD, "mpiio", "--writers=2"),
        # Options that could have no effect.
        (*GOOD, "strided", "btio", "--halo=0"),
        (*GOOD, "aligned", "--decomposition=slab"),
        (*GOOD, "proc", "--hint=cb_nodes=1"),
        (*GOOD, "strided-posix", "aligned", "--require-hints"),
        (*GOOD, "proc", "fsync", "--no-write", "--read"),
        (*GOOD, "proc", "--keep", "--no-write", "--read"),
        (*GOOD, "proc", "--min-free=1G", "--no-write", "--read"),
        (*GOOD, "snapshot", "--every=1", "--no-write", "--read"),
        (*GOOD, "snapshot", "--compute=0", "--no-write", "--read"),
        (*GOOD, "snapshot", "--exchange", "--no-write", "--read"),
        (*GOOD, "proc", "--cache=none"),
        (*GOOD, "proc", "--environment=HOME"),
        (*GOOD, "aligned", "--layout=table", "--files=1"),
        (*GOOD, "aligned", "--layout=table", "--stripe-size=1M"),
        (*GOOD, "aligned", "--layout=table", "--stripe-count=2"),
    ],
    ids=lambda words: " ".join(map(str, words))[:60],
)
def test_nonsense_is_refused_by_name(benchio, arguments, says):
    done = benchio.run_alone(*arguments)
    assert done.status == 2
    assert done.out == ""
    says(done)


def test_an_option_is_for_all_layers_if_it_acts_on_one(benchio):
    done = benchio.run(
        *GOOD, "proc", "mpiio", "strided", "unstriped", "--halo=0", "--decomposition=slab",
        "--hint=cb_nodes=1", ranks=2,
    )  # fmt: skip
    assert done.status == 0, done.err


@pytest.mark.parametrize(("sizes", "ranks"), [((8, 8, 9), 2), ((8, 7, 8), 4), ((8, 8, 2), 3)])
def test_sizes_that_do_not_divide(benchio, sizes, ranks, says):
    done = benchio.run(*sizes, "global", ranks=ranks)
    assert done.status == 2
    says(done)


def test_a_usage_error_is_said_once(benchio):
    done = benchio.run(*GOOD, "nonsense", ranks=3)
    assert done.status == 2
    assert len(done.messages) == 2
    assert "nonsense" in done.messages[0]


@pytest.mark.parametrize("arguments", [("--help",), (*GOOD, "--help"), ("x", "--help")])
def test_help(benchio, arguments):
    done = benchio.run_alone(*arguments)
    assert done.status == 0
    assert done.err == ""
    assert done.out.startswith("benchio N1 N2 N3 local|global")
    assert f"without one, {DEFAULTS}\n" in done.out
    assert benchio.layers() == LAYERS.split()
    # No longer than three screens, and no wider than a terminal.
    assert len(done.out.splitlines()) <= 72
    assert max(map(len, done.out.splitlines())) <= 90


def test_help_under_mpirun_is_printed_once(benchio):
    done = benchio.run("--help", ranks=3)
    assert done.status == 0
    assert done.out.count("local|global") == 1


def test_version(benchio):
    assert benchio.run_alone("--version").out == "benchio 1.0.0\n"


def test_words_may_stand_in_any_order_and_twice(benchio):
    done = benchio.run(
        *GOOD, "--repeats=2", "fsync", "mpiio", "--read", "unstriped", "proc", "proc", "unstriped",
        "--directory=striped", "--result=result.jsonl",
    )  # fmt: skip
    assert done.status == 0, done.err
    assert [
        (record["path"], record["operation"], record["repeat"]) for record in benchio.records()
    ] == [
        (f"{directory}/{name}.dat", operation, repeat)
        for name in ("proc000000", "mpiio")
        for directory in ("unstriped", "striped")
        for repeat in (1, 2)
        for operation in ("write", "read")
    ]


def test_everything_is_run_when_nothing_is_chosen(benchio):
    done = benchio.run(2, 2, 2, "local", "--result=result.jsonl", ranks=2)
    assert done.status == 0, done.err
    assert [(record["layer"], record["path"].split("/")[0]) for record in benchio.records()] == [
        (layer, directory)
        for layer in DEFAULTS.split()
        for directory in ("unstriped", "striped", "fullstriped")
    ]


def test_a_layer_that_was_not_compiled_in_is_absent(needs_tools, tmp_path):
    small = Benchio(build_kernel(tmp_path / "build", "-DBENCHIO_MPIIO=OFF", QUICKLY), tmp_path)
    assert not [name for name in small.layers() if name in ("mpiio", "mpiio-independent", "btio")]
    assert {"strided-posix", "aligned"} < set(small.layers())
    done = small.run_alone(*GOOD, "mpiio")
    assert done.status == 2
    assert {"mpiio", "serial", "proc", "node"} < set(done.messages[0].split())
    symbols = subprocess.run(["nm", small.program], capture_output=True, text=True, check=True)
    assert "layer_mpiio" not in symbols.stdout
