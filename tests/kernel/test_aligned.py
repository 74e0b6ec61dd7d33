"""The pattern aligned: the stripes of one or many files, and their assignment to ranks."""

import re
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest

from tests.kernel.conftest import injecting, strace
from tests.kernel.reference import values
from tests.kernel.test_caches import is_in_memory

LAYERS = ["aligned", "aligned-single", "aligned-files", "aligned-random"]
SEED = 23
RANKS = 3


def contents(elements: int, files: int, seed: int = SEED) -> list[bytes]:
    """What each of the files must hold: the elements, divided evenly."""
    least, more = divmod(elements, files)
    counts = [least + (file < more) for file in range(files)]
    starts = np.cumsum([0, *counts])
    return [values(np.arange(*ends), seed).tobytes() for ends in pairwise(starts)]


def make_table(benchio, lines, name="layout.txt"):
    """A table, and its files, empty."""
    (benchio.cwd / name).write_text("# path stripe_size target ...\n\n" + "\n".join(lines) + "\n")
    paths = [benchio.cwd / line.split()[0] for line in lines]
    for path in paths:
        path.parent.mkdir(exist_ok=True)
        path.touch()
    return paths


@pytest.mark.parametrize(("files", "stripe"), [(1, 100), (5, 64), (7, 1048576)])
def test_every_scheme_makes_the_same_files(benchio, files, stripe):
    done = benchio.run(
        7, 5, 3, "local", *LAYERS, "unstriped", "--verify", "--keep", f"--seed={SEED}",
        f"--files={files}", f"--stripe-size={stripe}", "--stripe-count=2",
        "--result=result.jsonl", ranks=RANKS,
    )  # fmt: skip
    assert done.status == 0, done.err
    elements = 7 * 5 * 3 * RANKS
    for layer in LAYERS:
        names = (
            [f"{layer}{file:06}.dat" for file in range(files)] if files > 1 else [f"{layer}.dat"]
        )
        found = [(benchio.cwd / "unstriped" / name).read_bytes() for name in names]
        assert found == contents(elements, files)
    records = benchio.records()
    assert len(records) == 2 * len(LAYERS)
    for line in records:
        assert line["bytes"] == line["verified_bytes"] == elements * 8
        assert line["pattern"] == line["layer"]
        assert (line["interface"], line["files"]) == ("posix", files)
    writers = {line["layer"]: line["writers"] for line in records}
    assert writers["aligned-single"] == 1
    assert writers["aligned-random"] == RANKS


def test_files_are_removed_and_repeats_write_over_them(benchio):
    done = benchio.run(
        100, 1, 1, "local", "aligned", "unstriped", "--files=2", "--repeats=3", "--verify",
        "--result=result.jsonl",
        wrapper=strace("openat,unlink,truncate,pwritev", "-y", "-o", "trace"),
    )  # fmt: skip
    assert done.status == 0, done.err
    lines = benchio.records()
    assert [(line["operation"], line["repeat"]) for line in lines] == [
        (operation, repeat) for repeat in (1, 2, 3) for operation in ("write", "read")
    ]
    trace = (benchio.cwd / "trace").read_text()
    assert len(re.findall(r"pwritev\(\d+<[^>]*/aligned", trace)) == 3 * 2
    assert len(re.findall(r"unlink\(\"unstriped/aligned.*= 0", trace)) == 2
    assert not re.search(r"truncate\(", trace)
    assert not re.search(r"unstriped/aligned.*O_TRUNC", trace)
    assert list((benchio.cwd / "unstriped").iterdir()) == []


def test_a_table_says_where_the_files_are_and_they_stay_empty(benchio):
    lines = ["elsewhere/a 64 3 1", "elsewhere/b\t128  2", f"{benchio.cwd}/elsewhere/c 1048576 9"]
    paths = make_table(benchio, lines)
    arguments = (50, 1, 1, "global", f"--seed={SEED}", "--layout=layout.txt", "--verify")
    done = benchio.run(*arguments, *LAYERS, "--result=result.jsonl", "--repeats=2", ranks=RANKS)
    assert done.status == 0, done.err
    assert len(benchio.records()) == 2 * 2 * len(LAYERS)
    assert {line["path"] for line in benchio.records()} == {"elsewhere/a"}
    assert {line["files"] for line in benchio.records()} == {3}
    assert [path.stat().st_size for path in paths] == [0, 0, 0]

    # What one layer has written, another reads.
    done = benchio.run(*arguments, "aligned-random", "--keep", ranks=RANKS)
    assert done.status == 0, done.err
    assert [path.read_bytes() for path in paths] == contents(50, 3)
    done = benchio.run(*arguments, "aligned-single", "aligned", "--no-write", ranks=2)
    assert done.status == 0, done.err
    assert [path.read_bytes() for path in paths] == contents(50, 3)


