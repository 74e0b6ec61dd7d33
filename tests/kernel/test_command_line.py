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
    ("arguments", "message"),
    [
        ((), "N1 N2 N3 and local or global must be given"),
        ((4, 4, 4), "N1 N2 N3 and local or global must be given"),
        ((0, 4, 4, "local"), "N1 must be a whole number"),
        ((4, -4, 4, "local"), "N2 must be a whole number"),
        ((4, 4, "4x", "local"), "N3 must be a whole number from 1 to 2**63 - 1, and not '4x'"),
        ((4, "1,2", 4, "local"), "and not '1,2'"),
        ((4, "", 4, "local"), "and not ''"),
        ((4, 4.0, 4, "local"), "and not '4.0'"),
        ((2**63, 4, 4, "local"), "N1 must be a whole number"),
        ((2**31, 4, 4, "local"), "N1=2147483648 is too large"),
        ((2**22, 2**22, 2**22, "local"), "bytes cannot be counted in 64 bits"),
        ((4, 4, 4, "locale"), "must be local or global, and not 'locale'"),
        ((4, 4, 4, "proc"), "must be local or global, and not 'proc'"),
        ((*GOOD, "serail"), "unknown argument 'serail'; did you mean serial?"),
        ((*GOOD, "fsync", "mpiioo"), "unknown argument 'mpiioo'; did you mean mpiio?"),
        ((*GOOD, "fsync", "fsycn"), "unknown argument 'fsycn'; did you mean fsync?"),
        ((*GOOD, "unstripped"), "unknown argument 'unstripped'; did you mean unstriped?"),
        ((*GOOD, "serial "), "unknown argument 'serial '"),
        ((*GOOD, "--read "), "unknown argument '--read '"),
        ((*GOOD, ""), "unknown argument ''"),
        ((*GOOD, "xyzzy"), "unknown argument 'xyzzy'"),
        ((*GOOD, "PROC"), "unknown argument 'PROC'"),
        ((*GOOD, "--fsync"), "unknown argument '--fsync'"),
        ((*GOOD, "--repeat=2"), "unknown argument '--repeat'; did you mean --repeats?"),
        ((*GOOD, "--repeats=0"), "--repeats must be a whole number from 1"),
        ((*GOOD, "--repeats=3000000000"), "--repeats must be a whole number from 1"),
        ((*GOOD, "--repeats="), "--repeats needs a value"),
        ((*GOOD, "--repeats"), "--repeats needs a value"),
        ((*GOOD, "--seed=-1"), "--seed must be a whole number from 0 to 2**63 - 1, and not '-1'"),
        ((*GOOD, "--seed=9223372036854775808"), "--seed must be a whole number"),
        ((*GOOD, "--hint=foo"), "--hint must be --hint=KEY=VALUE"),
        ((*GOOD, "--hint==foo"), "--hint must be --hint=KEY=VALUE"),
        ((*GOOD, "--hint=foo="), "--hint must be --hint=KEY=VALUE"),
        ((*GOOD, "--directory="), "--directory needs a value"),
        ((*GOOD, "--result="), "--result needs a value"),
        ((*GOOD, "--read=yes"), "--read takes no value"),
        ((*GOOD, "--no-write"), "--no-write leaves nothing to do"),
        ((*GOOD, "--no-write", "--verify"), "--verify with --no-write needs --seed=N"),
        ((*GOOD, "mpiio", "--files=3"), "--files does not apply to mpiio"),
        ((*GOOD, "mpiio", "btio", "--every=3"), "--every does not apply to mpiio btio"),
        (
            (*GOOD, "aligned", "--keep", "--min-seconds=1"),
            "--keep with --min-seconds does not apply to aligned",
        ),
        ((*GOOD, "--max-seconds=0"), "--max-seconds must be more than 0"),
        ((*GOOD, f"--min-seconds={'9' * 400}"), "--min-seconds must be a number of seconds"),
        ((*GOOD, "--min-free=1P"), "--min-free must be a number of bytes"),
        ((*GOOD, "--hint=a=b\nc"), "--hint must be --hint=KEY=VALUE"),
        ((*GOOD, "mpiio", "--writers=2"), "--writers=2 is more than the 1 processes"),
    ],
    ids=str,
)
def test_nonsense_is_refused_by_name(benchio, arguments, message):
    done = benchio.run_alone(*arguments)
    assert done.status == 2
    assert message in done.messages[0]
    assert done.out == ""


@pytest.mark.parametrize(
    ("sizes", "ranks", "message"),
    [
        ((8, 8, 9), 2, "N3=9 cannot be divided among the 2 processes on axis 3; 8 or 10 would do"),
        ((8, 7, 8), 4, "N2=7 cannot be divided among the 2 processes on axis 2; 6 or 8 would do"),
        ((8, 8, 2), 3, "N3=2 cannot be divided among the 3 processes on axis 3; 3 would do"),
    ],
)
def test_sizes_that_do_not_divide(benchio, sizes, ranks, message):
    done = benchio.run(*sizes, "global", ranks=ranks)
    assert done.status == 2
    assert done.messages[0] == message
    assert done.err.count("cannot be divided") == 1


def test_a_usage_error_is_said_once(benchio):
    done = benchio.run(*GOOD, "nonsense", ranks=3)
    assert done.status == 2
    assert done.err.count("unknown argument") == 1


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
    assert benchio.run_alone("--version").out == "benchio 0.1.0\n"


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
    small = Benchio(build_kernel(tmp_path / "build", "-DBENCHIO_MPIIO=OFF", *QUICKLY), tmp_path)
    assert not [name for name in small.layers() if name in ("mpiio", "mpiio-independent", "btio")]
    assert {"strided-posix", "aligned"} < set(small.layers())
    done = small.run_alone(*GOOD, "mpiio")
    assert done.status == 2
    assert done.messages[0].startswith("mpiio was not compiled in; there are: serial proc node")
    symbols = subprocess.run(["nm", small.program], capture_output=True, text=True, check=True)
    assert "layer_mpiio" not in symbols.stdout
