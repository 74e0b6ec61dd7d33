"""Lustre: `lfs setstripe` on the run directory, `lfs getstripe -y` on each file below it.

`lfs setstripe` accepts more stripes than there are OSTs and gives fewer, so its exit status
proves nothing: only the layout of the files that were written counts. Tested on captured output
of Lustre 2.17.
"""

import re
from pathlib import Path

import yaml

from ..program_output import read_output
from ..refusal import or_refuse
from .layout import (
    ALL_TARGETS,
    Asked,
    Layout,
    StripingError,
    Targets,
    agreed,
)

LAYOUT_FILE = "layout.yaml"
TARGETS_FILE = "targets.txt"

#: What stands for the stripe count in a site file's `layout`.
COUNT_MARK = "{stripe_count}"

# The parser in C, where PyYAML has it: a file per process makes thousands of documents.
_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class LustreStriping:
    """Plain layouts, or one that the site file writes out as options of `lfs setstripe`."""

    mounted_as = ("lustre",)
    tools = (("lfs",),)
    targets_command = 'timeout 20 lfs osts "$file_system"'
    # The name of the client's part of the file system differs from node to node.
    client_statistics = (
        'client=$(lfs getname "$1" | cut -d " " -f 1) && lctl get_param -n "llite.$client.stats"'
    )

    def set_commands(self, asked: Asked) -> list[str]:
        commands = [f"{self.targets_command} > {TARGETS_FILE} 2> /dev/null || :"]
        if asked.anything:
            set_stripe = f'lfs setstripe {setstripe_options(asked)} "$run_directory"'
            commands.append(or_refuse(set_stripe, "Lustre did not take the layout asked for"))
        return commands

    def read_back_commands(self) -> list[str]:
        return [
            # getstripe names no file in its YAML: one document a file keeps them apart.
            'find "$run_directory" -type f | while read -r file; do '
            'echo "---"; lfs getstripe -y "$file" 2>&1; done '
            f"> {LAYOUT_FILE}",
        ]

    def in_effect(self, stage_directory: Path, asked: Asked) -> Layout:
        files = file_components(read_output(stage_directory / LAYOUT_FILE))
        targets = asked.targets
        if asked.stripe_count == ALL_TARGETS and targets is None:
            targets = active_targets(read_output(stage_directory / TARGETS_FILE)).active
        overstriping = bool(
            asked.layout and re.search(r"(^| )(-C|--overstripe-count)", asked.layout)
        )
        layouts = []
        for components in files:
            if asked.layout is not None:
                _require_components(len(components), asked.layout)
            layouts.append(_layout(components, overstriping))
        # Fewer OSTs than stripes show in the layout itself, unless stripes were to share them.
        known = targets if asked.stripe_count == ALL_TARGETS else None
        return agreed(layouts, asked, known, "active OSTs")

    def targets(self, stage_directory: Path) -> Targets | None:
        return self.count_targets(read_output(stage_directory / TARGETS_FILE))

    def count_targets(self, text: str) -> Targets | None:
        try:
            return active_targets(text)
        except StripingError:
            return None


def setstripe_options(asked: Asked) -> str:
    """The options of `lfs setstripe` for what is asked."""
    if asked.layout is not None:
        return asked.layout.replace(COUNT_MARK, str(asked.stripe_count))
    options = {
        "-c": asked.stripe_count,
        "-S": None if asked.size_kib is None else f"{asked.size_kib}k",
        "-i": asked.index,
        "-p": asked.pool,
    }
    return " ".join(f"{name} {value}" for name, value in options.items() if value is not None)


def file_components(text: str) -> list[list[dict]]:
    """The components of each file, from `lfs getstripe -y`; a plain layout is one component.

    Raises:
        StripingError: there is no file, or a document is not the layout of a file.
    """
    try:
        documents = list(yaml.load_all(text, Loader=_Loader))
    except yaml.YAMLError as error:
        raise StripingError(f"lfs getstripe -y gave no YAML: {error}") from error
    if not any(document is not None for document in documents):
        raise StripingError("lfs getstripe gave no layout: were files written, and is it Lustre?")
    return [_components(document) for document in documents]


def file_layouts(text: str) -> list[Layout]:
    """The layout of each file, from `lfs getstripe -y`: that of its last component in use.

    Raises:
        StripingError: there is none, or a document is not a layout.
    """
    return [_layout(components, overstriping=False) for components in file_components(text)]


def _components(document: object) -> list[dict]:
    if isinstance(document, dict) and isinstance(document.get("components"), list):
        return [
            {"in use": "init" in str(component.get("lcme_flags")), **component["sub_layout"]}
            for component in document["components"]
        ]
    if isinstance(document, dict) and "lmm_stripe_count" in document:
        return [{"in use": True, **document}]
    raise StripingError(f"lfs getstripe -y gave no layout but {document!r}")


def _layout(components: list[dict], overstriping: bool) -> Layout:
    in_use = [component for component in components if component["in use"]]
    if not in_use:
        raise StripingError("lfs getstripe shows a file of which no component is in use")
    fields = in_use[-1]
    try:
        layout = Layout(
            stripe_count=int(fields["lmm_stripe_count"]),
            stripe_size=int(fields["lmm_stripe_size"]),
            index=int(fields["lmm_stripe_offset"]),
            pool=str(fields["lmm_pool"]) if "lmm_pool" in fields else None,
        )
        objects = {int(part["l_ost_idx"]) for part in fields.get("lmm_objects") or []}
    except (KeyError, TypeError, ValueError) as error:
        raise StripingError(f"lfs getstripe -y gave no layout but {fields!r}") from error
    if objects and not overstriping and len(objects) != layout.stripe_count:
        raise StripingError(
            f"stripe count in effect: {layout.stripe_count} on {len(objects)} OSTs; "
            "overstriping was not asked for"
        )
    return layout


def _require_components(found: int, layout: str) -> None:
    asked = max(1, len(re.findall(r"(?:^| )(?:-E|--component-end)", layout)))
    if found != asked:
        raise StripingError(f"components asked: {asked} ({layout}); in effect: {found}")


def active_targets(text: str) -> Targets:
    """How many OSTs are active and how many are not, from `lfs osts`.

    Raises:
        StripingError: none is active.
    """
    states = [line.split()[-1] for line in text.splitlines() if re.match(r"\d+: ", line)]
    active = states.count("ACTIVE")
    if not active:
        raise StripingError(f"lfs osts names no active OST: {text.strip()!r}")
    return Targets(active, len(states) - active)
