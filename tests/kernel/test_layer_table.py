"""What every layer must prove, driven by the table of layers below, with a row for each.

If several layers find and read their files in the same way, only the first one has to give some of
the proofs. Tests that are specific to a pattern are in separate files.
"""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass, replace

import numpy as np
import pytest

from tests.kernel.conftest import Benchio, Difference, injecting, tracing
from tests.kernel.reference import blocks, divided, stream, values, whole_array

SEED = 1994
PNETCDF_IS_THERE = shutil.which("pnetcdf-config") is not None


@dataclass(frozen=True)
class Way:
    """A way to call the layers of a pattern, the files' content that results, and the library."""

    words: tuple[object, ...]
    ranks: int
    files: tuple[bytes, ...]
    io: str = "ompio"

    @property
    def bytes(self) -> int:
        return sum(map(len, self.files))


@dataclass(frozen=True)
class Pattern:
    """The common data of the layers of a pattern."""

    #: Ways to call them, each with other contents of the files.
    ways: tuple[Way, ...]
    #: A small way, whose files are damaged: the byte of the last file, the bits to flip, the rank
    #: that finds this; and the number of parts into which the data are cut, to swap two of them.
    kept: Way
    byte: int
    bits: int
    finder: int
    parts: int
    #: Other processes that read these files, with the sizes that they need.
    readers: tuple[tuple[int, tuple[object, ...]], ...] = ()
    #: A call that writes more than 1 MiB, and its ranks.
    large: tuple[tuple[object, ...], int] = ((), 0)


@dataclass(frozen=True)
class Layer:
    """A row."""

    name: str
    of: Pattern
    #: What the records say.
    pattern: str
    interface: str
    #: Whether no row above finds and reads its files in the same way.
    is_first: bool = False
    #: MPI-IO libraries under which the file system fills up.
    full: tuple[str, ...] = ()
    #: The number of processes that write; 0 for all, None if the data decide.
    writers: int | None = 0
    #: The rank that finds the damaged byte: -1 for the pattern's, None if it is random.
    finder: int | None = -1
    has_header: bool = False
    is_numbered: bool = False

    def paths(self, benchio: Benchio, way: Way) -> list:
        """Return the paths of its files."""
        if len(way.files) == 1 and not self.is_numbered:
            return [benchio.cwd / "unstriped" / f"{self.name}.dat"]
        numbers = range(len(way.files))
        return [benchio.cwd / "unstriped" / f"{self.name}{number:06}.dat" for number in numbers]

    def stored(self, data: bytes) -> bytes:
        """Return the data as stored in a file, after any header."""
        return np.frombuffer(data, "<u8").astype(">u8").tobytes() if self.has_header else data


def of_array(*files: bytes) -> Pattern:
    # Element 100, the 5th of the second rank.
    kept = Way((4, 6, 8, "global"), 2, files)
    byte = 35 if len(files) > 1 else 803
    return Pattern((), kept, byte, 1, 1, 2, large=((64, 64, 48, "global"), 2))


ARRAY = of_array(whole_array((4, 6, 8), SEED).tobytes(order="F"))
BLOCKS = of_array(*blocks((4, 6, 8), (1, 1, 2), SEED))

ALIGNED = Pattern(
    ways=tuple(
        Way((7, 5, 3, "local", f"--files={files}", f"--stripe-size={stripe}", "--stripe-count=2"),
            3, divided(315, files, SEED))
        for files, stripe in ((1, 100), (5, 64), (7, 1048576))
    ),
    # Two files of 20 elements in four stripes each, on one node: each rank has one.
    kept=Way((20, 1, 1, "local", "--files=2", "--stripe-size=48"), 2, divided(40, 2, SEED)),
    byte=50, bits=16, finder=1, parts=2,
    readers=((1, (40, 1, 1, "local", "--files=2", "--stripe-size=48")),
             (5, (40, 1, 1, "global", "--files=2", "--stripe-size=64"))),
    large=((50000, 1, 1, "local", "--files=4", "--stripe-size=4K"), 3),
)  # fmt: skip

