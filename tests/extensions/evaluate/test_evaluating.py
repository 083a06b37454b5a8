"""`trecexam.evaluate`: accepted inputs, and values equal to those of a track folder."""

from __future__ import annotations

import gc
import json
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ir_measures
import pandas
import polars
import pyarrow
import pytest
from ir_measures import nDCG
from support import HashGrader, make_small_track

import converters
import trecexam
from trecexam import TrecexamError
from trecexam.scores.columns.measures.cover import Cover

MEASURES = ["nDCG@10", "Cover(rel=4)@5", "AP(rel=3)"]
DEPTH = {"track": {"depth": 8}}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A track with ties: many passages share a score and are ordered by docid only."""
    root = make_small_track(tmp_path_factory.mktemp("evaluating") / "track")
    for number, path in enumerate(sorted((root / "runs").iterdir())):
        lines = [line.split() for line in path.read_text().splitlines()]
        path.write_text(
            "".join(f"{q} Q0 {d} {r} {int(r) // (2 + number) * -0.1} x\n" for q, _, d, r, *_ in lines)
        )
        path.write_text(path.read_text().replace(" x\n", f" run{number}\n"))
    return root


@pytest.fixture(scope="module")
def track_rows(folder: Path) -> Any:
    """The leaderboard rows of the track in that folder."""
    with trecexam.open_track(folder, grader=HashGrader()) as track:
        track.grading.grade()
        return track.leaderboard(MEASURES).rows


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The place of temporary folders; none may be left."""
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    yield place
    if any(place.iterdir()):
        gc.collect()
    assert list(place.iterdir()) == []


def entries(folder: Path, name: str) -> list[tuple[str, str, float]]:
    rows = [line.split() for line in (folder / "runs" / f"{name}.run").read_text().splitlines()]
    return [(query_id, doc_id, float(score)) for query_id, _, doc_id, _, score, _ in rows]


def evaluated(folder: Path, runs: Any, **more: Any) -> Any:
    """These runs, with the bank and passages of the folder."""
    inputs = {"bank": folder / "bank.questions.jsonl", "passages": folder / "passages.jsonl"}
    return trecexam.evaluate(runs, **inputs, grader=HashGrader(), **more)


def nested(rows: list[tuple[str, str, float]]) -> dict[str, dict[str, float]]:
    scores: dict[str, dict[str, float]] = {}
    for query_id, doc_id, score in rows:
        scores.setdefault(query_id, {})[doc_id] = score
    return scores


RUN_FORMS = {
    "path": lambda rows, path: path,
    "text path": lambda rows, path: str(path),
    "records": lambda rows, path: (ir_measures.ScoredDoc(*row) for row in rows),
    "dicts": lambda rows, path: [
        dict(zip(("query_id", "doc_id", "score"), row, strict=True)) for row in rows
    ],
    "nested": lambda rows, path: nested(rows),
    "pandas": lambda rows, path: pandas.DataFrame(rows, columns=["query_id", "doc_id", "score"]).sample(
        frac=1
    ),
    "polars": lambda rows, path: polars.DataFrame(rows, ["query_id", "doc_id", "score"], orient="row"),
    "pyarrow": lambda rows, path: pyarrow.table(
        dict(zip(("qid", "docno", "score"), zip(*rows, strict=True), strict=True))
    ),
    "PyTerrier": lambda rows, path: pandas.DataFrame(
        [(q, "its text", d, n % 7, s) for n, (q, d, s) in enumerate(rows)],
        columns=["qid", "query", "docno", "rank", "score"],
    ),
    "Run": lambda rows, path: converters.read(path, "run"),
}


@pytest.mark.parametrize("form", RUN_FORMS)
def test_runs_in_every_form_give_the_values_of_the_folder_exactly(
    form: str, folder: Path, track_rows: Any
) -> None:
    runs = {
        name: RUN_FORMS[form](entries(folder, name), folder / "runs" / f"{name}.run")
        for name in ("run0", "run1", "run2")
    }
    with evaluated(folder, runs, measures=MEASURES, settings=DEPTH) as done:
        assert done.leaderboard.rows == track_rows


def one_frame(folder: Path) -> pandas.DataFrame:
    rows = [(name, *row) for name in ("run0", "run1", "run2") for row in entries(folder, name)]
    return pandas.DataFrame(rows, columns=["run", "qid", "docno", "score"]).sample(frac=1, random_state=1)


