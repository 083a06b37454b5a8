"""Hooks of mkdocs: README.md, the pages and design notes of examples/, and all files they link to.

Each has its path in the repository, so a link holds on GitHub and on the site alike.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[2]
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
    return files


def on_page_content(html: str, **_: Any) -> str:
    """The page; bars that a table's code has escaped, as GitHub wants them, lose the backslash."""
    return re.sub(r"<td>.*?</td>", lambda cell: cell[0].replace(r"\|", "|"), html, flags=re.DOTALL)