# Five values of a point; on four ranks cells of 2 x 3 x 3 and 2 x 3 x 2 points.
BTIO = Pattern(
    ways=(
        Way((5, 3, 7, "global", "--steps=3"), 1, (stream(8 * 5 * 105 * 3, SEED),)),
        Way((2, 2, 2, "global", "--steps=3"), 4, (stream(8 * 5 * 8 * 3, SEED),), "romio321"),
        Way((7, 11, 13, "global", "--steps=3"), 4, (stream(8 * 5 * 1001 * 3, SEED),)),
        Way((7, 11, 13, "global", "--steps=3"), 9, (stream(8 * 5 * 1001 * 3, SEED),), "romio321"),
        # Five steps by default.
        Way((2, 3, 2, "local"), 4, (stream(8 * 5 * 48 * 5, SEED),)),
    ),
    kept=Way((4, 6, 5, "global", "--steps=3"), 4, (stream(8 * 5 * 120 * 3, SEED),)),
    # Step 1 (from 0), point (3, 2, 4), value 2: in the second layer the cell with x in 2..3 and
    # y in 0..2 is the one that rank 2 came to from (0, 1).
    byte=8 * (2 + 5 * (3 + 4 * (2 + 6 * (4 + 5)))) + 6, bits=64, finder=2, parts=3,
    readers=((1, (4, 6, 5, "global", "--steps=3")), (9, (4, 6, 5, "global", "--steps=3"))),
    large=((32, 32, 32, "global"), 4),
)  # fmt: skip

STRIDED = Pattern(
    ways=(
        *(Way((5, 6, 4, "local", f"--record={record}"), 3, (stream(72 * record, SEED),))
          for record in (1, 7, 1009)),
        Way((5, 6, 4, "local"), 3, (stream(72 * 5 * 8, SEED),)),
        # Global sizes and the file are the 3-D array's.
        Way((8, 6, 4, "global"), 4, (whole_array((8, 6, 4), SEED).tobytes(order="F"),)),
    ),
    # Segment 2, rank 1.
    kept=Way((1, 5, 1, "local", "--record=101"), 3, (stream(15 * 101, SEED),)),
    byte=101 * 7 + 50, bits=255, finder=1, parts=0,
    readers=((1, (1, 15, 1, "local", "--record=101")), (5, (1, 3, 1, "local", "--record=101"))),
    large=((8192, 4, 2, "local"), 3),
)  # fmt: skip

# The same file, but with records of other ranks.
MAPPED = replace(
    STRIDED,
    ways=tuple(replace(way, io=io) for way in STRIDED.ways for io in ("ompio", "romio321")),
    finder=2,
)

IDLE = ("--compute=0", "--every=2")
SNAPSHOT = Pattern(
    ways=(
        *(Way((*block, "local", *IDLE, "--steps=3", f"--decomposition={kind}"), ranks,
              (stream(8 * block[0] * block[1] * block[2] * ranks * 3, SEED),))
          for ranks, kind, block in (
              (1, "block", (3, 5, 7)), (2, "slab", (2, 1, 13)), (3, "pencil", (3, 5, 7)),
              (4, "pencil", (3, 5, 7)), (4, "slab", (5, 3, 2)), (6, "block", (1, 1, 1)),
              (8, "block", (3, 5, 7)))),
        # Sixteen snapshots by default.
        Way((4, 4, 4, "global", *IDLE), 2, (stream(8 * 64 * 16, SEED),)),
        # The exchange does not change the data written.
        Way((6, 4, 2, "local", *IDLE, "--steps=3", "--exchange"), 4, (stream(8 * 192 * 3, SEED),)),
    ),
    # Element 100 of the second snapshot.
    kept=Way((4, 6, 8, "global", *IDLE, "--steps=3"), 2, (stream(8 * 192 * 3, SEED),)),
    byte=8 * (192 + 100) + 3, bits=1, finder=1, parts=3,
    readers=((1, (4, 6, 8, "global", *IDLE, "--steps=3")),
             (4, (4, 6, 8, "global", *IDLE, "--steps=3"))),
    # 1.5 MiB per snapshot; computing all of them would take too long for a test.
    large=((64, 64, 48, "global", "--steps=1000", "--every=10", "--compute=0.1"), 2),
)  # fmt: skip

