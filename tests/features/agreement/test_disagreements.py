"""The report shows what grader and people disagree on with its texts, and nobody has to open anything."""

from __future__ import annotations

import json
import re
import shutil
from html import unescape
from pathlib import Path

import pytest
from support import ROOT, labels_of

import trecexam


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo track after an update, with a person's rating of an item, and a passage with a long text."""
    root = tmp_path_factory.mktemp("disagreements") / "track"
    shutil.copytree(ROOT / "examples" / "track", root, ignore=shutil.ignore_patterns("out", ".trecexam"))
    with trecexam.open_track(root) as track:
        track.override("q02", "sourdough-07", 5, item="q02/q1", who="ann", why="it names them")
        track.update()
    return root


def section(root: Path, heading: str) -> str:
    """The part of the report below a heading."""
    page = (root / "out" / "report.html").read_text().replace("&#39;", "'")
    return re.split("<h[23]", page.partition(f"<h3>{heading}</h3>")[2])[0]


def texts(root: Path) -> dict[str, str]:
    queries = dict(line.split("\t") for line in (root / "queries.tsv").read_text().splitlines())
    rows = map(json.loads, (root / "passages.jsonl").read_text().splitlines())
    return queries | {row["docid"]: row["text"] for row in rows}


def visible(html: str) -> str:
    """The text of a part of a page while nothing is opened."""
    folded = re.sub(r"</summary>.*?</details>", "", html, flags=re.DOTALL)
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", folded)).split())


def test_the_report_shows_the_passages_furthest_apart_with_both_labels(demo: Path) -> None:
    labels, judged, text = (
        labels_of(demo / "out" / "rubric.qrels"),
        labels_of(demo / "qrels.txt"),
        texts(demo),
    )
    # The person's rating is not the grader's.
    labels["q02", "sourdough-07"] = 0
    apart = {
        key: abs((judged[key] - 1) - (labels[key] - 4))
        for key in labels.keys() & judged.keys()
        if (labels[key] >= 4) != (judged[key] >= 1)
    }
    part = section(demo, "Disagreements")
    assert f"disagree on {len(apart)} of {len(labels.keys() & judged.keys())} passages" in part
    rows = part.split("<tr>")[2:]
    first = sorted(apart, key=lambda key: (-apart[key], key))[:10]
    assert len(rows) == len(first) == 10
    for row, key in zip(rows, first, strict=True):
        query_id, doc_id = key
        query, passage = text[query_id], f"{doc_id}: {text[doc_id]}"
        assert visible(row).startswith(f"{query_id}: {query} {passage[:300].rsplit(' ', 1)[0]}")
        assert visible(row).endswith(f"{labels[key]} {judged[key]}")
        assert "".join(passage.split()) in "".join(unescape(re.sub("<[^>]*>|…", "", row)).split())
