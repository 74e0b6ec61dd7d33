"""The rows of the table: what is compared with what, and the ratio aimed at."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks import benchio, fio, ior
from benchmarks.errors import HangError
from benchmarks.page_cache import drop_files, warm_memory
from benchmarks.pairs import Contender
from benchmarks.workload import MIB, Place, Workload

_OPERATIONS: Final = ("write", "read")
_RESULT: Final = "result.json"
# Volumes of memory to touch before a run, which takes two: the array and the page cache. With only
# two, the run would wait for memory that the machine's host has to find.
_MEMORY_OF_A_RUN: Final = 8


@dataclass(frozen=True)
class Row:
    """A comparison: our contender, the others, whose best it must match, and the aim.

    Without an aim it only shows a cost. `missing` is the reason why it cannot be made.
    """

    title: str
    operation: str
    place: Place
    aim: float | None
    ours: Contender
    theirs: tuple[Contender, ...]
    missing: str = ""

    @property
    def name(self) -> str:
        """The row's name on the terminal."""
        return f"{self.title}, {self.operation}, {self.place.name}"

    @property
    def group(self) -> tuple[str, str, str]:
        """What the rows have in common that are measured together."""
        return self.place.name, self.operation, self.title.split(",")[0]


@dataclass(frozen=True)
class Bench:
    """What all rows have in common: the program, the data, and where results may go."""

    program: Path
    workload: Workload
    scratch: Path

    @property
    def result(self) -> Path:
        """Where a program is to leave its figures."""
        return self.scratch / _RESULT

    def contender(
        self, name: str, operation: str, place: Place, measure: Callable[[Path], float]
    ) -> Contender:
        """Return a contender that finds memory, disk and files in the same state as all others."""

        def settled() -> float:
            directory = place.directory / operation
            if operation == "write":
                shutil.rmtree(directory, ignore_errors=True)
                directory.mkdir(parents=True)
            else:
                self.make_files(place, directory)
            if place.is_disk:
                os.sync()
                drop_files(directory)
            self.result.unlink(missing_ok=True)
            if place.repeats(operation) == 1:
                warm_memory(_MEMORY_OF_A_RUN * self.workload.volume)
            rate = measure(directory)
            if operation == "write":
                shutil.rmtree(directory)
            return rate

        def again_after_a_hang() -> float:
            try:
                return settled()
            except HangError:
                return settled()

        return Contender(name, again_after_a_hang)

    def make_files(self, place: Place, directory: Path) -> None:
        """Write the files that all programs read, once: the same blocks under every name."""
        if directory.is_dir():
            return
        directory.mkdir(parents=True)
        for layer, names in (
            ("proc", ["ior.dat.{rank:08d}", "fio.{rank}"]),
            ("mpiio", ["ior.dat"]),
        ):
            base = benchio.command(self.program, self.workload, layer, benchio.SLAB)
            benchio.measure_write(base, self.workload, place, directory, self.result)
            self.result.unlink()
            for rank in range(self.workload.ranks if layer == "proc" else 1):
                written = directory / (f"proc{rank:06d}.dat" if layer == "proc" else "mpiio.dat")
                for name in names:
                    (directory / name.format(rank=rank)).hardlink_to(written)
        for layer, options in ("hdf5", [benchio.SLAB]), ("strided-posix", []):
            if benchio.has_layer(self.program, layer):
                base = benchio.command(self.program, self.workload, layer, *options)
                benchio.measure_write(base, self.workload, place, directory, self.result)

    def benchio(self, operation: str, place: Place, layer: str, *options: str) -> Contender:
        """Return a layer of benchio with these options."""
        base = benchio.command(self.program, self.workload, layer, *options)
        measure = benchio.measure_write if operation == "write" else benchio.measure_read
        shown = [option for option in options if option != benchio.SLAB]
        return self.contender(
            " ".join(["benchio", layer, *shown]),
            operation,
            place,
            lambda directory: measure(base, self.workload, place, directory, self.result),
        )

    def ior(
        self, operation: str, place: Place, options: tuple[str, ...], transfer: int
    ) -> Contender:
        """Return IOR with these options and this transfer size."""
        size = "its block" if transfer == self.workload.share else f"{transfer // MIB} MiB"
        return self.contender(
            f"IOR {' '.join(options)}, {size} a call",
            operation,
            place,
            lambda directory: ior.measure(
                options, transfer, operation, self.workload, place, directory / "ior.dat",
                self.result,
            ),
        )  # fmt: skip

    def fio(self, operation: str, place: Place, way: fio.Way) -> Contender:
        """Return fio in one of its ways."""
        return self.contender(
            f"fio {way.name}",
            operation,
            place,
            lambda directory: fio.measure(
                way, operation, self.workload, place, directory, self.result
            ),
        )

    def rows(self, places: Sequence[Place]) -> list[Row]:
        """Return all comparisons of rates."""
        return [
            row
            for place in places
            for operation in _OPERATIONS
            for row in self._rows_of(operation, place)
        ]

    def _rows_of(self, operation: str, place: Place) -> list[Row]:
        slab = benchio.SLAB
        proc = self.benchio(operation, place, "proc", slab, "--halo=0")
        mpiio = self.benchio(operation, place, "mpiio", slab, "--halo=0")
        hdf5 = self.benchio(operation, place, "hdf5", slab, "--halo=0")
        proc_halo = self.benchio(operation, place, "proc", slab)
        mpiio_halo = self.benchio(operation, place, "mpiio", slab)
        direct = self.benchio(operation, place, "proc", slab, "--direct")
        records = self.benchio(operation, place, "strided-posix")
        timed = self.benchio(operation, place, "strided-posix", "--latency")
        separate = ior.transfer_sizes(self.workload, (MIB, 4 * MIB))
        shared = ior.transfer_sizes(self.workload, (4 * MIB, 32 * MIB))
        no_ior = "" if shutil.which("ior") else "ior is not on the PATH"
        no_fio = "" if shutil.which("fio") else "fio is not on the PATH"
        no_hdf5 = "" if benchio.has_layer(self.program, "hdf5") else "benchio has no layer hdf5"
        by_ior = tuple(self.ior(operation, place, ior.FILE_PER_PROCESS, size) for size in separate)
        by_collective = tuple(
            self.ior(operation, place, ior.SHARED_COLLECTIVE, size) for size in shared
        )
        cached = tuple(self.fio(operation, place, way) for way in fio.WAYS if not way.direct)
        past = tuple(self.fio(operation, place, way) for way in fio.WAYS if way.direct)
        psync = tuple(way for way in past if "psync" in way.name)
        whole = self.fio(operation, place, fio.Way("psync", self.workload.share, 1, direct=True))

        def row(
            title: str, aim: float | None, ours: Contender, *theirs: Contender, missing: str = ""
        ) -> Row:
            return Row(title, operation, place, aim, ours, theirs, missing)

        rows = [
            row("file per process", 1.0, proc, by_ior[-1], missing=no_ior),
            row("file per process, small calls", None, proc, *by_ior[:-1], missing=no_ior),
            row("file per process, fio", 0.95, proc, *cached, missing=no_fio),
            row("file per process, halo", None, proc_halo, proc),
        ]
        if place.is_disk:
            rows += [
                row("file per process, direct", 0.95, direct, *psync, missing=no_fio),
                row("file per process, direct, equal", 0.95, direct, whole, missing=no_fio),
                row("file per process, direct, best", None, direct, *past, missing=no_fio),
            ]
        rows += [
            row("shared file", 1.0, mpiio, by_collective[-1], missing=no_ior),
            row("shared file, small calls", None, mpiio, *by_collective[:-1], missing=no_ior),
            row("shared file, halo", None, mpiio_halo, mpiio),
            row("shared file, HDF5", 0.9, hdf5, mpiio, missing=no_hdf5),
        ]
        if not place.is_disk:
            # Many calls, to show what timing them costs.
            rows.append(row("a row a call, latency", None, timed, records))
        return [each for each in rows if each.theirs or each.missing]