BOTH = ("ompio", "romio321")
LAYERS = [
    Layer("serial", ARRAY, "serial", "posix", is_first=True),
    Layer("proc", BLOCKS, "fpp", "posix", is_first=True, is_numbered=True),
    Layer("node", ARRAY, "fpn", "posix", is_first=True, is_numbered=True),
    Layer("mpiio", ARRAY, "ssf", "mpiio", is_first=True),
    Layer("aligned", ALIGNED, "aligned", "posix", True, BOTH[:1], writers=None),
    Layer("aligned-single", ALIGNED, "aligned-single", "posix", full=BOTH[:1], writers=1, finder=0),
    Layer("aligned-files", ALIGNED, "aligned-files", "posix", False, BOTH[:1], None, None),
    Layer("aligned-random", ALIGNED, "aligned-random", "posix", False, BOTH[:1], None, None),
    Layer("btio", BTIO, "btio", "mpiio", True, BOTH[:1]),
    Layer("btio-independent", BTIO, "btio-independent", "mpiio", full=BOTH[1:]),
    Layer("btio-pnetcdf", BTIO, "btio", "pnetcdf", True, BOTH[:1], has_header=True),
    Layer("btio-pnetcdf-nonblocking", BTIO, "btio-nonblocking", "pnetcdf", full=BOTH[1:],
          has_header=True),
    Layer("strided", STRIDED, "strided", "mpiio", True, BOTH),
    Layer("strided-independent", STRIDED, "strided-independent", "mpiio", False, BOTH),
    Layer("strided-posix", STRIDED, "strided", "posix", True, BOTH[:1]),
    Layer("mapped", MAPPED, "mapped", "mpiio", False, BOTH),
    Layer("mapped-independent", MAPPED, "mapped-independent", "mpiio", False, BOTH),
    Layer("snapshot", SNAPSHOT, "snapshot", "mpiio", True, BOTH[1:]),
    Layer("snapshot-nonblocking", SNAPSHOT, "snapshot-nonblocking", "mpiio", True, BOTH[:1]),
]  # fmt: skip
LAYERS = [layer for layer in LAYERS if PNETCDF_IS_THERE or layer.interface != "pnetcdf"]
PATTERNS = {
    "array": ARRAY, "blocks": BLOCKS, "aligned": ALIGNED, "btio": BTIO, "strided": STRIDED,
    "mapped": MAPPED, "snapshot": SNAPSHOT,
}  # fmt: skip

of_each = pytest.mark.parametrize("layer", LAYERS, ids=lambda layer: layer.name)
of_each_way = pytest.mark.parametrize(
    "layer", [layer for layer in LAYERS if layer.is_first], ids=lambda layer: layer.name
)


def layers_of(pattern: Pattern) -> list[Layer]:
    return [layer for layer in LAYERS if layer.of is pattern]


def call(benchio: Benchio, names, way: Way, *more: object, **how):
    how["env"] = {"OMPI_MCA_io": way.io} | how.get("env", {})
    return benchio.run(
        *way.words, *names, "unstriped", "--result=result.jsonl", *more, ranks=way.ranks, **how
    )


def refused(benchio: Benchio, done) -> list[str]:
    """Return the messages of a run, and check that it failed and gave no figure."""
    assert done.status == 1, done.out + done.err
    assert "rate" not in done.out
    assert "Finished" not in done.out
    assert benchio.records() == []
    return done.messages


@pytest.mark.parametrize(
    ("pattern", "way"),
    [
        pytest.param(pattern, way, id=f"{name}-{number}")
        for name, pattern in PATTERNS.items()
        for number, way in enumerate(pattern.ways)
    ],
)
def test_the_files_hold_the_data(benchio, pattern, way):
    layers = layers_of(pattern)
    done = call(
        benchio, [layer.name for layer in layers], way, f"--seed={SEED}", "--verify", "--keep",
        "--repeats=2",
    )  # fmt: skip
    assert done.status == 0, done.err
    assert len(list((benchio.cwd / "unstriped").iterdir())) == len(layers) * len(way.files)
    for layer in layers:
        for path, data in zip(layer.paths(benchio, way), way.files, strict=True):
            found = path.read_bytes()
            assert found.endswith(layer.stored(data)), path.name
            assert (len(found) > len(data)) == layer.has_header
    records = benchio.records()
    assert [(record["layer"], record["operation"], record["repeat"]) for record in records] == [
        (layer.name, operation, repeat)
        for layer in layers
        for repeat in (1, 2)
        for operation in ("write", "read")
    ]
    for record, layer in zip(records, [row for row in layers for _ in range(4)], strict=True):
        assert record["bytes"] == record["verified_bytes"] == way.bytes
        assert (record["pattern"], record["interface"]) == (layer.pattern, layer.interface)
        assert record["files"] == len(way.files)
        if layer.writers is not None:
            assert record["writers"] == (layer.writers or way.ranks)


