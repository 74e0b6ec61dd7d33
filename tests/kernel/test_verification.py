"""Verification detects changed files, in every layer."""

import shutil

import pytest

from tests.kernel.conftest import Benchio

SEED = 42
LAYERS = {"serial": "serial", "proc": "proc000001", "node": "node000000", "mpiio": "mpiio"}
SHAPE = (4, 6, 8)  # two ranks: blocks of (4, 6, 4), 96 elements


@pytest.fixture(scope="module")
def kept_files(kernel_build, tmp_path_factory):
    """The files of every layer, as a run kept them."""
    where = tmp_path_factory.mktemp("kept")
    (where / "unstriped").mkdir()
    done = Benchio(kernel_build, where).run(
        *SHAPE, "global", "unstriped", f"--seed={SEED}", "--keep", ranks=2
    )
    assert done.status == 0, done.err
    return where / "unstriped"


@pytest.fixture(params=LAYERS)
def kept(request, benchio, kept_files):
    """A layer, and a copy of its file with the second rank's data, to be changed."""
    shutil.copytree(kept_files, benchio.cwd / "unstriped", dirs_exist_ok=True)
    return request.param, benchio.cwd / "unstriped" / f"{LAYERS[request.param]}.dat"


def read_back(benchio, layer, *more, ranks=2, seed=SEED):
    return benchio.run(
        *SHAPE,
        "global",
        layer,
        "unstriped",
        "--no-write",
        "--verify",
        f"--seed={seed}",
        "--result=result.jsonl",
        *more,
        ranks=ranks,
    )


def refused(benchio, done):
    assert done.status == 1
    assert "rate" not in done.out
    assert "Finished" not in done.out
    assert benchio.records() == []
    return done.messages


def test_files_as_they_were_kept_pass_and_stay(benchio, kept):
    layer, path = kept
    done = read_back(benchio, layer)
    assert done.status == 0, done.err
    (record,) = benchio.records()
    assert record["operation"] == "read"
    assert record["verified_bytes"] == record["bytes"] == 4 * 6 * 8 * 8
    assert path.exists()


def test_a_corrupted_byte_is_found_and_named(benchio, kept):
    layer, path = kept
    data = bytearray(path.read_bytes())
    # Element 100 of the whole array: the 5th of the second rank.
    at = (4 if layer == "proc" else 100) * 8 + 3
    data[at] ^= 1
    path.write_bytes(data)
    message = refused(benchio, read_back(benchio, layer))[0]
    expected = int.from_bytes(data[at - 3 : at + 5], "little", signed=True)
    assert message.startswith("rank 1 on host ")
    assert f"unstriped/{path.name} failed: at byte {at - 3}, element 100 of" in message
    assert f"found {expected}; 1 elements differ" in message
    assert path.exists()


def test_a_truncated_file_is_refused(benchio, kept):
    layer, path = kept
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.truncate(size - 5)
    message = refused(benchio, read_back(benchio, layer))[0]
    assert f"{path.name} has {size - 5} bytes and should have {size}" in message


def test_a_file_with_more_bytes_is_refused(benchio, kept):
    layer, path = kept
    with path.open("ab") as file:
        file.write(b"more")
    assert "and should have" in refused(benchio, read_back(benchio, layer))[0]


def test_swapped_blocks_are_found(benchio, kept):
    layer, path = kept
    if layer == "proc":
        other = path.with_name("proc000000.dat")
        first, second = other.read_bytes(), path.read_bytes()
        other.write_bytes(second)
        path.write_bytes(first)
    else:
        data = path.read_bytes()
        path.write_bytes(data[len(data) // 2 :] + data[: len(data) // 2])
    messages = refused(benchio, read_back(benchio, layer))
    assert "192 elements differ" in messages[0]
    assert messages[1] == "and on 1 other ranks"


@pytest.mark.parametrize("seed", [0, SEED + 1])
def test_the_data_of_another_run_are_found(benchio, kept, seed):
    messages = refused(benchio, read_back(benchio, kept[0], seed=seed))
    assert "192 elements differ" in messages[0]


def test_a_missing_file_is_named(benchio, kept):
    layer, path = kept
    path.unlink()
    message = refused(benchio, read_back(benchio, layer))[0]
    assert f"unstriped/{path.name} failed: No such file or directory (errno 2)" in message


def test_a_hole_of_the_right_size_is_found(benchio):
    # Large enough for a file system to leave a hole, and not verified.
    arguments = (64, 64, 64, "local", "mpiio", "unstriped", "--keep")
    assert benchio.run(*arguments).status == 0
    path = benchio.cwd / "unstriped/mpiio.dat"
    data = path.read_bytes()
    with path.open("wb") as file:
        file.write(data[:65536])
        file.seek(1048576)
        file.write(data[1048576:])
    assert path.stat().st_size == len(data)
    if path.stat().st_blocks * 512 >= len(data):
        pytest.skip("the file system makes no holes")
    done = benchio.run(*arguments, "--no-write", "--read")
    assert done.status == 1
    assert "has a hole: nothing was written at byte 65536" in done.messages[0]
