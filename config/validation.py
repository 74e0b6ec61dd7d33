"""Checks a site file (contract 4) by site.schema.yaml, and by rules that a schema cannot express.

ReFrame does not read a partition's `extras`. It skips a check file that fails to load, with exit
status 0. So a mistake in a site file stops ReFrame here, with a message.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator, Mapping
from importlib import import_module
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

from iobands.model import Document, FileError, load_schema, unknown

_CHECKS = Path(__file__).parents[1] / "checks"

# Steps of a path that messages leave out, as all would contain them.
_UNSAID = frozenset({"system", "extras"})
# A class that is a check.
_CHECK = r"^@rfm\.simple_test\nclass (\w+)"


def _file_system_types() -> Mapping[str, Any]:
    # Under another name, as ReFrame may have been given another tree's `checks`.
    place = [str(_CHECKS)]
    spec = spec_from_file_location(
        "iobands_checks", _CHECKS / "__init__.py", submodule_search_locations=place
    )
    sys.modules["iobands_checks"] = module_from_spec(spec)
    return import_module("iobands_checks.filesystems").BACKENDS


def _cases() -> set[str]:
    kebab = import_module("iobands_checks.cases.naming").kebab
    texts = [path.read_text("utf-8") for path in (_CHECKS / "cases").glob("*.py")]
    return {kebab(name) for text in texts for name in re.findall(_CHECK, text, re.MULTILINE)}


def _schema() -> dict:
    """The schema of a site file, with the types of file systems and their striping options."""
    schema = load_schema(Path(__file__).with_name("site.schema.yaml"))
    types, definitions = _file_system_types(), schema["$defs"]
    definitions["fileSystemType"] = {"enum": list(types)}
    for name, each in types.items():
        entry = {"striping": {"propertyNames": {"enum": list(each.options)}}}
        if not each.options:
            entry["striping"] = {"if": {"minProperties": 1}, "then": {"$ref": "#/$defs/noStripes"}}
        if not each.has_stripes:
            entry["stripe_counts"] = {"$ref": "#/$defs/noStripes"}
        is_of = {"required": ["type"], "properties": {"type": {"const": name}}}
        definitions["filesystem"]["allOf"].append({"if": is_of, "then": {"properties": entry}})
    _add_keys_of_reframe(schema)
    return schema


def _add_keys_of_reframe(schema: dict) -> None:
    """Allow only ReFrame's keys in an entry: its own message names neither file nor place."""
    (package,) = find_spec("reframe").submodule_search_locations
    theirs = json.loads((Path(package) / "schemas" / "config.json").read_text("utf-8"))
    theirs, system = theirs["properties"], schema["properties"]["system"]
    of_systems = theirs["systems"]["items"]
    for own, known in (
        (system, of_systems),
        (
            system["properties"]["partitions"]["items"],
            of_systems["properties"]["partitions"]["items"],
        ),
        (schema["$defs"]["environment"], theirs["environments"]["items"]),
    ):
        if known.get("additionalProperties") is False:
            own["properties"] = {name: {} for name in known["properties"]} | own["properties"]
            own["additionalProperties"] = False


SCHEMA = _schema()
#: The version of contract 4. A site file may name it, as `schema`.
CONTRACT = 4
_TRANSPORTS = SCHEMA["$defs"]["transport"]["enum"]


def require_words(site: ModuleType, path: Path) -> None:
    """Check that a site file defines what contract 4 needs, before anything reads it.

    Raises:
        FileError: a variable is missing.
    """
    for name in ("system", "environments"):
        if not hasattr(site, name):
            example = Path(__file__).with_name("systems") / "example.py"
            raise FileError(f"{path}: does not define `{name}`; see {example}")


def leave_out_newer(site: ModuleType, path: Path) -> list[str]:
    """Remove entries of a newer contract from a site file; return a sentence about each."""
    said = {name: getattr(site, name) for name in ("schema", "system", "environments")}
    known, left = Document(str(path), said, unsaid=_UNSAID).known_part(CONTRACT, SCHEMA)
    site.system, site.environments = known.value["system"], known.value["environments"]
    return left


