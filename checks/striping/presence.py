"""That the file system is the one that the site file names, and its commands are at hand.

A directory exists on the root disk, too, while its file system is not mounted: without this a
run would measure that disk. Nothing is written before these commands have passed.
"""

from collections.abc import Mapping, Sequence

from ..refusal import refuse
from .layout import Striping


def mount_names(settings: Mapping, backend: Striping) -> Sequence[str]:
    """What the mount table may call a file system; empty where anything will do."""
    named = settings.get("mounted_as")
    return [named] if named else backend.mounted_as


def require_commands(settings: Mapping, backend: Striping) -> list[str]:
    """Shell commands that end the job unless `$file_system` is what its `settings` say."""
    kind, names = settings["type"], mount_names(settings, backend)
    commands = []
    if names:
        asked = f"{kind}, mounted as {names[0]}" if "mounted_as" in settings else kind
        # df asks the mount table, which tells file systems in user space apart; stat does not.
        commands += [
            'mounted_type=$(df --output=fstype "$file_system" 2> /dev/null | tail -n 1)',
            f'case "${{mounted_type:-nothing}}" in {"|".join(names)}) ;; *) '
            + refuse(
                f"type asked: {asked}; mounted there: ${{mounted_type:-nothing}}: "
                "is it mounted on $(uname -n)?"
            )
            + " ;; esac",
        ]
    for group in backend.tools:
        found = " || ".join(f"command -v {tool} > /dev/null" for tool in group)
        missing = refuse(f"type {kind} needs the command {' or '.join(group)}, which is not here")
        commands.append(f"{found} || {missing}")
    return commands
