"""The current site (contract 4): the values that checks are parametrised over.

It reads ReFrame's runtime and the partitions' `extras`, which config/validation.py has checked.
ReFrame sets up the runtime before it loads a check, so these values may feed `parameter(...)`.
"""

import shutil
from collections.abc import Iterable, Mapping

import reframe.core.runtime as rt
from reframe.core.environments import Environment
from reframe.core.systems import SystemPartition

from . import programs

#: The preset that every site has: it sets nothing.
DEFAULT_HINTS = "default"

#: The hint by which MPI-IO stripes a file.
STRIPE_COUNT_HINT = "striping_factor"

#: The transport of an environment that names none.
DEFAULT_TRANSPORT = "default"

_TRANSPORTS = ("ofi", "ucx")


def _partitions() -> list[SystemPartition]:
    return [part for part in rt.runtime().system.partitions if "io" in part.features]


def _environments(partition: SystemPartition) -> list[Environment]:
    """The environments of a partition, including the ones that `reframe -p` leaves out.

    ReFrame's own list has only the selected ones: with it, the default environment, and so what is
    measured daily, would depend on the selection.
    """
    config = rt.runtime().site_config
    return [
        Environment(
            name,
            features=config.get(f"environments/@{name}/features"),
            extras=config.get(f"environments/@{name}/extras"),
        )
        for name in config.get(f"systems/0/partitions/@{partition.name}/environs")
    ]


def _unique(values: Iterable) -> list:
    return list(dict.fromkeys(values))


def transport_of(environment: Environment) -> str:
    """The MPI transport of a programming environment: its feature `ofi` or `ucx`."""
    for transport in _TRANSPORTS:
        if transport in environment.features:
            return transport
    return DEFAULT_TRANSPORT


def file_systems() -> list[str]:
    """The names of all file systems."""
    return _unique(name for part in _partitions() for name in part.extras["filesystems"])


def stripe_counts() -> list[int | None]:
    """The stripe counts of all file systems; None stands for one that has no stripes."""
    return _unique(
        count
        for part in _partitions()
        for file_system in part.extras["filesystems"].values()
        for count in file_system.get("stripe_counts", [None])
    )


def transports() -> list[str]:
    """The MPI transports of all programming environments."""
    return _unique(transport_of(env) for part in _partitions() for env in _environments(part))


def hint_presets() -> list[str]:
    """The names of all hint presets, the default first."""
    return _unique(
        [DEFAULT_HINTS]
        + [name for part in _partitions() for name in part.extras.get("hint_presets", {})]
    )


def partitions_for(
    file_system: str, stripe_count: int | None, hints: str, own_presets: Mapping[str, dict]
) -> list[str]:
    """The partitions, as ReFrame names them, that have this combination.

    A check's own hint presets exist in all of them.
    """
    return [
        part.fullname
        for part in _partitions()
        if file_system in part.extras["filesystems"]
        and stripe_count in part.extras["filesystems"][file_system].get("stripe_counts", [None])
        and (
            hints in own_presets
            or _has_stripes(
                presets_of(part).get(hints), part.extras["filesystems"][file_system], stripe_count
            )
        )
    ]


def _has_stripes(preset: dict | None, file_system: dict, stripe_count: int | None) -> bool:
    """Whether a preset, if there is one, allows this number of stripes.

    A preset that stripes files by a hint gives one number of stripes, and works only on Lustre.
    """
    if preset is None:
        return False
    by_hint = preset.get("hints", {}).get(STRIPE_COUNT_HINT)
    return by_hint is None or (file_system["type"], by_hint) == ("lustre", str(stripe_count))


def environments_for(transport: str, hints: str, own_presets: Mapping[str, dict]) -> list[str]:
    """The programming environments with this transport in which the hint preset has an effect."""
    return _unique(
        env.name
        for part in _partitions()
        for env in _environments(part)
        if transport_of(env) == transport
        and (preset := {**presets_of(part), **own_presets}.get(hints)) is not None
        and _has_effect(preset, env)
    )


def presets_of(partition: SystemPartition) -> dict[str, dict]:
    """The hint presets of a partition, including the default one, which sets nothing."""
    return {DEFAULT_HINTS: {}, **partition.extras.get("hint_presets", {})}


def _has_effect(preset: dict, environment: Environment) -> bool:
    """Whether a preset works with the environment; a preset that names none works with any."""
    transport, mpi = transport_of(environment), environment.extras.get("mpi")
    return transport in preset.get("transports", [transport]) and mpi in preset.get("mpi", [mpi])


def asks_spack_for(program: str) -> bool:
    """Whether a partition gets `program` from Spack, as neither site file nor PATH has it."""
    entries = [part.extras.get("programs", {}).get(program, {}) for part in _partitions()]
    found = [programs.find(program, entry, shutil.which) for entry in entries]
    return any(each and each.spack for each in found)


def scales() -> list[str]:
    """The names of all scales."""
    return _unique(name for part in _partitions() for name in part.extras["scales"])


def scale_settings(name: str) -> dict:
    """The entry of a scale, which is the same in every partition."""
    return next(
        part.extras["scales"][name] for part in _partitions() if name in part.extras["scales"]
    )


def partitions_with_scale(name: str) -> list[str]:
    """The partitions, as ReFrame names them, that have this scale."""
    return [part.fullname for part in _partitions() if name in part.extras["scales"]]


def partitions_with(file_system: str) -> tuple[list[str], list[str]]:
    """The partitions that have a file system, and the first environment of each."""
    having = [part for part in _partitions() if file_system in part.extras["filesystems"]]
    first = _unique(part.environs[0].name for part in having if part.environs)
    return [part.fullname for part in having], first


def medium_and_type(file_system: str) -> tuple[str, str]:
    """The medium and the type of a file system, which are the same in every partition."""
    return next(
        (entry["medium"], entry["type"])
        for part in _partitions()
        for name, entry in part.extras["filesystems"].items()
        if name == file_system
    )


def selecting_partitions(valid_systems: list[str]) -> list[tuple[dict, str]]:
    """The extras of the named partitions, each with its default transport."""
    return [
        (part.extras, transport_of(_environments(part)[0]))
        for part in _partitions()
        if part.fullname in valid_systems
    ]


def recommended_in(partition: str, pattern: str, file_system: str) -> tuple[str, str]:
    """The transport and the hint preset that a partition recommends for a pattern, or defaults."""
    (part,) = (each for each in _partitions() if each.fullname == partition)
    settings = part.extras["filesystems"][file_system]
    place = {"pattern": pattern, "file_system": file_system, "medium": settings["medium"]}
    entry = next(
        (
            each
            for each in part.extras.get("recommended", [])
            if "pattern" in each
            and all(each.get(name, value) == value for name, value in place.items())
        ),
        {},
    )
    default = transport_of(_environments(part)[0])
    return entry.get("transport", default), entry.get("hints", DEFAULT_HINTS)


def stripe_counts_of(file_system: str) -> list[int | None]:
    """The stripe counts of a file system in any partition; only None if it has no stripes."""
    return _unique(
        count
        for part in _partitions()
        for name, entry in part.extras["filesystems"].items()
        if name == file_system
        for count in entry.get("stripe_counts", [None])
    )


def default_transports() -> list[str]:
    """The transports of each partition's first environment, of the ones that `reframe -p` keeps."""
    return _unique(
        transport_of((part.environs or _environments(part))[0]) for part in _partitions()
    )
