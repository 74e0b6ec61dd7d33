"""How a job script stops before it has written anything: one line that says why.

The sanity phase shows this line as the reason of the failure.
"""


def refuse(reason: str) -> str:
    """A shell command that ends the job; `reason` may name variables of the script."""
    return f'{{ echo "iobands: $file_system: {reason}" >&2; exit 1; }}'


def or_refuse(command: str, reason: str) -> str:
    """A shell command that runs `command`, and ends the job with its own words if it fails.

    Only the first line of these: some commands go on with pages of help.
    """
    said = r"""$(printf '%s\n' "$said" | head -n 1)"""
    return f"said=$({command} 2>&1) || {refuse(f'{reason}: {said}')}"
