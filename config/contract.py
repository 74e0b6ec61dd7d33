"""Contract 4 (docs/contracts.md): what iobands reads from a partition's `extras`, checked.

ReFrame passes `extras` through unread, and skips a check file that fails to load with exit
status 0. So a mistake in a site file is found here, where it stops ReFrame with a message.
"""

from __future__ import annotations

import re
from pathlib import Path

# The striping backends of checks/striping; see there for how to add one.
FILE_SYSTEM_TYPES = ("lustre", "cephfs", "beegfs", "gpfs", "posix")
PROGRAMS = ("ior", "mdtest", "io500.sh")
TOOLS = ("benchio", "ior", "mdtest", "io500")
PATTERNS = (
    *("serial", "fpp", "fpn", "ssf", "ssf-independent"),
    *("strided-47008", "strided-1000000", "strided-10000"),
    *("metadata-easy", "metadata-hard", "io500", "io500-limited"),
)
TRANSPORTS = ("default", "ofi", "ucx")
# What checks/transport.py knows how to ask for the transport in effect.
MPI_LIBRARIES = ("openmpi", "mpich", "cray-mpich", "intel-mpi")

REQUIRED = object()
_FILE_SYSTEM = {
    "path": (str, REQUIRED),
    "type": (str, REQUIRED),
    "medium": (str, REQUIRED),
    "stripe_counts": (list, None),
    "mounted_as": (str, None),
    "min_free_gib": ((int, float), None),
    "min_free_inodes": (int, None),
    "max_quota_percent": ((int, float), None),
    "max_inactive_targets": (int, None),
    "striping": (dict, None),
}
# What may be asked of the striping besides the count, by the type of the file system.
_STRIPING = {
    "size_kib": (int, None),
    "object_size_kib": (int, None),
    "index": (int, None),
    "pool": (str, None),
    "layout": (str, None),
    "targets": (int, None),
}
_STRIPING_OF_TYPE = {
    "lustre": ("size_kib", "index", "pool", "layout", "targets"),
    "cephfs": ("size_kib", "object_size_kib", "pool", "targets"),
    "beegfs": ("size_kib", "targets"),
    "gpfs": (),
    "posix": (),
}
_COUNT_MARK = "{stripe_count}"
_LEAST_STRIPE_KIB = 64
_SCALE = {
    "nodes": ((int, str), REQUIRED),
    "tasks_per_node": (int, REQUIRED),
    "mib_per_task": (int, REQUIRED),
    "files_per_task": (int, None),
    "repeats": (int, None),
    "time_limit": (str, None),
    "exclusive": (bool, None),
}
_HINT_PRESET = {
    "env_vars": (dict, None),
    "romio_hints": (dict, None),
    "hints": (dict, None),
    "transports": (list, None),
    "mpi": (list, None),
}
_ENVIRONMENT_EXTRAS = {"mpi": (str, None)}
_PROGRAM = {"path": (str, None), "modules": (list, None), "spack": (str, None)}
_SELECTION = {
    "tool": (str, None),
    "pattern": (str, None),
    "interface": (str, None),
    "file_system": (str, None),
    "medium": (str, None),
    "stripe_count": (int, None),
    "transport": (str, None),
    "hints": (str, None),
    "scale": (str, None),
}
_SELECTIONS = {"daily": (list, None), "weekly": (list, None), "smoke": (list, None)}
_EXTRAS = {
    "filesystems": (dict, REQUIRED),
    "scales": (dict, REQUIRED),
    "hint_presets": (dict, None),
    "recommended": (list, None),
    "selections": (dict, None),
    "programs": (dict, None),
    "account": (str, None),
    "reservation": (str, None),
    "qos": (str, None),
    "max_pending_time": (str, None),
    "max_clock_skew_seconds": ((int, float), None),
}
# The numbers of nodes that a scheduler is asked for, and the schedulers that ReFrame can ask.
_FLEXIBLE_NODES = ("all", "idle")
_LISTS_NODES = ("slurm", "squeue", "local")
_DURATION = re.compile(r"(?=.)(\d+d)?(\d+h)?(\d+m)?(\d+s)?")


