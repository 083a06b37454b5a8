"""Install hints of the program and its docs work: no index has a package of this name yet."""

from __future__ import annotations

import re
import tomllib

from support import ROOT

PAGES = (ROOT / "README.md", *sorted((ROOT / "examples").rglob("*.md")), ROOT / "examples" / "notebook.ipynb")
CODE = sorted((ROOT / "trecexam").rglob("*.py"))


def test_no_page_and_no_message_suggests_installing_from_an_index() -> None:
    texts = {path.relative_to(ROOT): path.read_text(encoding="utf-8") for path in (*PAGES, *CODE)}
    installs = {path: re.findall(r"pip install [^`\n]*trecexam\b.*", text) for path, text in texts.items()}
    in_clone = re.compile(r"pip install '\.\[[^']+\]' in a clone of trecexam")
    assert not [
        (path, line) for path, found in installs.items() for line in found if not in_clone.match(line)
    ]


def test_the_extras_in_messages_exist_in_the_package() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    named = [extra for path in PAGES for extra in _named(r"'\.\[([\w,]+)\]'", path.read_text())]
    named += [extra for path in CODE for extra in _named(r"\binstall\([\"'](\w+)[\"']\)", path.read_text())]
    assert len(named) > 15
    assert {*named} <= {*extras}


def _named(pattern: str, text: str) -> list[str]:
    return [extra for found in re.findall(pattern, text) for extra in found.split(",")]
