"""What a job left in files: what its commands printed, whatever bytes are in it."""

from pathlib import Path


def read_output(*paths: Path) -> str:
    """The text of these files one after the other; one that is not there says nothing."""
    return "\n".join(
        path.read_text(encoding="utf-8", errors="replace") for path in paths if path.exists()
    )
