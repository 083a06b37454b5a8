"""`trecexam holes` and out/holes.tsv, against counts in the files."""

from __future__ import annotations

import json
from pathlib import Path

import ir_measures
import pytest
from support import HashGrader, make_small_track, printed, write_run

import trecexam
from converters.errors import ConversionError
from trecexam.cli.main import run

HEADER = ["run", "query_id", "depth", "retrieved", "unjudged", "ungraded"]


def table(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[list[list[str]], str]:
    """The rows without the header, and what was said."""
    shown = printed(capsys, "holes", *arguments)
    header, *rows = (line.split("\t") for line in shown.out.splitlines())
    depths = {row[2] for row in rows}
    assert header == [*HEADER, f"Judged@{depths.pop() if len(depths) == 1 else 'depth'}"]
    return rows, shown.err


def make_holes(root: Path) -> None:
    """Judgments without every third passage, with one -1 and one -2; a run that skips queries."""
    lines = (root / "qrels.txt").read_text().splitlines()
    kept = [line for number, line in enumerate(lines) if number % 3]
    kept[0], kept[1] = kept[0][:-1] + "-1", kept[1][:-1] + "-2"
    (root / "qrels.txt").write_text("".join(line + "\n" for line in kept))
    write_run(root / "runs" / "skips.run", {"q2": ["q2-d00", "q2-d01", "new"]})


def counted(
    root: Path, depth: int, pool_depth: int = 8
) -> dict[tuple[str, str], tuple[int, int, int, float]]:
    """run, query -> retrieved, unjudged, ungraded, Judged; from files whose ranks follow the scores."""
    lines = (root / "qrels.txt").read_text().splitlines()
    judged = {tuple(line.split()[::2]) for line in lines if not line.endswith(" -1")}
    texts = {json.loads(line)["docid"] for line in (root / "passages.jsonl").read_text().splitlines()}
    ranked: dict[str, dict[str, list[str]]] = {}
    for path in (root / "runs").iterdir():
        for line in path.read_text().splitlines():
            query_id, _, doc_id, *_ = line.split()
            ranked.setdefault(path.stem, {}).setdefault(query_id, []).append(doc_id)
    pool = {(q, d) for by in ranked.values() for q, docs in by.items() for d in docs[:pool_depth]}
    found = {}
    for name, by in ranked.items():
        for query_id in ("q1", "q2", "q3"):
            docs = by.get(query_id, [])[:depth]
            unjudged = sum((query_id, d) not in judged for d in docs)
            ungraded = sum((query_id, d) not in pool or d not in texts for d in docs)
            rate = (len(docs) - unjudged) / len(docs) if docs else 0.0
            found[name, query_id] = (len(docs), unjudged, ungraded, rate)
        sums = [found[name, q] for q in ("q1", "q2", "q3")]
        found[name, "all"] = (
            *(sum(row[column] for row in sums) for column in range(3)),  # type: ignore[assignment]
            sum(row[3] for row in sums) / 3,
        )
    return found


@pytest.mark.parametrize("depth", [1, 3, 8, 50])
def test_rows_equal_a_count_in_the_files(
    graded: Path, capsys: pytest.CaptureFixture[str], depth: int
) -> None:
    make_holes(graded)
    assert run(["watch", str(graded), "--once"]) == 1
    rows, _ = table(capsys, graded, "--depth", str(depth))
    expected = counted(graded, depth)
    assert len(rows) == len(expected)
    for name, query_id, k, retrieved, unjudged, ungraded, rate in rows:
        whole, missing, blank, judged = expected[name, query_id]
        assert (k, retrieved, unjudged, ungraded) == (str(depth), str(whole), str(missing), str(blank))
        assert rate == f"{judged:.6f}"


def test_runs_with_most_unjudged_passages_come_first_each_with_its_sums_first(
    graded: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make_holes(graded)
    rows, said = table(capsys, graded)
    assert [row[1] for row in rows] == ["all", "q1", "q2", "q3"] * 4
    sums = [(-int(row[4]), row[0]) for row in rows if row[1] == "all"]
    assert sums == sorted(sums)
    assert table(capsys, graded, "--by", "run")[0] == [row for row in rows if row[1] == "all"]
    assert f"most unjudged: {sums[0][1]} ({-sums[0][0]})" in said


def test_other_judgments_can_be_given(graded: Path, tmp_path: Path) -> None:
    (tmp_path / "o.qrels").write_text("q1 0 q1-d00 2\n")
    with trecexam.open_track(graded) as track:
        found = track.holes(qrels=tmp_path / "o.qrels", by="run")
        assert set(found.table["unjudged"]) == {23, 24}
        said = "o.qrels: 2 of the track's 3 queries have no official judgment at all"
        assert any(said in note for note in found.notes)
        with pytest.raises(ConversionError, match=r"none\.qrels: no such file"):
            track.holes(qrels=tmp_path / "none.qrels")


def test_without_official_judgments_grades_are_counted_and_the_requirement_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = make_small_track(tmp_path / "track")
    (root / "qrels.txt").unlink()
    (root / "passages.jsonl").write_text('{"docid": "q1-d00", "text": "the only one"}\n')
    with trecexam.open_track(root, grader=HashGrader()) as track:
        track.update()
        assert [row.unjudged for row in track.holes().sums()] == [None] * 3
    header, *rows = (line.split("\t") for line in (root / "out" / "holes.tsv").read_text().splitlines())
    assert header == [*HEADER, "Judged@8"]
    # run0 and run2 have q1-d00, and so fewer ungraded passages.
    assert [row for row in rows if row[1] == "all"] == [
        [run, "all", "8", "24", "", ungraded, ""]
        for run, ungraded in (("run1", "24"), ("run0", "23"), ("run2", "23"))
    ]
    _, said = table(capsys, root)
    assert "no official judgments: put qrels.txt here" in said
    assert "until then only ungraded passages are counted" in said


@pytest.mark.parametrize("depth", [1, 3, 8])
def test_judged_at_k_equals_ir_measures(graded: Path, capsys: pytest.CaptureFixture[str], depth: int) -> None:
    make_holes(graded)
    lines = (graded / "qrels.txt").read_text().splitlines()
    (graded / "qrels.txt").write_text("".join(line + "\n" for line in lines if not line.endswith(" -1")))
    qrels = list(ir_measures.read_trec_qrels(str(graded / "qrels.txt")))
    for name, *_, judged in table(capsys, graded, "--by", "run", "--depth", str(depth))[0]:
        ranked = ir_measures.read_trec_run(str(graded / "runs" / f"{name}.run"))
        found = ir_measures.calc_aggregate([ir_measures.Judged @ depth], qrels, ranked)
        assert [f"{value:.6f}" for value in found.values()] == [judged]