@pytest.fixture(scope="module")
def all_kept(kernel_build, tmp_path_factory):
    """The small files of every layer, as runs kept them."""
    where = tmp_path_factory.mktemp("kept")
    (where / "unstriped").mkdir()
    for pattern in PATTERNS.values():
        names = [layer.name for layer in layers_of(pattern)]
        done = call(Benchio(kernel_build, where), names, pattern.kept, f"--seed={SEED}", "--keep")
        assert done.status == 0, done.err
    return where / "unstriped"


@pytest.fixture
def kept(benchio, all_kept):
    """Copies these files, to be damaged; returns a function that reads a layer's files back."""
    shutil.copytree(all_kept, benchio.cwd / "unstriped", dirs_exist_ok=True)

    def read_back(*layers: Layer, way: Way | None = None, seed: int = SEED, how="--verify"):
        names = [layer.name for layer in layers]
        way = way or layers[0].of.kept
        # A read computes nothing.
        way = replace(way, words=tuple(word for word in way.words if word not in IDLE))
        return call(benchio, names, way, "--no-write", how, f"--seed={seed}")

    return read_back


@pytest.mark.parametrize("pattern", PATTERNS)
def test_other_processes_read_them(benchio, kept, pattern):
    layers = layers_of(PATTERNS[pattern])
    way = PATTERNS[pattern].kept
    for ranks, words in ((way.ranks, way.words), *PATTERNS[pattern].readers):
        done = kept(*layers, way=replace(way, words=words, ranks=ranks))
        assert done.status == 0, done.err
        assert [record["layer"] for record in benchio.records()] == [row.name for row in layers]
        assert {record["verified_bytes"] for record in benchio.records()} == {way.bytes}
        assert all(path.exists() for row in layers for path in row.paths(benchio, way))


@of_each
def test_a_changed_byte_is_named(benchio, kept, layer):
    way, byte = layer.of.kept, layer.of.byte
    path = layer.paths(benchio, way)[-1]
    data = bytearray(path.read_bytes())
    start = len(data) - len(way.files[-1])
    data[start + byte] ^= layer.of.bits
    path.write_bytes(data)
    found = Difference.of(refused(benchio, kept(layer))[0])
    # Records of any length are compared byte by byte, and name the first that differs.
    at = byte if layer.of in (STRIDED, MAPPED, ALIGNED) else byte - byte % 8
    order = "big" if layer.has_header else "little"
    element = byte // 8
    assert found.path == f"unstriped/{path.name}"
    assert found.byte == start + at
    before = sum(map(len, way.files[:-1])) // 8
    assert found.element == (100 if layer.of is BLOCKS else before + element)
    wrong = (data[start:] + bytes(8))[8 * element : 8 * element + 8]
    right = (layer.stored(way.files[-1]) + bytes(8))[8 * element : 8 * element + 8]
    assert found.found == int.from_bytes(wrong, order, signed=True)
    assert found.expected == int.from_bytes(right, order, signed=True)
    assert found.differing == 1
    finder = layer.of.finder if layer.finder == -1 else layer.finder
    assert finder is None or found.rank == finder
    assert path.read_bytes() == data


@pytest.mark.parametrize(
    "layer",
    [layer for layer in LAYERS if layer.is_first and layer.of.parts],
    ids=lambda layer: layer.name,
)
def test_swapped_parts_are_found(benchio, kept, layer):
    way, parts = layer.of.kept, layer.of.parts
    paths = layer.paths(benchio, way)
    headers = [path.read_bytes()[: -len(data)] for path, data in zip(paths, way.files, strict=True)]
    data = b"".join(map(layer.stored, way.files))
    length = len(data) // parts
    swapped = data[-length:] + data[length:-length] + data[:length]
    for path, header, part in zip(paths, headers, way.files, strict=True):
        path.write_bytes(header + swapped[: len(part)])
        swapped = swapped[len(part) :]
    messages = refused(benchio, kept(layer))
    assert Difference.of(messages[0]).differing == 2 * length // 8
    assert re.findall(r"\d+", messages[1]) == [str(way.ranks - 1)]


@of_each_way
def test_the_data_of_another_run_are_found(benchio, kept, layer):
    found = Difference.of(refused(benchio, kept(layer, seed=SEED + 1))[0])
    if layer.of is not STRIDED:  # where two records share an element, it counts twice
        assert found.differing == layer.of.kept.bytes // 8
    assert Difference.of(refused(benchio, kept(layer, seed=0))[0]).differing == found.differing


