"""Tests that need external data find it with one helper and are skipped without it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import outside
import pytest
from support import ROOT

TESTS = ROOT / "tests"
HELPER = TESTS / "helpers" / "outside.py"
#: A path into the folder; docstrings and commands may name it.
FOLDER = re.compile(r"""(/ |Path\(|open\(|glob\(|join\w*\()f?["'](\.*/)*shared[/"']""")


def _sources(pattern: str, *words: str) -> Iterator[tuple[Path, str]]:
    """The files that contain one of the words; parsing all takes two seconds."""
    for path in TESTS.rglob(pattern):
        source = path.read_text(encoding="utf-8")
        if any(word in source for word in words):
            yield path, source


def test_tests_find_external_data_only_through_the_helper() -> None:
    found = {path for path, source in _sources("*.py", "shared") if FOLDER.search(source)}
    assert found == {HELPER}
    assert not [*_sources("*.sh", "shared/")]


#: Fixtures of conftest.py that skip if the data is missing.
FIXTURES = {"dl19", "trec_eval"}


def uses_data(source: str) -> bool:
    """Whether a test file imports the helper, or has one of the fixtures."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module == "outside":
            return True
        if isinstance(node, ast.Import) and any(alias.name == "outside" for alias in node.names):
            return True
        if isinstance(node, ast.FunctionDef) and FIXTURES & {arg.arg for arg in node.args.args}:
            return True
    return False


def test_the_full_run_repeats_each_file_that_uses_external_data_without_it() -> None:
    (pattern,) = re.findall(
        r"grep -rlE --include='test_\*\.py' '([^']*)' tests", (TESTS / "run.sh").read_text()
    )
    sources = dict(_sources("test_*.py", "outside", *FIXTURES))
    users = {str(path.relative_to(ROOT)) for path, source in sources.items() if uses_data(source)}
    found = {
        str(path.relative_to(ROOT)) for path, source in sources.items() if re.search(pattern, source, re.M)
    }
    assert "tests/dl19/test_agreement.py" in users
    assert users <= found


def test_a_test_without_its_data_is_skipped_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outside, "_FOLDER", tmp_path)
    with pytest.raises(pytest.skip.Exception, match=r"^\.\./shared/dl19/x\.gz is not here$"):
        outside.outside("dl19/x.gz")
    (tmp_path / "dl19").mkdir()
    (tmp_path / "dl19" / "x.gz").touch()
    assert outside.outside("dl19/x.gz") == outside.outside("dl19/*.gz") == tmp_path / "dl19" / "x.gz"
