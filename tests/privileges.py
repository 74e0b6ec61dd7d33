"""What tests need beyond an ordinary user's rights, such as mounts or a network, each tried once.

A container or a chroot may refuse root what another machine allows it.
"""

from __future__ import annotations

import subprocess
import sys
from functools import cache

import pytest

#: For each name that the mark `needs` takes, a script that succeeds if the machine allows it.
TRIALS = {
    "mounts": 'mount -t tmpfs none "$1" && umount "$1"',
    "loop devices": 'truncate -s 1M "$1/image" && where=$(losetup --find --show "$1/image") && '
    'losetup --detach "$where"',
    "mount namespaces": "unshare --mount true",
    "other users": 'chown 1:1 "$1" && setpriv --reuid 1 --clear-groups true',
    "fewer capabilities": "setpriv --bounding-set=-dac_override,-dac_read_search true",
    "tracing": "strace -o /dev/null true",
    "PyPI": f'{sys.executable} -m pip download --quiet --no-deps --dest "$1" filelock',
}


@cache
def lacking(what: str) -> str:
    """Return why a test that needs `what` cannot run here; empty if it can."""
    script = f'set -- "$(mktemp -d)"; trap \'rm -rf "$1"\' EXIT; {TRIALS[what]}'
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=False)
    said = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
    return f"needs {what}: {said[0]}" if done.returncode else ""


def skip_where_lacking(item: pytest.Item) -> None:
    """Skip a test whose mark `needs` names something that this machine does not allow."""
    for mark in item.iter_markers("needs"):
        for what in mark.args:
            if why := lacking(what):
                pytest.skip(why)