@of_each_way
def test_files_of_another_size_are_refused(benchio, kept, layer):
    path = layer.paths(benchio, layer.of.kept)[-1]
    whole = path.read_bytes()
    for content in (whole[:-5], whole + b"more"):
        if layer.has_header and len(content) > len(whole):
            continue  # its library may have written it
        path.write_bytes(content)
        message = refused(benchio, kept(layer, how="--read"))[0]
        assert f"unstriped/{path.name} has {len(content)} bytes" in message
        assert f" {len(whole)}" in message


@pytest.mark.parametrize("layer", [row for row in LAYERS if "--steps=3" in row.of.kept.words and
                                   row.is_first], ids=lambda layer: layer.name)  # fmt: skip
def test_more_steps_than_asked_for_are_refused(benchio, kept, layer):
    fewer = tuple("--steps=2" if word == "--steps=3" else word for word in layer.of.kept.words)
    message = refused(benchio, kept(layer, way=replace(layer.of.kept, words=fewer)))[0]
    assert f"unstriped/{layer.name}.dat" in message


@of_each_way
def test_a_file_of_something_else_is_refused(benchio, kept, layer):
    path = layer.paths(benchio, layer.of.kept)[-1]
    path.write_bytes(b"\x07" * path.stat().st_size)
    assert f"unstriped/{path.name}" in refused(benchio, kept(layer))[0]


@of_each_way
def test_a_file_or_a_directory_that_is_not_there_is_named(benchio, kept, layer, says):
    path = layer.paths(benchio, layer.of.kept)[-1]
    path.unlink()
    done = kept(layer)
    assert f"unstriped/{path.name}" in refused(benchio, done)[0]
    says(done)
    way = layer.of.kept
    done = benchio.run(*way.words, layer.name, "--directory=nowhere", ranks=way.ranks)
    assert done.status == 1
    assert f"nowhere/{layer.paths(benchio, way)[0].name}" in done.messages[0]
    says(done)


FAKED = [
    ("aligned", (40, 1, 1, "local", "--stripe-size=64"), ("preadv", "retval=64"), "ompio", 0),
    ("strided-posix", (8, 5, 1, "local"), ("preadv", "retval=64"), "ompio", 0),
    # The second step's read is faked: its data must not be in memory.
    *(
        ("btio", (2, 4, 5, "global", "--steps=2"),
         ("pread64,preadv", "retval=1600:when=2", "-P", "unstriped/btio.dat"), io, 200)
        for io in BOTH
    ),
]  # fmt: skip


@pytest.mark.parametrize(("name", "words", "fault", "io", "first"), FAKED)
def test_a_read_that_reads_nothing_is_not_verified(benchio, name, words, fault, io, first):
    fault = [str(benchio.cwd / word) if "/" in word else word for word in fault]
    done = call(benchio, [name], Way(words, 1, (), io), "--verify", wrapper=injecting(*fault))
    found = Difference.of(refused(benchio, done)[0])
    assert found.element == first
    assert found.differing == (first or 40)


@pytest.mark.parametrize(
    ("pattern", "io"), [("btio", "ompio"), ("btio", "romio321"), ("strided", "ompio"),
                        ("snapshot", "ompio")]
)  # fmt: skip
def test_each_process_syncs_the_file_once_if_asked(benchio, pattern, io):
    layers, way = layers_of(PATTERNS[pattern]), replace(PATTERNS[pattern].kept, io=io)
    for asked in ((), ("fsync",)):
        done = call(
            benchio, [row.name for row in layers], way, *asked, wrapper=tracing("fsync,fdatasync")
        )
        assert done.status == 0, done.err
        calls = [
            (path, trace.name)
            for trace in benchio.cwd.glob("trace.*")
            for path in re.findall(r"f(?:data)?sync\(\d+<([^>]*)>\) += 0", trace.read_text())
        ]
        for layer in layers:
            (path,) = layer.paths(benchio, way)
            processes = [process for synced, process in calls if synced == str(path)]
            assert len(processes) == len(set(processes)) == way.ranks * len(asked), layer.name
        assert len(calls) == way.ranks * len(layers) * len(asked)
        assert {record["fsync"] for record in benchio.records()} == {bool(asked)}
        for trace in benchio.cwd.glob("trace.*"):
            trace.unlink()


