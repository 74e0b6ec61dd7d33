"""The script that looks at file systems from a node: all at once, and none may hang the others.

Each leaves a file of sections, `@@@ name` and what a command printed. Only a file system of the
right type is written to. Knows the striping backends; judges nothing.
"""

from collections.abc import Mapping, Sequence

from ..striping import BACKENDS, mount_names
from ..striping.layout import Striping

#: How long a file system has to answer, in seconds. None is waited for after that.
PATIENCE_SECONDS = 60

_LUSTRE_QUOTA = """\
timeout 10 lfs quota -q -u "$(id -un)" "$file_system"
timeout 10 lfs quota -q -g "$(id -gn)" "$file_system"
project=$(timeout 10 lfs project -d "$file_system" | awk '{ print $1 }')
[ "${project:-0}" -eq 0 ] || timeout 10 lfs quota -q -p "$project" "$file_system\""""

# Of the directory and of all above it that are on the same file system.
_CEPH_QUOTA = """\
directory=$file_system
while [ "$(df --output=target "$directory" | tail -n 1)" = "$target" ]; do
for unit in bytes files; do
limit=$(getfattr --absolute-names --only-values -n "ceph.quota.max_$unit" "$directory") || limit=0
used=$(getfattr --absolute-names --only-values -n "ceph.dir.r$unit" "$directory") || continue
echo "ceph-quota $unit $limit $used"
done
[ "$directory" != / ] || break
directory=$(dirname "$directory")
done"""

_POSIX_QUOTA = """\
source=$(df --output=source "$file_system" | tail -n 1)
timeout 10 quota -w -p -u -g | grep -F " $source " """

_QUOTA = {"lustre": _LUSTRE_QUOTA, "cephfs": _CEPH_QUOTA, "posix": _POSIX_QUOTA}


def answer_file(number: int) -> str:
    """The file with what the file system at this place in the list answered, once all of it."""
    return f"file_system_{number}.txt"


def unfinished_file(number: int) -> str:
    """The file with what it has answered so far."""
    return f"{answer_file(number)}.part"


def directory_file(number: int) -> str:
    """The file with the name of the directory that was made there; it is left if that hangs."""
    return f"directory_{number}.txt"


def script(file_systems: Sequence[Mapping]) -> str:
    """The whole script, for file systems as the site configuration has them."""
    lines = ["#!/bin/bash", "export LC_ALL=C"]
    for number, settings in enumerate(file_systems):
        whole, part = answer_file(number), unfinished_file(number)
        lines += [
            "{ (",
            *_look(settings, directory_file(number)),
            # Nobody who reads what the script prints shall wait for what hangs.
            f") > {part} 2>&1 && mv {part} {whole}; }} < /dev/null > /dev/null 2>&1 &",
        ]
    waits = PATIENCE_SECONDS * 5
    lines += [
        "waits=0",
        f'while [ -n "$(jobs -r)" ] && [ "$waits" -lt {waits} ]; do',
        "sleep 0.2; waits=$((waits + 1))",
        "done",
        "exit 0  # and not wait for what hangs",
    ]
    return "\n".join([*lines, ""])


def _look(settings: Mapping, directory_file: str) -> list[str]:
    backend = BACKENDS[settings["type"]]
    return [
        f'file_system="{settings["path"]}"',
        "echo '@@@ node'; uname -n",
        "echo '@@@ mounted'",
        'mounted=$(df --output=fstype,target "$file_system" 2>&1 | tail -n 1); echo "$mounted"',
        "type=${mounted%% *}; target=$(printf '%s' \"$mounted\" | sed 's/^[^ ]* *//')",
        *_end_unless_mounted(mount_names(settings, backend)),
        "echo '@@@ missing commands'",
        *_missing_commands(backend),
        "echo '@@@ space'; df -Pk \"$file_system\" | tail -n 1",
        "echo '@@@ files'; df -Pi \"$file_system\" | tail -n 1",
        "echo '@@@ targets'",
        f"{{ {backend.targets_command or ':'}; }} 2> /dev/null",
        "echo '@@@ quota'",
        "{",
        _QUOTA.get(settings["type"], ":"),
        "} 2> /dev/null",
        "echo '@@@ write'",
        *_write(directory_file),
    ]


def _end_unless_mounted(names: Sequence[str]) -> list[str]:
    # df tells of a path that is not there in its own words, which begin with its name.
    ends = ["case $type in df:) exit 0 ;; esac"]
    return [*ends, f"case $type in {'|'.join(names)}) ;; *) exit 0 ;; esac"] if names else ends


def _missing_commands(backend: Striping) -> list[str]:
    return [
        " || ".join(f"command -v {tool} > /dev/null" for tool in group)
        + f" || echo '{' or '.join(group)}'"
        for group in backend.tools
    ]


def _write(directory_file: str) -> list[str]:
    return [
        'if directory=$(mktemp -d "$file_system/iobands-EnvProbe-XXXXXXXXXX" 2>&1); then',
        """trap 'rm -rf -- "$directory"' EXIT; trap 'exit 143' TERM""",
        f'echo "$directory" > {directory_file}',
        "before=$(date +%s.%N)",
        'said=$(echo iobands | dd of="$directory/file" conv=fsync status=none 2>&1)',
        'if [ "$(cat "$directory/file" 2> /dev/null)" = iobands ]; then',
        'echo "clock $before $(stat -c %.9Y "$directory/file") $(date +%s.%N)"',
        'else echo "failed: ${said:-what was written did not come back}"; fi',
        'else echo "failed: $directory"; fi',
    ]