class SiteConfigurationError(ValueError):
    """A site file breaks contract 4; the message names the file, the place and the remedy."""


def check_system(system: dict, path: Path) -> None:
    """Check every partition of `system` that has the feature `io`.

    Raises:
        SiteConfigurationError: something is missing, unknown or of the wrong type or value.
    """
    name = system.get("name")
    if name != path.stem:
        raise SiteConfigurationError(
            f"{path}: the system is named {name!r}; name it {path.stem!r}, as its file"
        )
    with_io = [part for part in system.get("partitions", []) if "io" in part.get("features", [])]
    for partition in with_io:
        where = f"{path}: partition {partition['name']!r}"
        _check_extras(partition.get("extras", {}), where)
        _check_flexible(partition["extras"]["scales"], partition.get("scheduler"), where)
    _check_agreement(with_io, path)


def _check_flexible(scales: dict, scheduler: str | None, where: str) -> None:
    for name, scale in scales.items():
        if scale["nodes"] in _FLEXIBLE_NODES and scheduler not in _LISTS_NODES:
            raise SiteConfigurationError(
                f"{where}: scale {name!r}: nodes is {scale['nodes']!r}, but ReFrame cannot list "
                f"the nodes of the scheduler {scheduler!r}; give a number"
            )


def _check_agreement(partitions: list[dict], path: Path) -> None:
    """Check that a name says the same in every partition: a check is listed before it has one."""
    facts: dict[tuple[str, str], tuple[object, str]] = {}
    for partition in partitions:
        extras = partition["extras"]
        here = {("scale", name): scale for name, scale in extras["scales"].items()}
        for name, file_system in extras["filesystems"].items():
            here["file system", name] = (file_system["medium"], file_system["type"])
        for name, preset in extras.get("hint_presets", {}).items():
            here["hint preset", name] = preset
        for (kind, name), value in here.items():
            first, where = facts.setdefault((kind, name), (value, partition["name"]))
            if value != first:
                raise SiteConfigurationError(
                    f"{path}: partition {partition['name']!r}: {kind} {name!r} is {value!r}, in "
                    f"partition {where!r} it is {first!r}; give one of them another name"
                )


def check_environments(environments: list[dict], path: Path) -> None:
    """Check what iobands reads of the programming environments of a site file.

    Raises:
        SiteConfigurationError: something is unknown, or a transport could not be proven.
    """
    for environment in environments:
        where = f"{path}: environment {environment['name']!r}"
        extras = environment.get("extras", {})
        _check_fields(extras, _ENVIRONMENT_EXTRAS, f"{where}: extras")
        if "mpi" in extras:
            _check_choice(extras["mpi"], MPI_LIBRARIES, f"{where}: mpi")
        named = [name for name in environment.get("features", []) if name in TRANSPORTS]
        if len(named) > 1:
            raise SiteConfigurationError(
                f"{where}: has the transports {' and '.join(named)}; give each its environment"
            )
        if named and "mpi" not in extras:
            raise SiteConfigurationError(
                f"{where}: the transport {named[0]!r} can be proven only of an MPI library that "
                f"is known; add to it 'extras': {{'mpi': ...}}, one of: {', '.join(MPI_LIBRARIES)}"
            )


def _check_extras(extras: dict, where: str) -> None:
    _check_fields(extras, _EXTRAS, f"{where}: extras")
    _check_duration(extras, "max_pending_time", f"{where}: extras")
    if not extras["filesystems"]:
        raise SiteConfigurationError(f"{where}: filesystems is empty; describe at least one")
    for name, file_system in extras["filesystems"].items():
        _check_file_system(file_system, f"{where}: file system {name!r}")
    if not extras["scales"]:
        raise SiteConfigurationError(f"{where}: scales is empty; describe at least one")
    for name, scale in extras["scales"].items():
        _check_scale(scale, f"{where}: scale {name!r}")
    _check_programs(extras.get("programs", {}), where)
    presets = extras.get("hint_presets", {})
    for name, preset in presets.items():
        if name == "default":
            raise SiteConfigurationError(
                f"{where}: a hint preset cannot be named 'default', which sets nothing"
            )
        _check_preset(preset, f"{where}: hint preset {name!r}")
    selections = extras.get("selections", {})
    _check_fields(selections, _SELECTIONS, f"{where}: selections")
    for name, entries in {"recommended": extras.get("recommended", []), **selections}.items():
        for number, selection in enumerate(entries, start=1):
            here = f"{where}: {name}, entry {number}"
            _check_selection(selection, extras, here)
            if selection.get("tool") == "io500" and name in ("daily", "recommended"):
                raise SiteConfigurationError(f"{here}: io500 is never daily; it takes too long")