ALL_RUNS = {
    "folder": lambda folder: folder / "runs",
    "folder as text": lambda folder: str(folder / "runs"),
    "files": lambda folder: sorted((folder / "runs").iterdir()),
    "files from a generator": lambda folder: (str(path) for path in (folder / "runs").iterdir()),
    "pandas": one_frame,
    "pandas with categories": lambda folder: one_frame(folder).astype({"run": "category", "qid": "category"}),
    "polars": lambda folder: polars.from_pandas(one_frame(folder)).rename(
        {"qid": "query_id", "docno": "doc_id"}
    ),
}


@pytest.mark.parametrize("form", ALL_RUNS)
def test_all_runs_at_once_give_the_values_and_names_of_the_folder(
    form: str, folder: Path, track_rows: Any
) -> None:
    with evaluated(folder, ALL_RUNS[form](folder), measures=MEASURES, settings=DEPTH) as done:
        assert done.leaderboard.rows == track_rows


def test_files_get_the_names_that_a_track_gives_them(folder: Path, tmp_path: Path) -> None:
    drop = tmp_path / "drop"
    drop.mkdir()
    for name in ("a", "b"):
        lines = (folder / "runs" / "run0.run").read_text().replace(" run0\n", " Anserini\n")
        (drop / f"{name}.run").write_text(lines if name == "a" else lines.replace("q1 ", "q2 "))
    shutil.copy(folder / "runs" / "run1.run", drop / "other.run")
    response = {
        "metadata": {"run_id": "rag", "narrative_id": "q1"},
        "references": ["q1-d01"],
        "answer": [{"text": "One sentence.", "citations": [0]}],
    }
    (drop / "x.jsonl").write_text(json.dumps(response) + "\n")
    (drop / ".hidden").write_text("no run")
    with evaluated(folder, drop, measures="P@5") as done:
        assert {row.run for row in done.leaderboard.rows} == {"a", "b", "run1", "rag"}
    (tmp_path / "empty").mkdir()
    with pytest.raises(TrecexamError, match=r"not an empty folder$"):
        trecexam.evaluate(tmp_path / "empty", bank=folder / "bank.questions.jsonl")


def test_an_evaluation_has_notes_and_correlates_its_own_measures(folder: Path) -> None:
    with evaluated(folder, folder / "runs", official=folder / "qrels.txt", measures=nDCG @ 5) as done:
        assert done.notes == done.leaderboard.notes
        assert done.leaderboard.measures == ("nDCG@5",)
        found = done.correlate(official_measures="P@5")
        assert [(row["measure"], row["official_measure"]) for row in found] == [("nDCG@5", "P@5")]
        assert found.to_tsv() == done.track.correlate(["nDCG@5"], ["P@5"]).to_tsv()
        (pair,) = done.correlate("P@3", "nDCG@3")
        assert (pair["measure"], pair["official_measure"]) == ("P@3", "nDCG@3")


def bank_rows(folder: Path) -> list[dict[str, Any]]:
    lines = map(json.loads, (folder / "bank.questions.jsonl").read_text().splitlines())
    return [{"query_id": row["query_id"], **item} for row in lines for item in row["questions"]]


INPUT_FORMS = {
    "dicts": lambda bank, texts, qrels: (
        {q: [row["question_text"] for row in bank if row["query_id"] == q] for q in ("q1", "q2", "q3")},
        texts,
        nested(qrels),
    ),
    "records": lambda bank, texts, qrels: (
        bank,
        [{"doc_id": doc_id, "text": text} for doc_id, text in texts.items()],
        [ir_measures.Qrel(*row) for row in qrels],
    ),
    "pandas": lambda bank, texts, qrels: (
        pandas.DataFrame(bank).rename(columns={"query_id": "qid", "question_text": "question"}),
        pandas.DataFrame({"docno": list(texts), "text": list(texts.values())}),
        pandas.DataFrame(qrels, columns=["qid", "docno", "label"]).astype({"label": float}),
    ),
    "polars": lambda bank, texts, qrels: (
        polars.DataFrame(bank).rename({"question_id": "item_id", "question_text": "text"}),
        polars.DataFrame({"docid": list(texts), "text": list(texts.values())}),
        polars.DataFrame(qrels, ["query_id", "doc_id", "relevance"], orient="row"),
    ),
}


