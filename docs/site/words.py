"""What the pages need on the site: links of the glossary's words, none to sources, a search."""

from __future__ import annotations

import posixpath
import re
from functools import cache
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

DOCS = Path(__file__).resolve().parents[1]
GLOSSARY = "glossary.md"
TERM = re.compile(r"^\| \*\*(.+?)\*\* \|", re.MULTILINE)
LINK = re.compile(r"\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s#]*)(#[^)\s]*)?\)")
#: What is no prose (code, links, headings, the first row of a table, HTML), and words of the
#: glossary in a name or in another sense.
OTHER = re.compile(
    r"^```.*?^```$|^~~~.*?^~~~$|`[^`\n]+`|!?\[[^\]]*\]\([^)]*\)|^#.*?$|^\|[^\n]*\n(?=\|[-:| ]+\|$)"
    r"|<[^>]+>|^    .*?$"
    r"|Spectrum Scale|logarithmic scale|% intervals?|environment variables?|solid state",
    re.MULTILINE | re.DOTALL,
)
#: Words of the glossary that are mostly plain English elsewhere: the loader resolves a library.
PLAIN = frozenset({"fall", "limit", "repeat"})
VERBS = frozenset({"acknowledge", "resolve", "rebaseline", "retire", "discard", "undo"})
#: GitHub needs the mark before a bar in the code of a table; here a reader would see it.
ROW = re.compile(r"^\|.*$", re.MULTILINE)
CODE = re.compile(r"`[^`\n]+`")
STYLE = """\
.md-typeset a.term { color: inherit; text-decoration: underline dotted; }
"""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the style of the links, and what searches without a server."""
    files.append(File.generated(config, "terms.css", content=STYLE))
    worker = (DOCS / "site" / "iframe-worker.js").read_text("utf-8")
    files.append(File.generated(config, "iframe-worker.js", content=worker))
    return files


@cache
def terms() -> dict[str, str]:
    """The anchor of each word of the glossary, the longest words first."""
    found = {}
    for cell in TERM.findall((DOCS / GLOSSARY).read_text("utf-8")):
        names = cell.split(", ")
        found |= dict.fromkeys(set(names) - PLAIN, anchor(names[0]))
    return dict(sorted(found.items(), key=lambda row: (-len(row[0]), row[0])))


def anchor(name: str) -> str:
    """The anchor of a word in the glossary."""
    return "term-" + re.sub(r"\W+", "-", name.lower()).strip("-")


def linked(text: str, path: str) -> str:
    """Return a page with a link at the first use of each word."""
    names = terms()
    pattern = re.compile(rf"\b({'|'.join(map(re.escape, names))})(s?)\b", re.IGNORECASE)
    left = set(names.values())
    home = posixpath.relpath(GLOSSARY, posixpath.dirname(path) or ".")

    def link(found: re.Match[str]) -> str:
        where = names.get(found[1].lower(), names.get(found[1]))
        if where not in left or (found[2] and found[1].lower() in VERBS):
            return found[0]
        left.discard(where)
        return f"[{found[0]}]({home}#{where}){{ .term }}"

    parts, end = [], 0
    for other in OTHER.finditer(text):
        parts += [pattern.sub(link, text[end : other.start()]), other[0]]
        end = other.end()
    return "".join([*parts, pattern.sub(link, text[end:])])


def without_sources(text: str, path: str) -> str:
    """Return a page whose links to files that the site does not have are plain text."""

    def link(found: re.Match[str]) -> str:
        said, target, place = found[1], found[2], found[3] or ""
        if not target or "://" in target or target.startswith("mailto:"):
            return found[0]
        full = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
        if full == "decisions":
            return f"[{said}]({target}0001-clock-and-rates.md)"
        if full.startswith(("..", "recipes")):
            return said
        return f"[{said}]({target}{place})"

    return LINK.sub(link, text)


def _with_bars(row: re.Match[str]) -> str:
    return CODE.sub(lambda code: code[0].replace("\\|", "|"), row[0])


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Change the links of a page."""
    path = page.file.src_uri
    if path == GLOSSARY:
        return TERM.sub(
            lambda row: f"| **{row[1]}**{{ #{anchor(row[1].split(', ')[0])} }} |", markdown
        )
    plain = without_sources(ROW.sub(_with_bars, markdown), path)
    return plain if path.startswith("reference/") else linked(plain, path)