def _check_programs(programs: dict, where: str) -> None:
    for name, program in programs.items():
        here = f"{where}: program {name!r}"
        _check_choice(name, PROGRAMS, f"{where}: programs: the name")
        _check_fields(program, _PROGRAM, here)
        if not program:
            raise SiteConfigurationError(f"{here}: say its path, its modules or its Spack spec")
        if "path" in program and not Path(program["path"]).is_absolute():
            raise SiteConfigurationError(f"{here}: path {program['path']!r} must be absolute")
        # They become words of a job script.
        words = (program.get("path", ""), *program.get("modules", ()))
        for word in words:
            if not isinstance(word, str) or not re.fullmatch(r"[\w./@+~-]*", word):
                raise SiteConfigurationError(f"{here}: {word!r} is no such name")


def _check_file_system(file_system: dict, where: str) -> None:
    _check_fields(file_system, _FILE_SYSTEM, where)
    _check_choice(file_system["type"], FILE_SYSTEM_TYPES, f"{where}: type")
    if not Path(file_system["path"]).is_absolute():
        raise SiteConfigurationError(f"{where}: path {file_system['path']!r} must be absolute")
    for name in ("min_free_gib", "min_free_inodes", "max_quota_percent", "max_inactive_targets"):
        if file_system.get(name, 0) < 0:
            raise SiteConfigurationError(
                f"{where}: {name} is {file_system[name]}; it must be at least 0"
            )
    if not re.fullmatch(r"[\w.-]+", file_system.get("mounted_as", "any")):
        # It becomes a word of a job script.
        raise SiteConfigurationError(
            f"{where}: mounted_as {file_system['mounted_as']!r} is no name of a type"
        )
    if file_system.get("stripe_counts") == []:
        raise SiteConfigurationError(f"{where}: stripe_counts is empty; leave it out")
    for count in file_system.get("stripe_counts", []):
        if not isinstance(count, int) or count == 0 or count < -1:
            raise SiteConfigurationError(
                f"{where}: stripe count {count!r} must be a number above 0, or -1 for all targets"
            )
    _check_striping(file_system, where)


def _check_striping(file_system: dict, where: str) -> None:
    striping = file_system.get("striping", {})
    counts = file_system.get("stripe_counts", [])
    allowed = _STRIPING_OF_TYPE[file_system["type"]]
    if not allowed and (striping or counts):
        raise SiteConfigurationError(
            f"{where}: type {file_system['type']!r} has no stripes that could be asked for; "
            "leave stripe_counts and striping out"
        )
    where = f"{where}: striping"
    _check_fields(striping, {name: _STRIPING[name] for name in allowed}, where)
    for name in ("size_kib", "object_size_kib", "targets", "index"):
        least = 0 if name == "index" else 1
        if striping.get(name, least) < least:
            raise SiteConfigurationError(
                f"{where}: {name} is {striping[name]}; it must be at least {least}"
            )
    if striping.get("size_kib", 0) % _LEAST_STRIPE_KIB:
        raise SiteConfigurationError(
            f"{where}: size_kib is {striping['size_kib']}; it must be a multiple of "
            f"{_LEAST_STRIPE_KIB}"
        )
    for name, pattern in (("pool", r"[\w.-]+"), ("layout", r"[\w .,:{}+-]+")):
        # They become words of a job script.
        if name in striping and not re.fullmatch(pattern, striping[name]):
            raise SiteConfigurationError(f"{where}: {name} {striping[name]!r} is no such name")
    if "layout" in striping:
        _check_layout(striping, counts, where)
    if "pool" in striping and file_system["type"] == "lustre":
        # lfs osts counts those of the whole file system.
        _require_targets(striping, counts, f"{where}: the OSTs of pool {striping['pool']!r}")