@pytest.mark.parametrize("form", INPUT_FORMS)
def test_banks_passages_and_judgments_in_every_form_give_the_values_of_the_folder(
    form: str, folder: Path, track_rows: Any
) -> None:
    passages = map(json.loads, (folder / "passages.jsonl").read_text().splitlines())
    texts = {row["docid"]: row["text"] for row in passages}
    qrels = [line.split() for line in (folder / "qrels.txt").read_text().splitlines()]
    bank, passages, official = INPUT_FORMS[form](
        bank_rows(folder), texts, [(query_id, doc_id, int(label)) for query_id, _, doc_id, label in qrels]
    )
    with (
        trecexam.evaluate(
            {name: nested(entries(folder, name)) for name in ("run2", "run0", "run1")},
            bank=bank,
            passages=passages,
            official=official,
            queries={"q1": "query number q1", "q2": "query number q2", "q3": "query number q3"},
            grader=HashGrader(),
            measures=[nDCG @ 10, Cover(rel=4) @ 5, "AP(rel=3)"],
            settings=DEPTH,
        ) as done,
        trecexam.open_track(folder) as track,
    ):
        assert done.leaderboard.rows == track_rows
        ours, its = (each.leaderboard(["nDCG@10"], official=True).rows for each in (done.track, track))
        assert ours == its


