"""Files that benchio must not touch, and paths that libraries misread."""

import os

import pytest

RUN = (4, 4, 4, "local")
SHARED = ("mpiio", "mpiio-independent", "netcdf", "hdf5", "snapshot", "btio", "strided")


@pytest.mark.parametrize("name", [" x", "ufs:x"])
def test_directories_whose_names_libraries_cut(benchio, name):
    """Some libraries drop blanks or a prefix, and would write to the directory x."""
    (benchio.cwd / name).mkdir()
    (benchio.cwd / "x").mkdir()
    for layer in SHARED:
        (benchio.cwd / f"x/{layer}.dat").write_text("precious")
    done = benchio.run(*RUN, *SHARED, f"--directory={name}", "--verify", "--compute=0")
    assert done.status == 0, done.err
    assert {path.read_text() for path in (benchio.cwd / "x").iterdir()} == {"precious"}
    assert list((benchio.cwd / name).iterdir()) == []


def test_pnetcdf_and_colons(benchio, says):
    (benchio.cwd / "a:b").mkdir()
    done = benchio.run(*RUN, "pnetcdf", "--directory=a:b")
    assert done.status == 1
    says(done)


def test_figures_do_not_go_among_the_data(benchio, says):
    done = benchio.run(*RUN, "proc", "unstriped", "--result=unstriped/proc000001.dat", ranks=2)
    assert done.status == 1
    says(done)
    assert "rate" not in done.out


def test_figures_do_not_go_among_the_data_of_many_files(benchio, says):
    (benchio.cwd / "second").touch()
    (benchio.cwd / "table").write_text(f"{benchio.cwd}/first 1048576 0\nsecond 1048576 1\n")
    (benchio.cwd / "first").touch()
    for more in (
        ("unstriped", "--files=3", "--result=unstriped/aligned000001.dat"),
        ("--layout=table", "--ranks=second"),
    ):
        done = benchio.run(*RUN, "aligned", *more)
        assert done.status == 1
        says(done)
        assert "rate" not in done.out


def test_figures_and_tables_have_files_of_their_own(benchio, says):
    table = benchio.cwd / "table"
    table.write_text("data 1048576 0\n")
    for more in (
        ("--result=table", "--layout=table"),
        ("--ranks=table", "--layout=table"),
        ("--result=r", "--ranks=r", "--layout=table"),
    ):
        done = benchio.run(*RUN, "aligned", *more)
        assert done.status == 2
        says(done)
    assert table.read_text() == "data 1048576 0\n"


def test_results_of_an_earlier_run_outlive_a_command_line_that_makes_no_sense(benchio):
    results = benchio.cwd / "result.jsonl"
    results.write_text("old\n")
    done = benchio.run(*RUN, "mpiio", "unstriped", "--writers=3", "--result=result.jsonl", ranks=4)
    assert done.status == 2
    assert results.read_text() == "old\n"


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--result=r", "--ranks=./r"), "r and ./r are the same file"),
        (("--result=./table", "--layout=table"), "./table and table are the same file"),
        (("--ranks=link", "--layout=table"), "link and table are the same file"),
    ],
)
def test_figures_and_tables_are_told_apart_by_their_files(benchio, more, message):
    table = benchio.cwd / "table"
    table.write_text("data 1048576 0\n")
    (benchio.cwd / "link").hardlink_to(table)
    (benchio.cwd / "data").touch()
    layer = "aligned" if "--layout=table" in more else "proc"
    where = () if layer == "aligned" else ("unstriped",)
    done = benchio.run(*RUN, layer, *where, *more)
    assert done.status == 1
    assert message in done.messages[0]
    assert table.read_text() == "data 1048576 0\n"


def test_figures_of_a_read_do_not_replace_the_data(benchio):
    arguments = (*RUN, "proc", "unstriped", "--seed=7")
    assert benchio.run(*arguments, "--keep", ranks=2).status == 0
    data = benchio.cwd / "unstriped/proc000001.dat"
    before = data.read_bytes()
    for option in ("--result", "--ranks"):
        done = benchio.run(
            *arguments, "--no-write", "--verify", f"{option}=unstriped/../{data.parent.name}/"
            f"{data.name}", ranks=2,
        )  # fmt: skip
        assert done.status == 1
        assert "is requested for results, but is a data file of the layer proc" in done.messages[0]
        assert data.read_bytes() == before


def test_figures_of_a_read_do_not_replace_the_data_of_a_later_layer(benchio):
    arguments = (*RUN, "serial", "proc", "unstriped", "striped", "--seed=7")
    assert benchio.run(*arguments, "--keep", ranks=2).status == 0
    data = benchio.cwd / "striped/proc000001.dat"
    before = data.read_bytes()
    for option in ("--result", "--ranks"):
        done = benchio.run(
            *arguments, "--no-write", "--verify", f"{option}=striped/proc000001.dat", ranks=2
        )
        assert done.status == 1
        assert "is requested for results, but is a data file of the layer proc" in done.messages[0]
        assert "rate" not in done.out
        assert data.read_bytes() == before


@pytest.mark.parametrize("option", ["--result", "--ranks"])
def test_a_refused_run_leaves_no_file_of_figures(benchio, option):
    for path in ("unstriped/proc000000.dat", "unstriped/../unstriped/proc000001.dat"):
        done = benchio.run(*RUN, "proc", "unstriped", f"{option}={path}", ranks=2)
        assert done.status == 1
        assert "is requested for results, but is a data file of the layer proc" in done.messages[0]
    done = benchio.run(*RUN, "proc", "unstriped", "--result=new", "--ranks=no such/directory")
    assert (done.status, len(done.messages)) == (1, 1)
    done = benchio.run(*RUN, "proc", "unstriped", "--result=new", "--ranks=./new")
    assert (done.status, len(done.messages)) == (1, 1)
    assert not [path for path in benchio.cwd.rglob("*") if path.is_file()]


@pytest.mark.parametrize("where", ["/dev/stdout", "/dev/stderr", "/dev/full", "/dev/null", "."])
@pytest.mark.parametrize("option", ["--result", "--ranks"])
def test_figures_need_a_file_of_their_own_before_anything_is_measured(benchio, option, where):
    done = benchio.run(*RUN, "proc", "unstriped", f"{option}={where}")
    assert done.status == 1
    assert done.messages == [f"rank 0 on host {os.uname().nodename}: {where} is not a regular file"]
    assert "rate" not in done.out