def _check_layout(striping: dict, counts: list, where: str) -> None:
    for name in ("size_kib", "index", "pool"):
        if name in striping:
            raise SiteConfigurationError(
                f"{where}: {name} cannot stand beside layout; say it there"
            )
    if (_COUNT_MARK in striping["layout"]) != bool(counts):
        raise SiteConfigurationError(
            f"{where}: layout needs {_COUNT_MARK} where the stripe count belongs, and "
            "stripe_counts to fill it in; or neither"
        )


def _require_targets(striping: dict, counts: list, what: str) -> None:
    if -1 in counts and "targets" not in striping:
        raise SiteConfigurationError(f"{what} cannot be counted for -1; add 'targets'")


def _check_scale(scale: dict, where: str) -> None:
    _check_fields(scale, _SCALE, where)
    if isinstance(scale["nodes"], str):
        _check_choice(scale["nodes"], ("a number", *_FLEXIBLE_NODES), f"{where}: nodes")
    for field, value in scale.items():
        if isinstance(value, int) and not isinstance(value, bool) and value < 1:
            raise SiteConfigurationError(f"{where}: {field} is {value}; it must be at least 1")
    _check_duration(scale, "time_limit", where)


def _check_duration(values: dict, field: str, where: str) -> None:
    if field in values and not _DURATION.fullmatch(values[field]):
        raise SiteConfigurationError(
            f"{where}: {field} {values[field]!r} must be like '20m' or '1h30m'"
        )


def _check_preset(preset: dict, where: str) -> None:
    _check_fields(preset, _HINT_PRESET, where)
    for field, allowed in (("transports", TRANSPORTS), ("mpi", MPI_LIBRARIES)):
        for value in preset.get(field, []):
            _check_choice(value, allowed, f"{where}: {field}")
    for field in ("hints", "romio_hints"):
        for name, value in preset.get(field, {}).items():
            if not isinstance(value, str):
                raise SiteConfigurationError(
                    f"{where}: {field}: {name}: {value!r} must be text, in quotes"
                )
            if field == "romio_hints" and f"{name} {value}".split() != [name, value]:
                # ROMIO ignores such a line of its file without a word.
                raise SiteConfigurationError(
                    f"{where}: romio_hints: {name!r}: {value!r}: neither may be empty or have a "
                    "blank in it"
                )


def _check_selection(selection: dict, extras: dict, where: str) -> None:
    _check_fields(selection, _SELECTION, where)
    choices = {
        "tool": TOOLS,
        "pattern": PATTERNS,
        "file_system": tuple(extras["filesystems"]),
        "medium": tuple({entry["medium"]: None for entry in extras["filesystems"].values()}),
        "transport": TRANSPORTS,
        "hints": ("default", *extras.get("hint_presets", {})),
        "scale": tuple(extras["scales"]),
        "stripe_count": tuple(
            count
            for entry in extras["filesystems"].values()
            for count in entry.get("stripe_counts", [])
        ),
    }
    for field, allowed in choices.items():
        if field in selection:
            _check_choice(selection[field], allowed, f"{where}: {field}")


def _check_fields(values: object, fields: dict, where: str) -> None:
    if not isinstance(values, dict):
        raise SiteConfigurationError(f"{where}: must be a dictionary, not {values!r}")
    for field in values:
        _check_choice(field, tuple(fields), f"{where}: the name")
    for field, (kind, default) in fields.items():
        if field not in values:
            if default is REQUIRED:
                raise SiteConfigurationError(f"{where}: {field!r} is missing; add it")
        elif not isinstance(values[field], kind) or (
            isinstance(values[field], bool) and kind is not bool
        ):
            raise SiteConfigurationError(f"{where}: {field} has the wrong type: {values[field]!r}")


def _check_choice(value: object, allowed: tuple, where: str) -> None:
    if value not in allowed:
        raise SiteConfigurationError(
            f"{where} {value!r} is unknown; there are: {', '.join(map(str, allowed))}"
        )
