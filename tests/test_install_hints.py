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


def test_the_readme_begins_with_the_two_commands_that_set_up_everything() -> None:
    opening = (ROOT / "README.md").read_text(encoding="utf-8").split("\n## ")[0]
    commands = [line.split("#")[0].strip() for line in opening.splitlines()]
    assert [line for line in commands if line.startswith("bash ")] == [
        "bash examples/demo.sh",
        "bash tests/run.sh",
    ]
    assert all((ROOT / script).is_file() for script in ("examples/demo.sh", "tests/run.sh"))


def test_ci_runs_the_second_of_them_with_all_tests() -> None:
    assert re.search(r"tests/run\.sh\" --all$", (ROOT / ".ci" / "run").read_text(), re.MULTILINE)


def test_the_extras_in_messages_exist_in_the_package() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    named = [extra for path in PAGES for extra in _named(r"'\.\[([\w,]+)\]'", path.read_text())]
    named += [extra for path in CODE for extra in _named(r"\binstall\([\"'](\w+)[\"']\)", path.read_text())]
    assert len(named) > 15
    assert {*named} <= {*extras}


def _named(pattern: str, text: str) -> list[str]:
    return [extra for found in re.findall(pattern, text) for extra in found.split(",")]
