"""Lustre: `lfs setstripe` on the run directory, `lfs getstripe -y` on each file below it.

`lfs setstripe` accepts more stripes than there are OSTs and gives fewer, so its exit status
proves nothing: only the layout of the files that were written counts. Tested on captured output
of Lustre 2.17.
"""

import re
import shlex
from pathlib import Path

import yaml

from ..base.stage import call, read_output
from .layout import (
    ALL_TARGETS,
    LAYOUT_FILE,
    TARGETS_FILE,
    Asked,
    Layout,
    StripingError,
    Targets,
    agreed,
)

#: What stands for the stripe count in a site file's `layout`.
COUNT_MARK = "{stripe_count}"

# The parser in C, where PyYAML has it: a file per process makes thousands of documents.
_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class LustreStriping:
    """Plain layouts, or one that the site file writes out as options of `lfs setstripe`."""

    mounted_as = ("lustre",)
    script = Path(__file__).with_suffix(".sh")
    counts_clients = True

    def stripe(self, asked: Asked) -> list[str]:
        set_layout = [call("stripe", *setstripe_options(asked))] if asked.anything else []
        return ["note_targets", *set_layout]

    def in_effect(self, stage: Path, asked: Asked) -> Layout:
        files = file_components(read_output(stage / LAYOUT_FILE))
        targets = asked.targets
        if asked.stripe_count == ALL_TARGETS and targets is None:
            targets = active_targets(read_output(stage / TARGETS_FILE)).active
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

    def count_targets(self, text: str) -> Targets | None:
        try:
            return active_targets(text)
        except StripingError:
            return None


def setstripe_options(asked: Asked) -> list[str]:
    """The options of `lfs setstripe` for what is asked."""
    if asked.layout is not None:
        return shlex.split(asked.layout.replace(COUNT_MARK, str(asked.stripe_count)))
    options = {
        "-c": asked.stripe_count,
        "-S": None if asked.size_kib is None else f"{asked.size_kib}k",
        "-i": asked.index,
        "-p": asked.pool,
    }
    return [
        word for name, value in options.items() if value is not None for word in (name, str(value))
    ]


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
