"""eRAG's baselines as labels, and runs whose scores are all tied."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from erag_track import GOLD, RUNS, SAYS, answer, erag_track
from headings import score_columns
from hypothesis import given
from hypothesis import strategies as st
from scripted_server import serving
from text_files import put_rows

import trecexam
from trecexam.cli.main import run
from trecexam.extensions.erag.metrics import contains_answer

pytest.importorskip("httpx2")

Capture = pytest.CaptureFixture[str]
PAIRS = sorted({(q, d) for ranking in RUNS.values() for q, docs in ranking.items() for d in docs})


@pytest.fixture
def track(tmp_path: Path) -> Path:
    """Without model and outputs."""
    root = erag_track(tmp_path / "track")
    texts = {**SAYS, "d4": "the bard, that is William-Shakespeare", "d2": "Parisian, of the paris-basin"}
    del texts["d6"]
    put_rows(
        root / "passages.jsonl", *({"docid": d, "text": f"It says: {said}"} for d, said in texts.items())
    )
    return root


def erag(track: Path, *words: str) -> int:
    return run(["erag", str(track), "--gold", str(track / "gold.jsonl"), "-o", str(track / "got"), *words])


def labels(track: Path) -> dict[tuple[str, str], str]:
    _, *lines = (track / "got" / "labels.tsv").read_text().splitlines()
    return {(q, d): label for q, d, label in (line.split("\t") for line in lines)}


def test_a_document_that_contains_a_gold_answer_has_label_1(track: Path, capsys: Capture) -> None:
    assert erag(track, "--labels", "contains-answer", "-m", "P@2", "-m", "AP") == 0
    # "williamshakespeare" and "parisbasin" are one word each; a document without a text has no label.
    ones = {("q1", "d1"), ("q2", "d3")}
    assert labels(track) == {pair: str(int(pair in ones)) for pair in PAIRS if pair[1] != "d6"}
    said = capsys.readouterr()
    assert "5 labels by contains-answer (0 or 1), 3 queries" in said.err
    assert "1 document without a label, counted as 0 (1: the document has no text)" in said.err
    assert said.out.splitlines()[1].startswith("one\t3\t")


plain = st.text(alphabet="ab cd.the-", max_size=12)


@given(plain, st.lists(plain, min_size=1, max_size=3))
def test_containment_compares_whole_words_normalised_as_in_em(text: str, gold: list[str]) -> None:
    def words(each: str) -> list[str]:
        bare = re.sub(r"\b(a|an|the)\b", " ", re.sub(r"[.-]", "", each))
        return bare.split()

    own = words(text)
    wanted = [words(each) for each in gold]
    found = any(each and any(own[at : at + len(each)] == each for at in range(len(own))) for each in wanted)
    assert contains_answer(text, gold) == found


def test_provenance_uses_the_qrels_of_the_track_and_counts_documents_no_run_found(
    track: Path, capsys: Capture
) -> None:
    (track / "qrels.txt").write_text("q1 0 d2 2\nq1 0 d1 0\nq2 0 d3 1\nq2 0 d9 1\nq2 0 d4 -1\nq9 0 d1 1\n")
    assert erag(track, "--labels", "provenance", "-m", "R@5", "-m", "RR") == 0
    ones = {("q1", "d2"), ("q2", "d3"), ("q2", "d9")}
    assert labels(track) == {pair: str(int(pair in ones)) for pair in sorted({*PAIRS, *ones})}
    header, *rows = (line.split("\t") for line in capsys.readouterr().out.splitlines())
    out = {row[0]: [row[header.index(name)] for name in score_columns(header)[::2]] for row in rows}
    # q2 has one of its two found, q1 has one found, q3 has none.
    assert [float(value) for value in out["two"]] == pytest.approx(
        [(1 + 1 / 2 + 0) / 3, (1 + 1 + 0) / 3], abs=1e-6
    )


def test_a_run_without_a_judged_document_is_reported_with_provenance(track: Path, capsys: Capture) -> None:
    def note() -> list[str]:
        assert erag(track, "--labels", "provenance", "-m", "P@1") == 0
        return [line for line in capsys.readouterr().err.splitlines() if "is judged" in line]

    (track / "qrels.txt").write_text("q1 0 d1 0\nq2 0 d4 1\n")
    assert note() == []
    (track / "qrels.txt").write_text("q1 0 d1 -1\nq1 0 d2 -1\nq2 0 d4 1\n")
    of_two = "two: none of its passages is judged, so its values are 0"
    assert note() == [f"{of_two}; leave it out to compare the others"]
    (track / "runs" / "one.run").unlink()
    assert note() == [of_two]


def test_without_qrels_provenance_uses_the_gold_outputs_of_kilt(track: Path, capsys: Capture) -> None:
    kilt = put_rows(
        track / "kilt.jsonl",
        *(
            {
                "id": query_id,
                "input": "what",
                "output": [
                    {"answer": each, "provenance": [{"wikipedia_id": page}]} for each in GOLD[query_id]
                ],
            }
            for query_id, page in (("q1", "d1"), ("q2", "d6"), ("q3", 5))
        ),
        "{",
    )
    words = ["erag", str(track), "-o", str(track / "got"), "--labels", "provenance", "-m", "P@1"]
    assert run([*words, "--gold", str(kilt)]) == 1
    ones = {("q1", "d1"), ("q2", "d6"), ("q3", "5")}
    assert {pair for pair, label in labels(track).items() if label == "1"} == ones
    capsys.readouterr()
    assert erag(track, "--labels", "provenance") == 2
    assert "no provenance: put qrels.txt into the track, or give a KILT file" in capsys.readouterr().err


# Items of the kind `gold` in other features: checks, diffs, pages, exports.


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A track that has been watched once; its server is gone."""
    with serving(answer) as server:
        root = erag_track(tmp_path_factory.mktemp("erag") / "track", server.url, metric="f1")
        (root / "trecexam.toml").write_text((root / "trecexam.toml").read_text().replace("write = false", ""))
        assert run(["watch", str(root), "--once"]) == 0
    return root


