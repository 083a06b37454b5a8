"""Banks whose query ids are `query/facet`, as of TREC CAR: scored by query, exported by facet."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support import hashed_rating, make_small_track, printed, record_grades

import trecexam
from trecexam.cli.main import run
from trecexam.extensions.banks.editing import items_to_edit

#: The facet of each of a query's four questions; the last one belongs to the query as a whole.
FACETS = ("T_1", "T_1", "T_2/deep", None)


def faceted(root: Path, *, in_query_id: bool) -> Path:
    """The small track with facets, in the bank's query ids or as facet ids of its items."""
    make_small_track(root, config=f"[track]\ndepth = 8\nfacets = {str(in_query_id).lower()}\n")
    lines = []
    for line in (root / "bank.questions.jsonl").read_text().splitlines():
        row = json.loads(line)
        for question, facet in zip(row["questions"], FACETS, strict=True):
            query_id = f"{row['query_id']}/{facet}" if in_query_id and facet else row["query_id"]
            facet_id = {} if in_query_id or facet is None else {"facet_id": facet}
            lines.append({"query_id": query_id, "questions": [{**question, **facet_id}]})
    (root / "bank.questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in lines))
    return root


def update(root: Path) -> None:
    record_grades(root)
    toml = (root / "trecexam.toml").read_text()
    (root / "trecexam.toml").write_text(f'{toml}[grader]\nname = "recorded"\nrecorded = "grades.jsonl"\n')
    assert run(["watch", str(root), "--once"]) == 0


def export(capsys: pytest.CaptureFixture[str], root: Path, *words: str, status: int = 0) -> tuple[str, str]:
    done = printed(capsys, "export", "qrels", root, *words, status=status)
    return done.out, done.err


def test_facets_in_query_ids_are_scored_by_query(tmp_path: Path) -> None:
    by_id, by_field = (faceted(tmp_path / str(kind), in_query_id=kind) for kind in (True, False))
    plain = make_small_track(tmp_path / "plain")
    for root in (by_id, by_field, plain):
        update(root)
    for name in (
        "leaderboard.tsv",
        "per_query.tsv",
        "rubric.qrels",
        "rubric.subtopics.qrels",
        "correlation.tsv",
    ):
        content = (plain / "out" / name).read_bytes()
        assert (by_id / "out" / name).read_bytes() == (by_field / "out" / name).read_bytes() == content


@pytest.mark.parametrize("in_query_id", [True, False])
def test_labels_by_facet_use_the_items_of_the_facet(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], in_query_id: bool
) -> None:
    root = faceted(tmp_path / "track", in_query_id=in_query_id)
    update(root)
    expected = set()
    with trecexam.open_track(root) as track:
        docs = {(row.query_id, row.doc_id) for row in track.qrels()}
        python = {(row.query_id, row.doc_id): row.relevance for row in track.qrels(by="facet")}
    for query_id, doc_id in docs:
        text = f"passage {int(doc_id[-2:])} about {query_id}"
        ratings = [hashed_rating(text, f"question {n} of {query_id}?") for n in range(4)]
        expected |= {
            (f"{query_id}/T_1", doc_id, max(ratings[:2])),
            (f"{query_id}/T_2/deep", doc_id, ratings[2]),
        }
    out, err = export(capsys, root, "--by", "facet")
    rows = [line.split(" ") for line in out.splitlines()]
    assert {(query_id, doc_id, int(label)) for query_id, _, doc_id, label in rows} == expected
    assert len(rows) == len(expected)
    assert python == {(query_id, doc_id): label for query_id, doc_id, label in expected}
    assert "left out 3 items without a facet" in err
    out, _ = export(
        capsys, root, "--by", "facet", "--label", "count", "--min-rating", "3", "--min-answers", "2"
    )
    assert {line.split(" ")[3] for line in out.splitlines()} == {"0", "2"}
    assert export(capsys, root, "--by", "query")[0] == export(capsys, root)[0]


def test_a_whole_passage_rating_by_a_person_belongs_to_no_facet(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = faceted(tmp_path / "track", in_query_id=True)
    (root / "qrels.txt").unlink(missing_ok=True)
    update(root)
    before = export(capsys, root, "--by", "facet")[0]
    with trecexam.open_track(root) as track:
        doc_id = next(track.qrels()).doc_id
    words = ["--query", "q1", "--doc", doc_id, "--rating", "5", "--who", "me", "--why", "so"]
    assert run(["override", str(root), *words]) == 0
    assert export(capsys, root, "--by", "facet")[0] == before


def test_the_bank_is_edited_and_checked_by_query(tmp_path: Path) -> None:
    root = faceted(tmp_path / "track", in_query_id=True)
    update(root)
    with trecexam.open_track(root) as track:
        listed = items_to_edit(track.folder, "q1")
        assert [each.item.item_id for each in listed] == ["q1/0", "q1/1", "q1/2", "q1/3"]
        edited = track.bank.edit_item("q1/2", "what is new here?", who="ann")
        assert edited.written
        edited_items = [each.item.item_id for each in items_to_edit(track.folder, "q1") if each.edits]
        assert edited_items == ["q1/2"]
        track.bank.retire_item("q1/1", who="ann")
        track.bank.add_item("q1", "and what else?", who="ann")
        bank = (root / "bank.questions.jsonl").read_text()
        assert '"query_id": "q1/T_2/deep"' in bank
        assert track.grading.counts().cells == 144
        assert track.bank.check().problems == ()
        facets = {row.query_id for row in track.qrels(by="facet")}
    assert facets == {f"q{n}/{facet}" for n in (1, 2, 3) for facet in ("T_1", "T_2/deep")} - {"q1/T_2/deep"}
