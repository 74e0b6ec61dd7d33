"""Lustre: `lfs setstripe` on the run directory, `lfs getstripe -y` on each file in it.

`lfs setstripe` accepts more stripes than there are OSTs and gives fewer, so its exit status
proves nothing: only the layout of the files that were written counts. Tested on captured output
of Lustre 2.17.
"""

from pathlib import Path

import yaml

from .layout import Layout, StripingError

#: What stands for "all OSTs" in a stripe count.
ALL_TARGETS = -1

LAYOUT_FILE = "layout.yaml"
TARGETS_FILE = "targets.txt"


class LustreStriping:
    """Plain layouts as asked for; a composite layout is read by its last component in use."""

    def set_commands(self, stripe_count: int | None) -> list[str]:
        return [f'lfs setstripe -c {stripe_count} "$run_directory" || exit 1']

    def read_back_commands(self) -> list[str]:
        return [
            f'lfs osts "$run_directory" > {TARGETS_FILE}',
            # getstripe names no file in its YAML: one document a file keeps them apart.
            f'for file in "$run_directory"/*; do echo "---"; lfs getstripe -y "$file"; done '
            f"> {LAYOUT_FILE}",
        ]

    def in_effect(self, stage_directory: Path, stripe_count: int | None) -> Layout:
        layouts = file_layouts((stage_directory / LAYOUT_FILE).read_text(encoding="utf-8"))
        expected, asked = stripe_count, str(stripe_count)
        if stripe_count == ALL_TARGETS:
            targets = (stage_directory / TARGETS_FILE).read_text(encoding="utf-8")
            expected = active_targets(targets)
            asked = f"all {expected} active OSTs"
        for layout in layouts:
            if layout.stripe_count != expected:
                raise StripingError(
                    f"stripe count asked: {asked}; in effect: {layout.stripe_count}"
                )
        sizes = {layout.stripe_size for layout in layouts}
        if len(sizes) > 1:
            raise StripingError(f"the files differ in stripe size: {sorted(sizes)}")
        return layouts[0]


def file_layouts(text: str) -> list[Layout]:
    """The layout of each file, from `lfs getstripe -y`, a YAML document a file.

    Raises:
        StripingError: there is none, or a document is not a layout.
    """
    try:
        documents = [document for document in yaml.safe_load_all(text) if document is not None]
    except yaml.YAMLError as error:
        raise StripingError(f"lfs getstripe -y gave no YAML: {error}") from error
    if not documents:
        raise StripingError("lfs getstripe gave no layout: were files written, and is it Lustre?")
    return [_layout(document) for document in documents]


def _layout(document: object) -> Layout:
    fields = document
    if isinstance(document, dict) and "components" in document:
        in_use = [
            component["sub_layout"]
            for component in document["components"]
            if "init" in str(component.get("lcme_flags"))
        ]
        fields = in_use[-1] if in_use else None
    try:
        return Layout(int(fields["lmm_stripe_count"]), int(fields["lmm_stripe_size"]))
    except (KeyError, TypeError, ValueError) as error:
        raise StripingError(f"lfs getstripe -y gave no layout but {document!r}") from error


def active_targets(text: str) -> int:
    """The number of active OSTs, from `lfs osts`.

    Raises:
        StripingError: there is none.
    """
    count = sum(line.split()[-1] == "ACTIVE" for line in text.splitlines() if line.strip())
    if not count:
        raise StripingError(f"lfs osts names no active OST: {text.strip()!r}")
    return count
