"""Every output file, compared with the one in tests/golden.

To write them again after an intended change (then read the diff):
TRECEXAM_UPDATE_GOLDEN=1 pytest tests/outputs/test_golden.py
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from support import REPORTED, ROOT, HashGrader, make_small_track, update, write_run

GOLDEN = ROOT / "tests" / "golden"
PLOTS = ("leaderboard", "scatter")
NAMES = (
    "report.html",
    *(f"plots/{name}.tsv" for name in PLOTS),
    "rubric.qrels",
    "rubric.subtopics.qrels",
    "leaderboard.tsv",
    "leaderboard.json",
    "per_query.tsv",
    "differences.tsv",
    "groups.tsv",
    "correlation.tsv",
    "correlation.json",
    "agreement.tsv",
    "holes.tsv",
    "rejected.tsv",
    "manifest.json",
)


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = make_small_track(tmp_path_factory.mktemp("golden") / "track", config=REPORTED)
    (root / "official_leaderboard.json").write_text('{"run0": 1, "run1": 2, "run2": 3}')
    write_run(root / "runs" / "skips.run", {"q1": ["q1-d03", "q1-d00"], "q9": ["q1-d00"]})
    (root / "runs" / "bad.run").write_text("q1 Q0 q1-d00 1 high bad\n")
    grader = HashGrader()
    grader.status = lambda cell: "unparsed" if cell.doc_id == "q2-d01" else "ok"
    update(root, grader)
    return root / "out"


def comparable(name: str, text: str) -> Any:
    """Text unchanged; JSON with floats to nine digits, without what depends on the installation."""
    if name == "report.html":
        # The text of the page; pictures and versions depend on the installation.
        return re.sub(r"<svg.*?</svg>|<dl class=.facts.>\n<dt>trecexam.*?</dl>", "", text, flags=re.DOTALL)
    if not name.endswith(".json"):
        return text
    value = json.loads(text, parse_float=lambda number: round(float(number), 9))
    if name == "manifest.json":
        value["versions"] = sorted(value["versions"])
        value["outputs"] = sorted(value["outputs"])
    return value


@pytest.mark.parametrize("name", NAMES)
def test_each_output_equals_its_golden_file(out: Path, name: str) -> None:
    text = (out / name).read_text()
    if os.environ.get("TRECEXAM_UPDATE_GOLDEN"):
        (GOLDEN / name).parent.mkdir(exist_ok=True)
        (GOLDEN / name).write_text(comparable(name, text) if name == "report.html" else text)
    assert comparable(name, text) == comparable(name, (GOLDEN / name).read_text())


def test_there_are_no_outputs_without_a_golden_file(out: Path) -> None:
    # The history has times; it is a log, and not an output of the present inputs.
    top = [name for name in NAMES if "/" not in name]
    assert sorted(path.name for path in out.iterdir()) == sorted((*top, "history.tsv", "plots"))
    kinds = ("svg", "tsv")
    assert sorted(path.name for path in (out / "plots").iterdir()) == sorted(
        f"{name}.{kind}" for name in PLOTS for kind in kinds
    )
