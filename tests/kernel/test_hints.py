"""Hints: three ways to set them, their precedence, and whether they are in effect.

MPICH reports correctly what is in effect. Open MPI 4 does not, so the system calls are checked.
"""

import re

import pytest

from tests.kernel.conftest import strace

RUN = (8, 8, 8, "local")
BUFFER = "cb_buffer_size"


@pytest.fixture
def ask(benchio_mpich):
    """Runs the two layers of the shared file; returns the run and each layer's hints in effect."""

    def run(*more, env=None, layers=("mpiio",)):
        done = benchio_mpich.run(
            *RUN, *layers, "unstriped", "--read", "--result=result.jsonl", *more, ranks=2, env=env
        )
        hints = {}
        for record in benchio_mpich.records():
            assert hints.setdefault(record["layer"], record["hints"]) == record["hints"]
        return done, hints

    return run


@pytest.fixture
def hints_file(benchio_mpich):
    path = benchio_mpich.cwd / "hints of romio"
    path.write_text("# a comment\nromio_ds_write disable\n\n  cb_buffer_size\t 1048576 \n")
    return path


def test_on_the_command_line(ask):
    done, hints = ask(f"--hint={BUFFER}=8388608", "--hint=romio_ds_write=enable", "--require-hints")
    assert done.status == 0, done.err
    assert hints["mpiio"][BUFFER] == "8388608"
    assert hints["mpiio"]["romio_ds_write"] == "enable"
    assert "hint" not in done.out


def test_a_file_of_romio_gives_way_to_the_command_line(ask, hints_file):
    env = {"ROMIO_HINTS": str(hints_file)}
    done, hints = ask("--require-hints", env=env)
    assert done.status == 0, done.err
    assert (hints["mpiio"][BUFFER], hints["mpiio"]["romio_ds_write"]) == ("1048576", "disable")
    done, hints = ask(f"--hint={BUFFER}=8388608", "--require-hints", env=env)
    assert done.status == 0, done.err
    assert (hints["mpiio"][BUFFER], hints["mpiio"]["romio_ds_write"]) == ("8388608", "disable")


def test_a_line_of_a_file_of_romio_has_any_length(ask, hints_file):
    with hints_file.open("w") as file:
        file.write(f"# {'comment ' * 1000}\r\n{' ' * 2000}{BUFFER}{' ' * 2000}1048576\r\n")
        file.write("romio_ds_write\tdisable")
    done, _ = ask("--require-hints", env={"ROMIO_HINTS": str(hints_file)})
    # ROMIO itself reads no more than 4 KiB of the file
    assert f"{BUFFER}=1048576 (in effect: 16777216), romio_ds_write=disable (in eff" in done.err


def test_mpich_mpiio_hints_come_first_where_their_pattern_fits(ask, hints_file):
    done, hints = ask(
        f"--hint={BUFFER}=8388608",
        "--hint=ind_wr_buffer_size=65536",
        "--require-hints",
        env={
            "ROMIO_HINTS": str(hints_file),
            "MPICH_MPIIO_HINTS": "*/mpiio.dat:cb_buffer_size=2097152:romio_cb_write=enable,"
            "*nowhere*:ind_wr_buffer_size=131072,unstriped/mpiio-ind*:romio_ds_write=enable",
        },
        layers=("mpiio", "mpiio-independent"),
    )
    assert done.status == 0, done.err
    assert "hint" not in done.out
    names = (BUFFER, "romio_cb_write", "ind_wr_buffer_size", "romio_ds_write")
    assert {layer: [found[name] for name in names] for layer, found in hints.items()} == {
        "mpiio": ["2097152", "enable", "65536", "disable"],
        "mpiio-independent": ["8388608", "automatic", "65536", "enable"],
    }


