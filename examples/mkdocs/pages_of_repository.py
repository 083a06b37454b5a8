"""Hooks of mkdocs: README.md, the pages and design notes of examples/, and all files they link to.

Each has its path in the repository, so a link holds on GitHub and on the site alike.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[2]
LOOK = ROOT / "trecexam" / "results" / "page" / "look" / "look.css"
#: What material has its colours and letters from; the rest of look.css is for our own pages.
DRESS = """
[data-md-color-scheme][data-md-color-primary] {
  --md-primary-fg-color: var(--top); --md-primary-bg-color: var(--on-top);
  --md-accent-fg-color: var(--accent);
  --md-default-bg-color: var(--paper); --md-default-fg-color: var(--ink);
  --md-default-fg-color--light: var(--soft); --md-typeset-color: var(--ink);
  --md-typeset-a-color: var(--link);
  --md-code-bg-color: var(--shade); --md-code-fg-color: var(--ink);
}
.md-typeset :is(h1, h2, h3) { color: var(--ink); font-weight: 700; letter-spacing: 0; }
.md-typeset a { text-underline-offset: .15em; text-decoration: underline; }
.md-typeset .headerlink { text-decoration: none; }
.md-typeset td:first-child code { word-break: normal; overflow-wrap: normal; white-space: nowrap; }
@media (max-width: 50rem) {
  .md-typeset table:not([class]) :is(th, td) { min-width: 0; padding: .6em; }
}
body { --md-text-font-family: var(--font); --md-code-font-family: var(--mono); }
"""
#: The place in `[text](place#heading)`, where it is none on the web.
LINKED = re.compile(r"\]\(([^)#:]+)")


def on_files(files: Files, config: Any) -> Files:
    """The pages of mkdocs/pages, and those of the repository."""
    waiting = [
        ROOT / "README.md",
        *sorted((ROOT / "examples").glob("*.md")),
        *sorted((ROOT / "examples" / "reference").glob("*.md")),
        *(ROOT / "examples" / "design").glob("*.md"),
    ]
    added: set[Path] = set()
    while waiting:
        path = waiting.pop()
        if path in added or not path.is_file():
            continue
        added.add(path)
        place = path.relative_to(ROOT).as_posix()
        files.append(File.generated(config, place, abs_src_path=str(path)))
        if path.suffix == ".md":
            waiting += [
                (path.parent / target).resolve() for target in LINKED.findall(path.read_text("utf-8"))
            ]
    files.append(File.generated(config, "look.css", content=_look()))
    return files


def _look() -> str:
    """The colours of look.css as the docs have them: light and dark by the reader's choice."""
    sizes, light, dark = re.findall(r":root \{(.*?)\}", LOOK.read_text("utf-8"), flags=re.DOTALL)[:3]
    colours = {"default": light.replace("light dark", "light"), "slate": f"color-scheme: dark; {dark}"}
    schemes = (f'[data-md-color-scheme="{name}"] {{{of}}}' for name, of in colours.items())
    return "\n".join((f":root {{{sizes}}}", *schemes, DRESS))


def on_page_content(html: str, **_: Any) -> str:
    """The page; bars that a table's code has escaped, as GitHub wants them, lose the backslash."""
    return re.sub(r"<td>.*?</td>", lambda cell: cell[0].replace(r"\|", "|"), html, flags=re.DOTALL)