@pytest.mark.parametrize("layer", LAYERS)
def test_no_data_of_others_are_ever_written_over(benchio, layer):
    paths = make_table(benchio, ["one 64 0", "two 64 1", "three 64 2"])
    paths[1].write_bytes(b"precious")
    done = benchio.run(50, 1, 1, "global", layer, "--layout=layout.txt", ranks=2)
    assert done.status == 1
    assert done.messages == [
        done.messages[0][: done.messages[0].index(":") + 2]
        + "two has 8 bytes: a file of the table must be empty before it is written to"
    ]
    assert [path.read_bytes() for path in paths] == [b"", b"precious", b""]
    assert "rate" not in done.out


def test_files_that_are_none(benchio):
    def refused(*more):
        done = benchio.run_alone(50, 1, 1, "global", "aligned", "--layout=layout.txt", *more)
        assert done.status in {1, 2}
        assert "rate" not in done.out
        return done.status, done.messages[0]

    status, message = refused()
    assert status == 1
    assert "stat of layout.txt failed: No such file or directory" in message
    make_table(benchio, ["unstriped/a 64 0"])
    (benchio.cwd / "unstriped/a").unlink()
    assert "stat of unstriped/a failed: No such file or directory" in refused()[1]
    assert list((benchio.cwd / "unstriped").iterdir()) == []
    (benchio.cwd / "unstriped/a").mkdir()
    assert "unstriped/a is not a regular file" in refused()[1]
    assert refused("striped") == (
        2,
        "--layout names the files; a directory such as striped cannot be given",
    )
    assert refused("proc") == (2, "--layout does not apply to proc")
    assert refused("--files=3") == (
        2,
        "--layout defines the number of files; --files cannot be given",
    )


def _touched(benchio, layer, calls, *more, ranks, preload=()):
    """The calls of each rank, as (path, offset, bytes)."""
    watch = strace("pwritev,preadv,fsync", "-y", "-o", "trace.$OMPI_COMM_WORLD_RANK")
    script = f'exec {" ".join(watch)} "$@"'
    done = benchio.run(
        *more, layer, f"--seed={SEED}", ranks=ranks, wrapper=["sh", "-c", script, "sh", *preload]
    )
    assert done.status == 0, done.err
    pattern = rf"(?:{calls})\(\d+<([^>]*)>, .*, (\d+)\) += (\d+)"
    return [
        [
            (path, int(offset), int(count))
            for path, offset, count in re.findall(
                pattern, (benchio.cwd / f"trace.{rank}").read_text()
            )
            if "/files/" in path
        ]
        for rank in range(ranks)
    ]