def test_of_two_with_one_key_the_later_counts(ask):
    done, hints = ask(f"--hint={BUFFER}=1048576", f"--hint={BUFFER}=2097152", "--require-hints")
    assert done.status == 0, done.err
    assert hints["mpiio"][BUFFER] == "2097152"
    done, hints = ask(
        "--require-hints",
        env={"MPICH_MPIIO_HINTS": f"*:{BUFFER}=2097152,*mpiio.dat:{BUFFER}=3145728"},
    )
    assert done.status == 0, done.err
    assert hints["mpiio"][BUFFER] == "3145728"


def test_one_that_is_not_in_effect_is_said_once(ask, says):
    done, hints = ask("--hint=cb_nodes=77", "--repeats=3")
    assert done.status == 0, done.err
    assert hints["mpiio"]["cb_nodes"] == "1"
    says(done)
    done, _ = ask("--hint=no_such_hint=1", "--hint=nor_this=2")
    says(done)


def test_one_that_is_not_in_effect_fails_where_that_is_asked(ask, benchio_mpich, says):
    done, hints = ask("--hint=cb_nodes=77", "--require-hints")
    assert done.status == 1
    says(done)
    assert hints == {}
    assert "rate" not in done.out
    assert list((benchio_mpich.cwd / "unstriped").iterdir()) == []
    # A layer without MPI-IO takes none.
    done, _ = ask("--hint=cb_nodes=1", "--require-hints", layers=("proc", "mpiio"))
    assert done.status == 1
    says(done)


@pytest.mark.parametrize("io", ["ompio", "romio321"])
def test_an_echo_is_no_proof(benchio, io, says):
    done = benchio.run(
        *RUN, "mpiio", "unstriped", f"--hint={BUFFER}=1048576", "--result=result.jsonl",
        "--repeats=2", env={"OMPI_MCA_io": io},
    )  # fmt: skip
    if "Open MPI v4" not in benchio.records()[0]["mpi_library"]:
        pytest.skip("this is about Open MPI 4")
    assert [record["hints"] for record in benchio.records()] == [{}, {}]
    says(done)
    done = benchio.run(
        *RUN, "mpiio", "unstriped", f"--hint={BUFFER}=1048576", "--require-hints",
        "--result=result.jsonl", env={"OMPI_MCA_io": io},
    )  # fmt: skip
    assert done.status == 1
    says(done)
    assert benchio.records() == []


def test_all_three_reach_the_library_that_does_not_tell(benchio):
    (benchio.cwd / "hints").write_text(f"{BUFFER} 65536\nromio_cb_write enable\n")

    def written(*more, **env):
        # 2 MiB by one process.
        benchio.run(
            64, 64, 64, "local", "mpiio", "unstriped", *more,
            env={"OMPI_MCA_io": "romio321", **env},
            wrapper=strace("pwrite64,write", "-y", "-o", "trace"),
        )  # fmt: skip
        sizes = re.findall(r"mpiio\.dat>.* = (\d+)\n", (benchio.cwd / "trace").read_text())
        return set(map(int, sizes))

    assert max(written()) > 65536
    assert written(f"--hint={BUFFER}=65536", "--hint=romio_cb_write=enable") == {65536}
    assert written(ROMIO_HINTS="hints") == {65536}
    hints = f"*.dat:{BUFFER}=65536:romio_cb_write=enable"
    assert written(MPICH_MPIIO_HINTS=hints) == {65536}


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        *(("ROMIO_HINTS", value) for value in ("no such file", "unstriped", "lone key", "blank")),
        *(
            ("MPICH_MPIIO_HINTS", value)
            for value in (
                *("cb_nodes=1", "*:cb_nodes", "*:cb_nodes=", "*:=1", "*:", ":cb_nodes=1"),
                "*:cb_nodes=1,x",
            )
        ),
    ],
)
def test_hints_that_make_no_sense_stop_the_run_before_any_io(benchio, variable, value, says):
    (benchio.cwd / "lone key").write_text("cb_nodes\n")
    (benchio.cwd / "blank").write_text("cb_nodes 1 # one\n")
    done = benchio.run(*RUN, "mpiio", "proc", "unstriped", "--keep", env={variable: value})
    assert done.status == 1
    says(done)
    assert list((benchio.cwd / "unstriped").iterdir()) == []
