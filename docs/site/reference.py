"""The reference, written from the code at each build: a page for everything that has a list."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from iobands.model import FIELDS
from iobands.snapshot import Severity

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "setup"))

import manual  # noqa: E402 (beside this folder, not in the package)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages, and the decisions to the navigation."""
    pages = {
        "commands": _commands(),
        "exit-statuses": _exit_statuses(),
        "checks": _checks(),
        "columns": _columns(),
        "site-file": _site_file(),
        "benchio": _benchio(),
    }
    for name, text in pages.items():
        files.append(File.generated(config, f"reference/{name}.md", content=text))
    return files


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Replace a pattern in the navigation by the pages that it matches."""
    for part in config.nav or ():
        for rows in part.values():
            for row in rows if isinstance(rows, list) else ():
                for name, path in row.items():
                    if isinstance(path, str) and "*" in path:
                        found = sorted((ROOT / "docs").glob(path))
                        row[name] = [str(each.relative_to(ROOT / "docs")) for each in found]
    return config


def _table(head: tuple[str, ...], rows: Iterator[tuple[str, ...]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def _commands() -> str:
    intro = (
        "# Commands\n\n`man iobands` and `man iobands-run` show the same pages where the wheel is "
        "installed. Without an argument that names them, perflogs and configuration come from "
        "the [site's directory](../glossary.md) around the working directory.\n\n"
    )
    return intro + "\n".join(manual.markdown(page) for page in manual.pages())


def _exit_statuses() -> str:
    meanings = {
        0: "all is well",
        1: "a warning: an acknowledged drop, a flaky check, or a directory left behind",
        2: "critical: a series has changed for the worse, or an incident",
        3: "unknown: a sample is missing, or something could not be read; also a wrong option",
    }
    alerts = _table(
        ("Severity of an alert", "Exit status"),
        ((f"`{each.value}`", str(each.exit_status)) for each in Severity),
    )
    said = _table(
        ("Command", "Exit status"),
        (
            (
                f"[`{page.name}`](commands.md#{page.file})",
                " ".join(
                    sentence
                    for text in page.paragraphs
                    for sentence in re.split(r"(?<=\.) (?=[A-Z`])", text)
                    if "exit status" in sentence
                )
                or "0, or 3 after an error",
            )
            for page in manual.pages()
        ),
    )
    head = _table(("Status", "Meaning"), ((str(status), text) for status, text in meanings.items()))
    order = "Of several, the worst counts: 2, 3, 1, 0.\n"
    return f"# Exit statuses\n\n{head}\n{order}\n{alerts}\n{said}"


def _checks() -> str:
    rows = []
    for path in sorted((ROOT / "checks").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ClassDef) and any(
                ast.unparse(each).endswith("simple_test") for each in node.decorator_list
            ):
                what = " ".join((ast.get_docstring(node) or "").split("\n\n")[0].split())
                rows.append((f"`{node.name}`", what, f"`{path.relative_to(ROOT)}`"))
    intro = (
        "# Checks\n\n`iobands reframe -- -l` lists the checks of your site. "
        "[Measure](../howto/measure.md) says how to select them, and [Cases](../cases.md) what "
        "the cases stand for.\n\n"
    )
    return intro + _table(("Check", "What it measures", "Source"), iter(rows))


def _columns() -> str:
    contract = (ROOT / "docs" / "contracts.md").read_text("utf-8")
    meanings = dict(re.findall(r"^(\| `\w+` \| \w+ \| [^|]* \|) (.+) \|$", contract, re.MULTILINE))
    rows = (
        (
            f"`{each.name}`",
            each.type,
            each.role.replace("_", " "),
            each.unit,
            meanings[f"| `{each.name}` | {each.type} | {each.unit} |"],
        )
        for each in FIELDS
    )
    intro = (
        "# Columns\n\nThe columns of a perflog. "
        "[Contract 2](../contracts.md#contract-2-perflog-and-run-report) says how they are read."
        "\n\n"
    )
    return intro + _table(("Column", "Type", "Role", "Unit", "Meaning"), rows)


def _site_file() -> str:
    example = (ROOT / "config" / "systems" / "example.py").read_text("utf-8")
    schema = (ROOT / "config" / "site.schema.yaml").read_text("utf-8")
    return (
        "# Site file\n\n[Add a site](../howto/add-a-site.md) says how to begin, and "
        "[contract 4](../contracts.md#contract-4-site-configuration) what each entry means.\n\n"
        f"## The template\n\n```python\n{example}```\n\n"
        f"## What a site file may say\n\n```yaml\n{schema}```\n"
    )


def _benchio() -> str:
    command = ["groff", "-man", "-Tutf8", "-P-cbou", "-rLL=76n", "src/benchio/benchio.1"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return f"# benchio\n\nThe manual page benchio(1).\n\n```text\n{done.stdout.strip()}\n```\n"
