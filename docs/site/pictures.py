"""The pictures of the explanations, drawn from the made-up site of `iobands demo` at each build.

A comment `<!-- picture: NAME: what it shows -->` becomes the picture.
"""

from __future__ import annotations

import io
import re
import shutil
import tempfile
from datetime import datetime, timezone
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from rich.console import Console
from rich.text import Text

from iobands.commands.cli import SiteOptions
from iobands.commands.status import rebuild_log
from iobands.judge.site import read_site
from iobands.model import TARGET
from iobands.snapshot import Series, Snapshot
from iobands.source.demo import write_demo
from iobands.views.digest import digest_text, explanation
from iobands.views.figures import evidence, time_series
from iobands.views.peers import peers_text

#: The day of the pictures: the same pages give the same site.
NOW = datetime(2026, 11, 22, 7, 30, tzinfo=timezone.utc)
HEALTHY = "scratch fpp stripes=all write_bw"
DROPPED = "fast fpp stripes=1 write_bw"
COMMENT = re.compile(r"<!-- picture: ([\w-]+): (.+?) -->")


def made_up() -> Snapshot:
    """The demo as it is judged on the day of the pictures."""
    root = Path(tempfile.mkdtemp())
    try:
        write_demo(root, NOW)
        rebuild_log(SiteOptions(root=root, as_of=NOW.isoformat()))
        return read_site(root / "perflogs", root / "config/bands", root / "config/alerts", now=NOW)
    finally:
        shutil.rmtree(root)


def terminal(command: str, text: str) -> str:
    """Return a picture of a terminal with a command and what it prints."""
    console = Console(file=io.StringIO(), width=82, record=True)
    console.print(Text(f"$ {command}\n{text.rstrip()}\n"))  # what is below the last line is cut
    # without the font that rich would load from the network
    drawn = console.export_svg(title=command, unique_id="iobands")
    return re.sub(r"@font-face \{.*?\}", "", drawn, flags=re.DOTALL)


def drawn() -> dict[str, str | bytes]:
    """The pictures by their names."""
    site = made_up()
    series: dict[str, Series] = {each.label: each for each in site.series}
    proof = explanation(site, series[DROPPED], 80).partition("Newest sample")
    return {
        "proof": terminal(f"iobands explain {DROPPED}", "".join(proof[1:])),
        "bands": time_series([series[HEALTHY]], site.now, "svg"),
        "evidence": evidence(site, series[DROPPED]) or b"",
        "digest": terminal(
            "iobands status", digest_text(site, Console(file=io.StringIO(), width=80))
        ),
        "targets": terminal("iobands targets", peers_text(site, TARGET).split("\n\n")[0]),
    }


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pictures."""
    for name, picture in drawn().items():
        files.append(File.generated(config, f"pictures/made/{name}.svg", content=picture))
    return files


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Show the pictures where a page asks for them."""
    up = "../" * page.file.src_uri.count("/")
    return COMMENT.sub(rf"![\2]({up}pictures/made/\1.svg)\n\n*\2*", markdown)