def test_recorded_grades_may_be_rows_and_nothing_is_printed(
    graded: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with trecexam.open_track(graded) as track:
        grades, own = list(track.grades()), track.leaderboard(MEASURES).rows
    capfd.readouterr()
    done = trecexam.evaluate(
        {name: graded / "runs" / f"{name}.run" for name in ("run0", "run1", "run2")},
        bank=graded / "bank.questions.jsonl",
        passages=graded / "passages.jsonl",
        recorded=grades,
        measures=MEASURES,
        settings=DEPTH,
    )
    assert done.leaderboard.rows == own
    assert list(done.to_pandas()["run"]) == [row.run for row in own]
    assert len(done.per_query(library="polars")) == 3 * 3 * 3
    assert capfd.readouterr() == ("", "")


def test_the_track_stays_usable_after_evaluation_and_removes_its_folder(
    folder: Path, temporary: Path
) -> None:
    track = evaluated(folder, {"run0": folder / "runs" / "run0.run"}).track
    gc.collect()
    assert [row.run for row in track.leaderboard(["P(rel=4)@5"]).rows] == ["run0"]
    assert track.folder.root.is_relative_to(temporary)
    assert not track.folder.out.exists()
    root = track.folder.root
    del track
    gc.collect()
    assert not root.exists()


def test_in_a_given_folder_grades_are_kept_and_runs_are_added(folder: Path, tmp_path: Path) -> None:
    grader = HashGrader()
    for _ in range(2):
        first = trecexam.evaluate(
            {"run0": folder / "runs" / "run0.run"},
            bank=bank_rows(folder),
            passages=folder / "passages.jsonl",
            grader=grader,
            settings=DEPTH,
            folder=tmp_path / "kept",
        )
        first.close()
    assert (tmp_path / "kept" / "out" / "leaderboard.tsv").exists()
    asked = len(grader.asked)
    assert asked == first.track.grading.counts().cells
    with trecexam.evaluate(
        {"again": folder / "runs" / "run0.run"}, grader=grader, measures=MEASURES, folder=tmp_path / "kept"
    ) as done:
        assert [row.run for row in done.leaderboard.rows] == ["again"]
        assert set(done.track.files.runs()) == {"again", "run0"}
        assert any("the same rankings and scores" in line for line in done.leaderboard.notes)
    assert len(grader.asked) == asked > 0
    other = {"new": {"q1": {"q1-d01": 1}}, "again": {"q1": {"q1-d01": 1}}}
    with pytest.raises(TrecexamError, match=r"again\.run: another run is there already; replace=True"):
        trecexam.evaluate(other, grader=grader, folder=tmp_path / "kept")
    assert not (tmp_path / "kept" / "runs" / "new.run").exists()
    trecexam.evaluate(other, grader=grader, folder=tmp_path / "kept", replace=True).close()


def test_rejected_inputs_are_in_the_warnings_and_below_the_table(folder: Path) -> None:
    with evaluated(folder, {"mine": {"q1": {"q1-d01": 2, "<nowhere>": 1}, "q8": {"q1-d01": 1}}}) as done:
        assert any("<nowhere>" in line for line in done.leaderboard.notes)
        assert any("not among the grader" in line and "q8" in line for line in done.leaderboard.notes)
        html = done._repr_html_()
    assert "&lt;nowhere&gt;" in html
    assert "<nowhere>" not in html


def test_notebooks_complete_public_names_alone() -> None:
    for package in (trecexam, converters):
        assert dir(package) == sorted(package.__all__)


def test_query_ids_keep_their_leading_zeros(tmp_path: Path) -> None:
    texts = {"d1": "one passage", "d2": "another one"}
    with trecexam.evaluate(
        {"mine": polars.DataFrame({"qid": ["007", "007"], "docno": ["d1", "d2"], "score": [1.0, 2.0]})},
        bank={"007": ["which one?"], "7": ["which other one?"]},
        passages=texts,
        grader=HashGrader(),
    ) as done:
        values = done.per_query()
        assert set(values["query_id"]) == {"007", "7"}
        assert set(done.track.export.qrels_frame()["query_id"]) == {"007"}
        assert done.leaderboard.rows[0].n_answered == 1


ERRORS = [
    (
        {"runs": {}},
        "runs: give a dict .*, a folder, a list of files, or one data frame .*, not an empty dict$",
    ),
    ({"runs": []}, "not an empty list$"),
    ({"runs": ["a.run"]}, "a.run: no such file"),
    ({"runs": polars.LazyFrame({"run": ["a"]})}, "not a LazyFrame; collect"),
    (
        {"runs": pandas.DataFrame({"qid": ["q1"], "docno": ["d"], "score": [1]})},
        "no column 'run' or .* among .*; give a",
    ),
    ({"runs": pandas.DataFrame({"run": ["a"], "qid": ["q1"], "docno": ["d"]})}, "no column 'score' among"),
    (
        {
            "runs": polars.DataFrame(
                {"run": [None, "a"], "qid": ["q", "q"], "docno": ["d", "e"], "score": [1, 2]}
            )
        },
        "runs: row 1 has no id but None",
    ),
    ({"runs": {"q1": {"d": 1.0}}}, 'this dict is one run, .*; give {"NAME": run}'),
    ({"runs": {"a": "no/such.run"}}, "^no/such.run: no such file$"),
    (
        {"runs": {"a": {"q1": {"d": float("nan")}}}},
        "the score of 'd' for query 'q1' is not a number: nan",
    ),
    ({"runs": {"a": {"q1": ["d"]}}}, "query_id -> doc_id -> score; see query 'q1'"),
    ({"runs": {"a": {"q 1": {"d": 1}}}}, "query id 'q 1' is empty or has white space"),
    ({"runs": {"../a": {"q1": {"d": 1}}}}, "a run's file cannot be called '../a'"),
    ({"runs": {"a": [("q1", "d", 1.0)]}}, "row 1 is neither a dict nor a record with names"),
    (
        {"runs": {"a": pandas.DataFrame({"qid": [1.5], "docno": ["d"], "score": [1]})}},
        "row 1 has no id but 1.5",
    ),
    ({"runs": {"a": []}}, "run 'a': no rows"),
    ({"runs": {"a": {"q9": {"d": 1}}}}, "run 'a': none of its queries"),
    ({"measures": ["nDGC@10"]}, "nDGC"),
    ({"grader": HashGrader}, "grader: give a grader or its name, not a class"),
    ({"bank": {}}, "^bank: no rows$"),
    ({"grader": None, "recorded": []}, "^recorded: no rows$"),
    ({"measures": ["Cover(rel=4,weights='importance')@20"]}, "needs items with an importance"),
    ({"settings": {"track": {"depths": 3}}}, "settings: track.depths: "),
    ({"grader": "embeding"}, "embeding"),
    ({"bank": {"q1": "one question"}}, "bank: a dict must be query_id -> list of questions"),
    ({"bank": [{"query_id": "q1"}]}, "^bank.jsonl:1: a question of query 'q1' has no text"),
    ({"bank": None}, "^no test bank: give `bank`, a file, rows"),
    ({"bank": 5}, "bank: give a file, a data frame.*not a int"),
    (
        {"official": {"q1": {"d": 0.5}}},
        "official: the label of 'd' for query 'q1' is not a whole number: 0.5",
    ),
    ({"passages": "no/such.jsonl"}, "no/such.jsonl: no such file"),
]


@pytest.mark.parametrize(("given", "message"), ERRORS, ids=[message for _, message in ERRORS])
def test_invalid_inputs_are_a_one_line_error(given: dict[str, Any], message: str, folder: Path) -> None:
    grader = HashGrader()
    usual = {
        "runs": {"a": folder / "runs" / "run0.run"},
        "bank": folder / "bank.questions.jsonl",
        "passages": folder / "passages.jsonl",
        "grader": grader,
    }
    with pytest.raises(TrecexamError, match=message) as error:
        trecexam.evaluate(**(usual | given))
    assert "\n" not in str(error.value)
    assert grader.asked == []


def test_a_failing_grader_leaves_no_files(folder: Path) -> None:
    grader = HashGrader()
    grader.fail_after = 1
    with pytest.raises(RuntimeError, match="the grader broke"):
        trecexam.evaluate(
            {"a": folder / "runs" / "run0.run"},
            bank=folder / "bank.questions.jsonl",
            passages=folder / "passages.jsonl",
            grader=grader,
        )