def check_site(system: dict, environments: list[dict], path: Path) -> None:
    """Check a site file.

    Raises:
        FileError: something is missing, unknown or of the wrong type or value.
    """
    site = Document(str(path), {"system": system, "environments": environments}, unsaid=_UNSAID)
    site.check(SCHEMA)
    _check_characters(site, [], site.value)
    if system["name"] != path.stem:
        raise site.error(["system", "name"], f"is {system['name']!r}; write {path.stem!r}")
    _check_agreement(site)
    names = [each["name"] for each in system["partitions"]]
    for number, name in enumerate(names):
        if name in names[:number]:  # ReFrame would take the first one for both
            steps = ["system", "partitions", number, "name"]
            raise site.error(steps, f"is {name!r}; it is used twice: give one another name")
    features = {each["name"]: each.get("features", []) for each in environments}
    for number, partition in _partitions(site):
        steps = ["system", "partitions", number]
        for index, name in enumerate(partition["environs"]):
            # ReFrame would take another site's environment for it, or none.
            if name not in features:
                raise site.error([*steps, "environs", index], unknown(name, features))
        _check_selections(site, steps, features)


def warnings(system: dict, path: Path) -> Iterator[str]:
    """Yield warnings about entries that are valid but may not be intended."""
    site = Document(str(path), {"system": system}, unsaid=_UNSAID)
    for number, partition in _partitions(site):
        extras, steps = partition["extras"], ["system", "partitions", number, "extras"]
        is_set = "account" in extras or os.environ.get("IOBANDS_ACCOUNT")
        if partition.get("scheduler") not in (None, "local") and not is_set:
            remedy = "set it, or IOBANDS_ACCOUNT; '' if jobs need none"
            yield str(site.error([*steps, "account"], f"is missing; {remedy}"))
        for index, entry in enumerate(extras.get("recommended", [])):
            count = entry.get("stripe_count")
            if problem := _mismatch(entry, extras["scales"]):
                yield str(site.error([*steps, "recommended", index, "stripe_count"], problem))
            for name, file_system in extras["filesystems"].items():
                counts = file_system.get("stripe_counts")
                is_of = entry.get("file_system", name) == name
                is_of &= entry.get("medium", file_system["medium"]) == file_system["medium"]
                if is_of and count is not None and counts and count not in counts:
                    problem = (
                        f"is {counts}, without the recommended {count}, so the recommended setting "
                        f"({entry.get('pattern', 'any pattern')}) is not measured there"
                    )
                    where = [*steps, "filesystems", name, "stripe_counts"]
                    yield str(site.error(where, problem))


def _mismatch(entry: Mapping, scales: Mapping) -> str | None:
    """Why the stripe count of a shared file does not suit the number of processes, if so."""
    count, name = entry.get("stripe_count", -1), entry.get("scale", next(iter(scales)))
    nodes, per_node = scales[name]["nodes"], scales[name]["tasks_per_node"]
    if count < 1 or entry.get("pattern") in ("serial", "fpp", "fpn") or isinstance(nodes, str):
        return None
    problem = import_module("iobands_checks.filesystems").uneven(count, nodes * per_node)
    return f"{problem} of scale {name!r}" if problem else None


def check_environment(variables: Mapping[str, str]) -> None:
    """Check the variables that take precedence over entries of a site file.

    Raises:
        FileError: one has a blank or a control character, which would break the job script.
    """
    for name in ("account", "reservation", "qos"):
        for variable in (f"IOBANDS_{name.upper()}", f"SBATCH_{name.upper()}"):
            value = variables.get(variable, "")
            if value and not re.fullmatch(r"[^\s\x00-\x1f\x7f]+", value):
                raise FileError(f"{variable}: is {value!r}; write a name without blanks")


