"""Tests pass in a checkout that has no data next to it: they find such data in one way, which skips."""

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
#: As one part of a path, and as a path.
PART, PATH = re.compile(r"shared(/|$)"), re.compile(r"(\./|/.*)?\.\./(.*/)?shared(/|$)")


def other_ways(source: str) -> Iterator[int]:
    """The lines where a path into the folder is made; docstrings and texts of results may name it."""
    for node in ast.walk(ast.parse(source)):
        operands: list[ast.expr] = []
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
            operands = [node.left, node.right]
        if isinstance(node, ast.Call):
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            operands = node.args if name in ("Path", "joinpath", "join", "glob", "rglob", "open") else []
        for operand in operands:
            text = operand.values[0] if isinstance(operand, ast.JoinedStr) else operand
            path = text.value if isinstance(text, ast.Constant) else ""
            if isinstance(path, str) and (PART.match(path) or PATH.match(path)):
                yield node.lineno


def test_no_file_finds_data_outside_the_repository_in_another_way() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}"
        for path in sorted(TESTS.rglob("*.py"))
        if path != HELPER
        for line in other_ways(path.read_text(encoding="utf-8"))
    ]
    assert not found
    scripts = [path for path in TESTS.rglob("*.sh") if "shared/" in path.read_text(encoding="utf-8")]
    assert not scripts


@pytest.mark.parametrize(
    "line",
    [
        'ROOT.parent / "shared" / "dl19"',
        'ROOT.parent / "shared/dl19"',
        'ROOT / f"../shared/{name}"',
        'Path("../shared/prompts/support.txt").read_text()',
        'ROOT.parent.joinpath("shared", "dl19")',
        'ROOT.parent.glob("shared/*")',
    ],
)
def test_other_ways_are_found(line: str) -> None:
    assert [*other_ways(line)] == [1]


def test_a_test_without_its_data_is_skipped_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outside, "_FOLDER", tmp_path)
    with pytest.raises(pytest.skip.Exception, match=r"^\.\./shared/dl19/x\.gz is not here$"):
        outside.outside("dl19/x.gz")
    (tmp_path / "dl19").mkdir()
    (tmp_path / "dl19" / "x.gz").touch()
    assert outside.outside("dl19/x.gz") == outside.outside("dl19/*.gz") == tmp_path / "dl19" / "x.gz"
