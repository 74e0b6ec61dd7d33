"""The pattern aligned: the stripes of one or many files, and their assignment to ranks."""

import re
from collections import Counter

import pytest

from tests.kernel.conftest import Difference, injecting, strace
from tests.kernel.reference import divided
from tests.kernel.test_caches import is_in_memory

LAYERS = ["aligned", "aligned-single", "aligned-files", "aligned-random"]
SEED = 23
RANKS = 3


def make_table(benchio, lines):
    """Write a table, and its files, which are empty."""
    text = "\n".join(["# path stripe_size target ...", "", *lines, ""])
    (benchio.cwd / "layout.txt").write_text(text)
    paths = [benchio.cwd / line.split()[0] for line in lines]
    for path in paths:
        path.parent.mkdir(exist_ok=True)
        path.touch()
    return paths


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
    assert [path.read_bytes() for path in paths] == list(divided(50, 3, SEED))
    done = benchio.run(*arguments, "aligned-single", "aligned", "--no-write", ranks=2)
    assert done.status == 0, done.err
    assert [path.read_bytes() for path in paths] == list(divided(50, 3, SEED))


@pytest.mark.parametrize("layer", LAYERS)
def test_no_data_of_others_are_ever_written_over(benchio, layer, says):
    paths = make_table(benchio, ["one 64 0", "two 64 1", "three 64 2"])
    paths[1].write_bytes(b"precious")
    done = benchio.run(50, 1, 1, "global", layer, "--layout=layout.txt", ranks=2)
    assert done.status == 1
    says(done)
    assert [path.read_bytes() for path in paths] == [b"", b"precious", b""]
    assert "rate" not in done.out


def test_files_that_are_none(benchio, says):
    def refused(status, *more):
        done = benchio.run_alone(50, 1, 1, "global", "aligned", "--layout=layout.txt", *more)
        assert done.status == status
        assert "rate" not in done.out
        says(done)

    refused(1)
    make_table(benchio, ["unstriped/a 64 0"])
    (benchio.cwd / "unstriped/a").unlink()
    refused(1)
    assert list((benchio.cwd / "unstriped").iterdir()) == []
    (benchio.cwd / "unstriped/a").mkdir()
    refused(1)
    refused(2, "striped")
    refused(2, "proc")
    refused(2, "--files=3")
    (benchio.cwd / "layout.txt").write_text("unstriped/a 64\n")
    refused(2)


def _touched(benchio, layer, calls, *more, ranks, preload=()):
    """Return the system calls of each rank, as (path, offset, bytes)."""
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
    sizes = [len(content) for content in list(divided(500, 3, SEED))]
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
    assert found == list(divided(600, 600, SEED))
    trace = (benchio.cwd / "trace").read_text()
    synced = re.findall(r"fsync\(\d+<[^>]*(aligned-single\d+)\.dat>\) += 0", trace)
    # Before the read the pages are dropped, which syncs each file again.
    assert set(Counter(synced).values()) == {2}
    assert len(set(synced)) == 600


def test_files_of_which_one_cannot_be_read_with_o_direct(benchio):
    """As with a table of files on two file systems, and stripes that O_DIRECT alone cannot read."""
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
def test_a_full_device(benchio, tiny_file_system, layer, says):
    paths = make_table(benchio, [f"{tiny_file_system}/{name} 4096 {name}" for name in range(4)])
    more = (50000, 1, 1, "local", layer, "--layout=layout.txt", "--keep")
    done = benchio.run(*more, ranks=RANKS)
    assert done.status == 1
    assert "(errno 28)" in done.messages[0]
    assert "rate" not in done.out
    assert [path.stat().st_size for path in paths] == [0] * 4
    done = benchio.run(*more, "--min-free=1", ranks=RANKS)
    assert done.status == 1
    says(done)


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
    """The files of the previous round are complete, but their data are not from this round."""
    path = str(benchio.cwd / "unstriped/aligned.dat")
    # The first round writes one piece; the second fakes its write.
    wrapper = injecting("pwrite64,pwritev", "retval=4096:when=2", "-P", path)
    done = benchio.run(
        8, 8, 8, "local", "aligned", "unstriped", "--repeats=2", "--verify", wrapper=wrapper
    )
    assert done.status == 1
    assert Difference.of(done.messages[0]).differing == 512
    assert done.out.count("rate") == 2


def test_the_files_of_the_last_round_are_those_of_the_seed(benchio):
    words = (8, 8, 8, "local", "aligned", "unstriped", "--seed=5")
    assert benchio.run(*words, "--repeats=3", "--keep", ranks=2).status == 0
    done = benchio.run(*words, "--no-write", "--verify", ranks=2)
    assert done.status == 0, done.err


def refused(benchio, status=1):
    done = benchio.run(64, 64, 64, "local", "aligned", "--layout=layout.txt", ranks=2)
    assert done.status == status, done.out
    assert "rate" not in done.out
    return done.messages[0]


def test_one_file_by_two_paths_is_refused(benchio):
    make_table(benchio, ["unstriped/a 65536 0", "unstriped/b 65536 0", "unstriped/./a 65536 1"])
    assert refused(benchio).endswith(
        "layout.txt, lines 3 and 5: unstriped/a and unstriped/./a are the same file"
    )


def test_the_directories_of_a_table_are_those_of_its_files(benchio):
    make_table(benchio, ["unstriped/a 65536 0", "striped/a 65536 0"])
    (benchio.cwd / "striped").chmod(0o777)
    assert "striped/. may be written to by others" in refused(benchio)
    (benchio.cwd / "striped").chmod(0o755)
    benchio.cwd.chmod(0o777)
    done = benchio.run(64, 64, 64, "local", "aligned", "--layout=layout.txt", ranks=2)
    assert done.status == 0, done.err


def test_a_table_of_tiny_stripes_is_refused_by_its_line(benchio):
    make_table(benchio, ["unstriped/a 65536 0", "unstriped/b 1 0"])
    done = benchio.run(2000, 2000, 2000, "global", "aligned", "--layout=layout.txt", ranks=2)
    assert done.status == 2
    assert done.messages[0] == (
        "layout.txt, line 4: stripes of 1 bytes make more than 100000000 stripes"
    )