def test_a_target_is_touched_from_one_node_only(benchio, preloaded):
    nodes = [0, 1, 1, 0, 0]
    lines = ["files/a 64 4 5 6 7", "files/b 128 7", "files/c 256 6 5"]
    paths = make_table(benchio, lines)
    layout = {
        str(path): (int(line.split()[1]), [int(word) for word in line.split()[2:]])
        for path, line in zip(paths, lines, strict=True)
    }
    sizes = [len(content) for content in contents(500, 3)]
    wanted = {
        (str(path), at, min(layout[str(path)][0], size - at))
        for path, size in zip(paths, sizes, strict=True)
        for at in range(0, size, layout[str(path)][0])
    }
    seen_on = {}
    for layer in LAYERS:
        for calls in ("pwritev", "preadv"):
            by_rank = _touched(
                benchio, layer, calls, 500, 1, 1, "global", "--layout=layout.txt", "--verify",
                ranks=5, preload=preloaded("two_nodes"),
            )  # fmt: skip
            everything = [call for calls in by_rank for call in calls]
            assert len(everything) == len(wanted)
            assert set(everything) == wanted, layer
            seen_on[layer] = {}
            for node, calls_of_rank in zip(nodes, by_rank, strict=True):
                for path, offset, _ in calls_of_rank:
                    stripe, targets = layout[path]
                    target = targets[offset // stripe % len(targets)]
                    seen_on[layer].setdefault(target, set()).add(node)
            if layer == "aligned-single":
                assert [bool(calls) for calls in by_rank] == [True] + [False] * 4
            elif layer == "aligned-files":
                # each file by one process, and no process more than one: 3 files, 5 processes
                own = [{path for path, _, _ in calls} for calls in by_rank]
                assert sorted(map(len, own)) == [0, 0, 1, 1, 1]
                assert set.union(*own) == set(layout)
            else:
                assert all(by_rank)
    assert all(len(places) == 1 for places in seen_on["aligned"].values())
    assert set.union(*seen_on["aligned"].values()) == {0, 1}
    assert all(len(places) == 2 for places in seen_on["aligned-random"].values())


def test_each_process_syncs_each_of_its_files_once(benchio):
    make_table(benchio, [f"files/{number:03} 64 {number % 3} {number % 2}" for number in range(9)])
    for layer in LAYERS:
        by_rank = _touched(
            benchio, layer, "pwritev", 400, 1, 1, "global", "--layout=layout.txt", "fsync",
            "--result=result.jsonl", ranks=RANKS,
        )  # fmt: skip
        assert benchio.records()[0]["fsync"]
        for rank, calls in enumerate(by_rank):
            trace = (benchio.cwd / f"trace.{rank}").read_text()
            synced = Counter(re.findall(r"fsync\(\d+<([^>]*/files/[^>]*)>\) += 0", trace))
            assert synced == Counter({path for path, _, _ in calls}), (layer, rank)


def test_more_files_than_may_be_open(benchio):
    watch = " ".join(strace("fsync", "-y", "-o", "trace"))
    limit = f'ulimit -n 400; exec {watch} "$@"'
    done = benchio.run(
        10, 60, 1, "local", "aligned-single", "unstriped", "--files=600", "fsync", "--verify",
        "--keep", f"--seed={SEED}", wrapper=["sh", "-c", limit, "sh"],
    )  # fmt: skip
    assert done.status == 0, done.err
    found = [path.read_bytes() for path in sorted((benchio.cwd / "unstriped").iterdir())]
    assert found == contents(600, 600)
    trace = (benchio.cwd / "trace").read_text()
    synced = re.findall(r"fsync\(\d+<[^>]*(aligned-single\d+)\.dat>\) += 0", trace)
    # Before the read the pages are dropped, which syncs each file again.
    assert set(Counter(synced).values()) == {2}
    assert len(set(synced)) == 600


def test_more_than_the_memory_holds_goes_round_by_round(benchio):
    # 280 MiB in stripes of 270 MiB, which exceed the memory: pieces of 256, 14 and 10 MiB; the
    # other process has none.
    arguments = (
        2**20 * 35, 1, 1, "global", "aligned-single", "unstriped", f"--seed={SEED}",
        "--stripe-size=270M", "--cache=none",
    )  # fmt: skip
    done = benchio.run(*arguments, "--verify", "--keep", "--result=result.jsonl", ranks=2)
    assert done.status == 0, done.err
    assert [line["verified_bytes"] for line in benchio.records()] == [280 * 2**20] * 2
    path = benchio.cwd / "unstriped/aligned-single.dat"
    at = 260 * 2**20 + 1
    with path.open("r+b") as file:
        file.seek(at)
        byte = file.read(1)[0]
        assert byte == values([at // 8], SEED).tobytes()[1]
        file.seek(at)
        file.write(bytes([byte ^ 4]))
    done = benchio.run(*arguments, "--no-write", "--verify", ranks=2)
    path.unlink()
    assert done.status == 1
    assert f"at byte {at}, element {at // 8} of" in done.messages[0]


def test_corrupted_swapped_and_truncated_files_are_named(benchio):
    arguments = (
        20, 1, 1, "local", "aligned", "unstriped", "--files=2", "--stripe-size=48",
        f"--seed={SEED}",
    )  # fmt: skip
    assert benchio.run(*arguments, "--keep", ranks=2).status == 0
    paths = [benchio.cwd / f"unstriped/aligned00000{file}.dat" for file in range(2)]
    whole = [path.read_bytes() for path in paths]

    def read_back(*found):
        for path, content in zip(paths, found, strict=True):
            path.write_bytes(content)
        done = benchio.run(*arguments, "--no-write", "--verify", ranks=2)
        assert done.status == 1
        return done.messages[0]

    data = bytearray(whole[1])
    data[50] ^= 16
    # Two files of 20 elements in four stripes each, on one node: each rank has one.
    message = read_back(whole[0], data)
    assert message.startswith("rank 1 on host ")
    assert "unstriped/aligned000001.dat failed: at byte 50, element 26 of" in message
    expected = int.from_bytes(whole[1][48:56], "little", signed=True)
    assert f"expected {expected} and found {expected ^ 16 << 16}; 1 elements differ" in message
    assert "; 40 elements differ" in read_back(whole[1], whole[0])
    message = read_back(whole[0], whole[1][:-8])
    assert "aligned000001.dat has 152 bytes and should have 160" in message


def test_a_read_that_reads_nothing_is_not_verified(benchio):
    done = benchio.run(
        40, 1, 1, "local", "aligned", "unstriped", "--stripe-size=64", "--verify",
        wrapper=injecting("preadv", "retval=64"),
    )  # fmt: skip
    assert done.status == 1
    assert "40 elements differ" in done.messages[0]
    assert "rate" not in done.out


def test_files_of_which_one_cannot_be_read_with_o_direct(benchio):
    """As in a table of files on two file systems, with stripes that O_DIRECT alone cannot read."""
    if is_in_memory(benchio.cwd):
        pytest.skip("the file system is in memory")
    # Opened to write, to check, to flush, to drop and to count its pages, and to read.
    wrapper = injecting("openat", "error=EINVAL:when=7", "-P", "unstriped/aligned000001.dat")
    done = benchio.run(
        40, 1, 1, "local", "aligned", "unstriped", "--files=2", "--verify", "--cache=direct",
        "--result=result.jsonl", wrapper=wrapper,
    )  # fmt: skip
    assert done.status == 0, done.err
    assert [record["cache"] for record in benchio.records()] == [None, "dropped"]


@pytest.mark.parametrize("layer", LAYERS)
def test_a_full_device(benchio, tiny_file_system, layer):
    more = [50000, 1, 1, "local", layer, "--result=result.jsonl", "--keep"]
    done = benchio.run(
        *more, "--files=4", "--stripe-size=4K", f"--directory={tiny_file_system}", ranks=RANKS
    )
    assert done.status == 1
    assert re.search(r"write of .*/tiny/.* failed: No space left on device", done.messages[0])
    assert "rate" not in done.out
    assert benchio.records() == []
    assert list(tiny_file_system.iterdir()) == []

    paths = make_table(benchio, [f"{tiny_file_system}/{name} 4096 {name}" for name in range(4)])
    done = benchio.run(*more, "--layout=layout.txt", ranks=RANKS)
    assert done.status == 1
    assert "No space left on device" in done.messages[0]
    assert [path.stat().st_size for path in paths] == [0] * 4
    done = benchio.run(*more, "--layout=layout.txt", "--min-free=1", ranks=RANKS)
    assert "bytes free" in done.messages[0]


def test_a_missing_directory(benchio):
    done = benchio.run(50, 1, 1, "local", "aligned", "--directory=nowhere", ranks=2)
    assert done.status == 1
    assert "open of nowhere/aligned.dat failed: No such file or directory" in done.messages[0]
    assert "does the directory exist and may you write there?" in done.messages[0]


@pytest.mark.parametrize("cache", ["direct", "shift"])
def test_reads_that_cannot_come_from_memory(benchio, preloaded, cache):
    done = benchio.run(
        999, 1, 1, "local", *LAYERS, "unstriped", "--files=3", "--stripe-size=1000",
        f"--cache={cache}", "--verify", "--repeats=2", "--result=result.jsonl",
        ranks=4, wrapper=preloaded("two_nodes"),
    )  # fmt: skip
    assert done.status == 0, done.err
    reads = [line for line in benchio.records() if line["operation"] == "read"]
    assert len(reads) == 2 * len(LAYERS)
    if reads[0]["nodes"] == 1 and cache == "shift":
        pytest.skip("this MPI library's mpi_f08 calls something else")
    if cache == "shift":
        assert {line["cache"] for line in reads} == {"shifted"}
    elif "Note:" not in done.out:
        assert {line["cache"] for line in reads} == {"direct"}


def test_a_round_that_writes_nothing_is_found(benchio):
    """The files of the previous round are complete, but their data are not those of this round."""
    path = str(benchio.cwd / "unstriped/aligned.dat")
    # The first round writes one piece; the second fakes its write.
    wrapper = injecting("pwrite64,pwritev", "retval=4096:when=2", "-P", path)
    done = benchio.run(
        8, 8, 8, "local", "aligned", "unstriped", "--repeats=2", "--verify", wrapper=wrapper
    )
    assert done.status == 1
    assert "512 elements differ" in done.messages[0]
    assert done.out.count("rate") == 2


@pytest.mark.parametrize(
    ("sizes", "options", "message"),
    [
        (8, ["--files=2147483647"], "512 elements cannot be divided among 2147483647 files"),
        (8, ["--stripe-count=2147483647"], "--stripe-count=2147483647 is more than 65536"),
        (
            1024,
            ["--files=100000", "--stripe-count=2000", "--stripe-size=1G"],
            "--files=100000 of --stripe-count=2000 make more than 100000000 stripes",
        ),
    ],
)
def test_numbers_that_no_memory_holds(benchio, sizes, options, message):
    done = benchio.run(sizes, sizes, sizes, "local", "aligned", "unstriped", *options)
    assert done.status == 2
    assert done.messages[0] == message


def test_the_files_of_the_last_round_are_those_of_the_seed(benchio):
    words = (8, 8, 8, "local", "aligned", "unstriped", "--seed=5")
    assert benchio.run(*words, "--repeats=3", "--keep", ranks=2).status == 0
    done = benchio.run(*words, "--no-write", "--verify", ranks=2)
    assert done.status == 0, done.err
