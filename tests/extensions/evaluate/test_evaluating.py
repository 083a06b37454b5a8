"""`trecexam.evaluate`: accepted inputs, and values equal to those of a track folder."""

from __future__ import annotations

import gc
import json
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas
import polars
import pytest
from ir_measures import nDCG
from support import HashGrader, make_small_track, read_jsonl

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
        rows = (f"{q} Q0 {d} {r} {int(r) // (2 + number) * -0.1} run{number}\n" for q, _, d, r, *_ in lines)
        path.write_text("".join(rows))
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
    run = converters.read(folder / "runs" / f"{name}.run", "run")
    return [(entry.query_id, entry.doc_id, entry.score) for entry in run]


def evaluated(folder: Path, runs: Any, **more: Any) -> Any:
    """These runs, with the bank and passages of the folder."""
    inputs = {"bank": folder / "bank.questions.jsonl", "passages": folder / "passages.jsonl"}
    return trecexam.evaluate(runs, **{**inputs, "grader": HashGrader(), **more})


def nested(rows: list[tuple[str, str, float]]) -> dict[str, dict[str, float]]:
    scores: dict[str, dict[str, float]] = {}
    for query_id, doc_id, score in rows:
        scores.setdefault(query_id, {})[doc_id] = score
    return scores


@pytest.mark.parametrize(
    "form",
    [
        lambda rows, path: str(path),
        lambda rows, path: nested(rows),
        lambda rows, path: pandas.DataFrame(rows, columns=["query_id", "doc_id", "score"]).sample(frac=1),
    ],
)
def test_runs_give_the_values_of_the_folder_exactly(form: Any, folder: Path, track_rows: Any) -> None:
    names = ("run0", "run1", "run2")
    runs = {name: form(entries(folder, name), folder / "runs" / f"{name}.run") for name in names}
    with evaluated(folder, runs, measures=MEASURES, settings=DEPTH) as done:
        assert done.leaderboard.rows == track_rows


def one_frame(folder: Path) -> pandas.DataFrame:
    rows = [(name, *row) for name in ("run0", "run1", "run2") for row in entries(folder, name)]
    return pandas.DataFrame(rows, columns=["run", "qid", "docno", "score"]).sample(frac=1, random_state=1)


@pytest.mark.parametrize(
    "form",
    [
        lambda folder: folder / "runs",
        lambda folder: str(folder / "runs"),
        lambda folder: (str(path) for path in (folder / "runs").iterdir()),
        one_frame,
        lambda folder: one_frame(folder).to_dict("records"),
    ],
)
def test_all_runs_at_once_give_the_values_and_names_of_the_folder(
    form: Any, folder: Path, track_rows: Any
) -> None:
    with evaluated(folder, form(folder), measures=MEASURES, settings=DEPTH) as done:
        assert done.leaderboard.rows == track_rows


def test_files_get_the_names_that_a_track_gives_them(folder: Path, tmp_path: Path) -> None:
    drop = tmp_path / "drop"
    drop.mkdir()
    for name in ("a", "b"):
        lines = (folder / "runs" / "run0.run").read_text().replace(" run0\n", " Anserini\n")
        (drop / f"{name}.run").write_text(lines if name == "a" else lines.replace("q1 ", "q2 "))
    shutil.copy(folder / "runs" / "run1.run", drop / "other.run")
    (drop / "team").mkdir()
    (drop / "team" / "b.run").write_text(lines.replace("q1 ", "q3 "))
    response = {
        "metadata": {"run_id": "rag", "narrative_id": "q1"},
        "references": ["q1-d01"],
        "answer": [{"text": "One sentence.", "citations": [0]}],
    }
    (drop / "x.jsonl").write_text(json.dumps(response) + "\n")
    (drop / ".hidden").write_text("no run")
    with evaluated(folder, drop, measures="P@5") as done:
        assert {row.run for row in done.leaderboard.rows} == {"a", "b", "team/b", "run1", "rag"}
    (tmp_path / "empty").mkdir()
    with pytest.raises(TrecexamError, match=r"^runs: there are none; give "):
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
    message = r"^nothing to compare: give `official`, a file, rows, or a dict "
    with evaluated(folder, folder / "runs") as done, pytest.raises(TrecexamError, match=message):
        done.correlate()


def bank_rows(folder: Path) -> list[dict[str, Any]]:
    lines = read_jsonl(folder / "bank.questions.jsonl")
    return [{"query_id": row["query_id"], **item} for row in lines for item in row["questions"]]


def by_query(bank: list[dict[str, Any]]) -> dict[str, list[str]]:
    return {q: [row["question_text"] for row in bank if row["query_id"] == q] for q in ("q1", "q2", "q3")}


@pytest.mark.parametrize(
    "form",
    [
        lambda bank, texts, qrels: {"bank": by_query(bank), "passages": texts, "official": nested(qrels)},
        lambda bank, texts, qrels: {
            "bank": polars.DataFrame(bank).rename({"question_id": "item_id", "question_text": "text"}),
            "passages": pandas.DataFrame({"docno": list(texts), "text": list(texts.values())}),
            "official": pandas.DataFrame(qrels, columns=["qid", "docno", "label"]).astype({"label": float}),
        },
    ],
)
def test_banks_passages_and_judgments_give_the_values_of_the_folder(
    form: Any, folder: Path, track_rows: Any
) -> None:
    texts = {row["docid"]: row["text"] for row in read_jsonl(folder / "passages.jsonl")}
    qrels = [(row.query_id, row.doc_id, row.relevance) for row in converters.read(folder / "qrels.txt")]
    with (
        trecexam.evaluate(
            {name: nested(entries(folder, name)) for name in ("run2", "run0", "run1")},
            **form(bank_rows(folder), texts, qrels),
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


ERRORS = [
    ({"runs": {"../a": {"q1": {"d1": 1}}}}, "a run's file cannot be called '../a'"),
    ({"runs": {"a": {"q9": {"d": 1}}}}, "run 'a': none of its queries"),
    ({"measures": ["nDGC@10"]}, "nDGC"),
    ({"measures": []}, "^measures: name at least one"),
    ({"grader": HashGrader}, "grader: give a grader or its name, not <class"),
    ({"measures": ["Cover(rel=4,weights='importance')@20"]}, "needs items with an importance"),
    ({"settings": {"track": {"depths": 3}}}, "settings: track.depths: "),
    ({"grader": "embeding"}, "embeding"),
    ({"bank": None}, "^no test bank: give `bank`, a file, rows"),
]


@pytest.mark.parametrize(("given", "message"), ERRORS, ids=[message for _, message in ERRORS])
def test_invalid_inputs_are_a_one_line_error(given: dict[str, Any], message: str, folder: Path) -> None:
    grader = HashGrader()
    usual = {"runs": {"a": folder / "runs" / "run0.run"}, "grader": grader}
    with pytest.raises(TrecexamError, match=message) as error:
        evaluated(folder, **(usual | given))
    assert "\n" not in str(error.value)
    assert grader.asked == []


def test_a_failing_grader_leaves_no_files(folder: Path) -> None:
    grader = HashGrader()
    grader.fail_after = 1
    with pytest.raises(RuntimeError, match="the grader broke"):
        evaluated(folder, folder / "runs" / "run0.run", grader=grader)