@pytest.mark.parametrize(
    ("layer", "io"),
    [pytest.param(row, io, id=f"{row.name}-{io}") for row in LAYERS for io in row.full],
)
def test_a_full_device_stops_all_and_leaves_no_file(benchio, tiny_file_system, roomy, layer, io):
    words, ranks = layer.of.large
    done = benchio.run(
        *words, layer.name, f"--directory={tiny_file_system}", "--keep", "--result=result.jsonl",
        ranks=ranks, env={"OMPI_MCA_io": io}, wrapper=roomy,
    )  # fmt: skip
    message = refused(benchio, done)[0]
    assert f"{tiny_file_system}/{layer.name}" in message
    if layer.interface == "posix":
        assert "(errno 28)" in message
    assert list(tiny_file_system.iterdir()) == []


@pytest.mark.parametrize("name", [row.name for row in layers_of(BTIO)])
def test_a_failing_process_does_not_leave_the_others_waiting(benchio, name):
    """On one of four ranks all writes of data but the first fail, also under ROMIO's locks."""
    path = str(benchio.cwd / f"unstriped/{name}.dat")
    fail = injecting("pwrite64", "error=EIO:when=2+", "-P", path)
    script = f'if [ "$OMPI_COMM_WORLD_RANK" = 0 ]; then exec {" ".join(fail)} "$@"; fi; exec "$@"'
    way = Way((8, 8, 8, "global", "--steps=4"), 4, (), "romio321")
    done = call(benchio, [name], way, wrapper=["sh", "-c", script, "sh"])
    assert f"{name}.dat" in refused(benchio, done)[0]
    assert list((benchio.cwd / "unstriped").iterdir()) == []


@pytest.mark.parametrize(
    ("name", "words", "ranks", "mebibytes", "damaged"),
    [
        # 280 MiB in stripes of 270 MiB, which exceed the memory: pieces of 256, 14 and 10 MiB; the
        # other process has none.
        ("aligned-single", (2**20 * 35, 1, 1, "global", "--stripe-size=270M"), 2, 280,
         260 * 2**20 + 1),
        # Seven records of 40 MiB: six fit, and the last is a second call.
        ("strided-posix", (1, 7, 1, "local", "--record=40M"), 1, 280, 6 * 40 * 2**20 + 5),
        ("mapped", (1, 7, 1, "local", "--record=40M"), 1, 280, 6 * 40 * 2**20 + 5),
    ],
)  # fmt: skip
def test_more_than_the_memory_holds_goes_round_by_round(
    benchio, name, words, ranks, mebibytes, damaged
):
    way = Way((*words, f"--seed={SEED}", "--cache=none"), ranks, ())
    done = call(benchio, [name], way, "--verify", "--keep")
    assert done.status == 0, done.err
    assert [line["verified_bytes"] for line in benchio.records()] == [mebibytes * 2**20] * 2
    path = benchio.cwd / f"unstriped/{name}.dat"
    with path.open("r+b") as file:
        file.seek(damaged - damaged % 8)
        element = bytearray(file.read(8))
        assert bytes(element) == values([damaged // 8], SEED).tobytes()
        element[damaged % 8] ^= 4
        file.seek(damaged - damaged % 8)
        file.write(element)
    done = call(benchio, [name], way, "--no-write", "--verify")
    path.unlink()
    found = Difference.of(refused(benchio, done)[0])
    assert (found.byte, found.element, found.differing) == (damaged, damaged // 8, 1)


@pytest.mark.parametrize(
    ("words", "ranks"),
    [
        ("2 1 1 global aligned --files=3", 1),
        ("8 8 8 local aligned --files=2147483647", 1),
        ("8 8 8 local aligned --stripe-count=2147483647", 1),
        ("99 99 99 local aligned --files=100000 --stripe-count=2000 --stripe-size=1G", 1),
        ("24 24 24 global proc btio", 2),
        ("24 24 24 global proc btio", 8),
        ("9 4 2 global strided", 3),
        ("1 1 1 local strided-independent --record=3G", 1),
        ("1 2147483648 4 local strided-posix --record=1G", 1),
        ("1 1 1 local snapshot --writers=1", 1),
    ],
)
def test_what_makes_no_sense_is_refused(benchio, words, ranks, says):
    done = benchio.run(*words.split(), "unstriped", ranks=ranks)
    assert done.status == 2
    assert "rate" not in done.out
    assert list((benchio.cwd / "unstriped").iterdir()) == []
    says(done)
