"""Spectrum Scale (GPFS): the pool, the fileset and the number of copies of files.

It spreads every file over all disks of its pool. The pool and the number of copies follow from the
policy that root installs, and the fileset from the directory, so a run requests nothing. It proves
with `mmlsattr -L`, which every reader of a file may call, that its files lie where the site file
says. Tested on documented output, not on a Spectrum Scale.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from ..base.stage import call, read_output
from .layout import (
    LAYOUT_FILE,
    Asked,
    Layout,
    Space,
    Striping,
    StripingError,
    TargetFaults,
    Targets,
    agreed,
    pool_listed,
)

#: New blocks are written only to disks in one of these states; mmlsdisk.
_TAKES_BLOCKS = ("ready", "replacement")

#: The flags in `mmlsattr -L` of a file with data in another pool, or fewer copies, than assigned.
_ASTRAY = re.compile(r"ill-?(?:placed|replicated)", re.IGNORECASE)


class GpfsStriping(Striping):
    """No stripes that a user could set, but a placement that can be proven."""

    mounted_as = ("gpfs",)
    options = ("pool", "fileset", "replicas")
    script = Path(__file__).with_suffix(".sh")

    def stripe(self, asked: Asked) -> list[str]:
        return [call("note_targets", *filter(None, [asked.pool]))]

    def in_effect(self, stage: Path, asked: Asked) -> Layout:
        try:
            layouts = file_layouts(read_output(stage / LAYOUT_FILE))
        except StripingError:
            if asked.anything:
                raise
            return Layout()
        return agreed(layouts, asked, None, "disks")

    def count_targets(self, text: str) -> Targets | None:
        states = [_why_out(disk) is None for disk in _data_disks(text)]
        return Targets(sum(states), len(states) - sum(states)) if states else None

    def targets_in_reach(self, text: str) -> Mapping[str, Space | None]:
        disks = _of_pool(text)
        if len({each["storagePool"] for each in disks}) > 1:  # which one a policy takes is unknown
            return {}
        space = {
            each["nsdName"]: Space(int(each["diskSize"]), int(each["freeBlocks"]))
            for each in _rows(text, "mmdf:nsd")
        }
        return {each["nsdName"]: space.get(each["nsdName"]) for each in disks if not _why_out(each)}

    def judge_targets(
        self, said: Mapping[str, str], tolerated: int, needed_kib: float, declared: int | None
    ) -> TargetFaults | None:
        states = [
            f"GPFS is {each['state']} on {each['nodeName']}"
            for each in _rows(said.get("node state", ""), "mmgetstate:")
            if each["state"] != "active"
        ]
        disks = _of_pool(said.get("targets", ""))
        if not disks:
            return TargetFaults(tuple(states), unknown=("disks",)) if states else None
        out = [f"{each['nsdName']} is {why}" for each in disks if (why := _why_out(each))]
        faults = [f"of {len(disks)} disks {', '.join(out)}"] if len(out) > tolerated else []
        pools = {each["storagePool"] for each in disks}
        space = said.get("target space", "")
        faults += [
            f"the pool {each['poolName']} is full: {free} KiB are free, {needed_kib:.0f} are needed"
            for each in _rows(space, "mmdf:poolTotal")
            if each["poolName"] in pools
            and len(pools) == 1
            and (free := int(each["freeBlocks"])) < needed_kib
        ]
        full = [
            f"{each['nsdName']} is full: {each['freeBlocks']} KiB are free"
            for each in _rows(space, "mmdf:nsd")
            if each["storagePool"] in pools and each["freeBlocksPct"] == "0"
        ]
        seen = () if space else ("free space of disks",)
        return TargetFaults((*states, *faults), others=tuple(full), unknown=seen)


def file_layouts(text: str) -> list[Layout]:
    """The placement of each file, from `mmlsattr -L` and a line for each file that it was asked.

    Raises:
        StripingError: it named no pool, or not for each file, or a file has another pool or fewer
            copies than assigned.
    """
    layouts, asked = [], len(re.findall("^asked: ", text, re.MULTILINE))
    for name, attributes in re.findall(
        r"^file name: +(.*)\n((?:(?!file name:).*\n?)*)", text, re.MULTILINE
    ):
        fields = dict(re.findall(r"^([\w ]+): *(.*?) *$", attributes, re.MULTILINE))
        if astray := _ASTRAY.search(fields.get("flags", "")):
            raise StripingError(f"{Path(name).name} is {astray[0]}, by mmlsattr")
        try:
            pool, copies = fields["storage pool name"], fields["data replication"].split()[0]
            layouts.append(
                Layout(pool=pool, fileset=fields.get("fileset name"), replicas=int(copies))
            )
        except (KeyError, ValueError, IndexError) as error:
            raise StripingError(f"mmlsattr gave no placement of {name} but {fields}") from error
    if not layouts:
        said = (text.strip().splitlines() or ["nothing"])[0]
        raise StripingError(f"mmlsattr named no pool of a file, but said {said!r}")
    if len(layouts) < asked:
        raise StripingError(f"mmlsattr gave the placement of {len(layouts)} of {asked} files")
    return layouts


def _rows(text: str, kind: str) -> Iterator[dict[str, str]]:
    """The rows of a command's output with -Y that begin with `kind`, by the names in its header.

    A row that a timeout has cut off is left out.
    """
    names: list[str] = []
    for line in text.splitlines():
        # A field's own colons are encoded.
        fields = line.split(":")
        if ":".join(fields[:2]) != kind:
            continue
        if "HEADER" in fields:
            names = fields
        elif 0 < len(names) <= len(fields):
            yield dict(zip(names, fields, strict=False))


def _data_disks(text: str) -> list[dict[str, str]]:
    return [disk for disk in _rows(text, "mmlsdisk:") if disk["data"].lower() == "yes"]


def _of_pool(text: str) -> list[dict[str, str]]:
    """The disks with data of the pool in the first line of the list, or all."""
    pool = pool_listed(text)
    return [disk for disk in _data_disks(text) if pool in (None, disk["storagePool"])]


def _why_out(disk: Mapping[str, str]) -> str | None:
    """Why a disk takes no new data; None if it does."""
    if disk["availability"] != "up":
        return disk["availability"]
    return None if disk["status"] in _TAKES_BLOCKS else disk["status"]