def refuse_edit(system: dict, path: Path) -> None:
    """Check that the site in use has no EDIT left, which a person has to replace.

    Raises:
        FileError: a partition has one.
    """
    site = Document(str(path), {"system": system}, unsaid=_UNSAID)
    for number, partition in _partitions(site):
        _refuse_edit(site, ["system", "partitions", number], partition)


def _partitions(site: Document) -> Iterator[tuple[int, dict]]:
    """Yield the partitions that the checks run on, each after its number."""
    for number, partition in enumerate(site.value["system"]["partitions"]):
        if "io" in partition.get("features", []):
            yield number, partition


def _check_agreement(site: Document) -> None:
    """Check that a name means the same in all partitions: a listed check has no partition yet."""
    facts: dict[tuple[str, str], tuple[object, str]] = {}
    for number, partition in _partitions(site):
        extras = partition["extras"]
        for kind in ("scales", "filesystems", "hint_presets"):
            for name, entry in extras.get(kind, {}).items():
                names = ("medium", "type") if kind == "filesystems" else entry
                value = {each: entry[each] for each in names}
                first, where = facts.setdefault((kind, name), (value, partition["name"]))
                if value != first:
                    raise site.error(
                        ["system", "partitions", number, "extras", kind, name],
                        f"is {value!r}, and in partition {where!r} {first!r}; "
                        "give one of them another name",
                    )


def _check_selections(site: Document, steps: list, features: dict) -> None:
    """Check that selections name only what the partition has."""
    partition = site.value["system"]["partitions"][steps[-1]]
    extras = partition["extras"]
    file_systems = extras["filesystems"].values()
    known = {
        "file_system": extras["filesystems"],
        "medium": {entry["medium"]: None for entry in file_systems},
        "hints": ["default", *extras.get("hint_presets", {})],
        "scale": extras["scales"],
        "stripe_count": {n: None for entry in file_systems for n in entry.get("stripe_counts", [])},
        "transport": {
            next((name for name in features[each] if name in _TRANSPORTS), "default"): None
            for each in partition["environs"]
        },
    }
    lists = {
        ("recommended",): extras.get("recommended", []),
        **{("selections", name): each for name, each in extras.get("selections", {}).items()},
    }
    for place, entries in lists.items():
        tag = {"recommended": "daily"}.get(place[-1], place[-1])
        for number, entry in enumerate(entries):
            if "case" in entry:
                at = [*steps, "extras", *place, number, "case"]
                if entry["case"].partition(" ")[0] not in _cases():
                    raise site.error(at, unknown(entry["case"], sorted(_cases())))
                if tag not in extras.get("schedule", {}):
                    remedy = f"add the interval of {tag} to schedule"
                    raise site.error(at, f"is never due; {remedy}")
            for field, value in entry.items():
                if field in known and value not in known[field]:
                    at = [*steps, "extras", *place, number, field]
                    raise site.error(at, unknown(value, known[field]))


def _check_characters(site: Document, steps: list, value: object) -> None:
    """Refuse text that would end a line of a job script, or cannot be written into one."""
    if isinstance(value, str):
        if re.search(r"[\x00-\x1f\x7f]", value):
            raise site.error(steps, f"is {value!r}; write it without line breaks and tabs")
        if any("\ud800" <= letter <= "\udfff" for letter in value):
            raise site.error(steps, f"is {value!r}; write it in UTF-8")
    elif isinstance(value, dict | list | tuple):
        for step, each in value.items() if isinstance(value, dict) else enumerate(value):
            # Shell commands may have several lines; the keys of dictionaries are names.
            if step != "prepare_cmds":
                _check_characters(site, steps, step)
                _check_characters(site, [*steps, step], each)


def _refuse_edit(site: Document, steps: list, value: object) -> None:
    if isinstance(value, str) and re.search(r"\bEDIT\b", value):
        remedy = "replace EDIT, in the file or by the variable that it reads"
        raise site.error(steps, f"is {value!r}; {remedy}")
    if isinstance(value, dict | list):
        for step, each in value.items() if isinstance(value, dict) else enumerate(value):
            _refuse_edit(site, [*steps, step], each)