@pytest.mark.parametrize(
    "words",
    [
        "status",
        "leaderboard",
        "holes",
        "export qrels",
        "export pool",
        "export grades",
        "export subtopics",
        "verify grading",
        "verify grid",
        "judge-next",
        "bank check",
    ],
)
def test_commands_accept_gold_outputs_as_items(graded: Path, capsys: Capture, words: str) -> None:
    status = run([*words.split(), str(graded)])
    out, err = capsys.readouterr()
    assert status in (0, 1), err
    assert "Traceback" not in err
    assert "are the most a gold should have" not in out


def test_grades_and_labels_come_from_the_same_outputs(graded: Path) -> None:
    with trecexam.open_track(graded) as track:
        rows = {(row["query_id"], row["doc_id"]): row for row in track.grades()}
        labels = track.erag.score(metric="em").labelled.labels
    assert rows["q1", "d1"]["rating"] == 5
    assert rows["q1", "d1"]["answer"] == "paris."
    assert rows["q1", "d1"]["prompt"] == "trecexam-erag"
    assert labels["q1"] == {"d1": 1.0, "d2": 0.0}


def test_the_live_page_shows_gold_outputs_without_edit_forms(graded: Path) -> None:
    pytest.importorskip("starlette")
    from served import client_of, csrf_of

    from trecexam.extensions.page.urls import Urls

    urls = Urls()

    with client_of(graded) as client:
        pages = [urls.board(), urls.result("queries"), urls.query("q1"), urls.bank("q1")]
        for path in (*pages, urls.passage("q1", "d1"), urls.passage("q1", "d1", item="q1/gold")):
            found = client.get(path)
            assert found.status_code in (200, 303), path
            assert "Traceback" not in found.text
        assert "Paris" in client.get(urls.bank("q1")).text
        form = {"csrf": csrf_of(client), "item": "q1/gold", "text": "Rome", "who": "Ann"}
        done = client.post(urls.edit_item("q1"), data=form, headers={"sec-fetch-site": "same-origin"})
        assert done.status_code == 422
        assert "edit the file by hand" in done.text
    assert json.loads((graded / "bank.gold.jsonl").read_text().splitlines()[0])["outputs"] == ["Paris"]
