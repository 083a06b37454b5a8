from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from support import HashGrader, labels_of, make_small_track, tsv_rows, update, write_run

import trecexam
from converters.errors import ConversionError
from trecexam.errors import LockedError, TrecexamError
from trecexam.files.track_lock import track_lock
from trecexam.graders import Answer, Cell
from trecexam.grades.open_track import OpenTrack
from trecexam.inputs.track_graders import open_folder
from trecexam.outputs.grader_update import update_grader


def outputs(root: Path) -> Mapping[str, bytes]:
    paths = (path for path in sorted((root / "out").iterdir()) if path.is_file())
    return {path.name: path.read_bytes() for path in paths if path.name != "history.tsv"}


@pytest.mark.usefixtures("with_report")
def test_every_pooled_cell_is_graded_once_and_every_output_is_written(
    small_track: Path, hash_grader: HashGrader
) -> None:
    done = update(small_track, hash_grader)
    asked = [(cell.doc_id, cell.item.item_id) for cell in hash_grader.asked]
    assert len(set(asked)) == len(asked) == done.graded == done.counts.ok
    assert set(outputs(small_track)) >= {
        "rubric.qrels", "rubric.subtopics.qrels", "leaderboard.tsv", "leaderboard.json", "per_query.tsv",
        "differences.tsv", "groups.tsv", "correlation.tsv", "correlation.json",
        "agreement.tsv", "holes.tsv",
        "rejected.tsv", "report.html", "manifest.json",
    }  # fmt: skip


def test_the_same_inputs_give_identical_bytes_in_another_folder(tmp_path: Path) -> None:
    one, two = make_small_track(tmp_path / "a"), make_small_track(tmp_path / "b")
    update(one, HashGrader(batch=3))
    update(two, HashGrader(batch=1000))
    assert outputs(one) == outputs(two)


def test_a_new_run_grades_only_its_new_passages(small_track: Path, hash_grader: HashGrader) -> None:
    with OpenTrack(open_folder(small_track), hash_grader) as loaders:
        loader = loaders.first
        update_grader(loader)
        hash_grader.asked.clear()
        values = loader.load().run_values["rubric"]
        evaluated = values.evaluated
        write_run(small_track / "runs" / "new.run", {"q1": ["q1-d11", "q1-d00"], "q2": ["q2-d00"]})
        done, _ = update_grader(loader)
        assert {cell.doc_id for cell in hash_grader.asked} <= {"q1-d11"}
        # The new run on three queries, and the three old runs on the one query whose labels changed.
        touched = 3 if hash_grader.asked else 0
        assert values.evaluated - evaluated == 3 + touched
        assert done.changed
    assert "new" in {row["run"] for row in tsv_rows(small_track / "out" / "leaderboard.tsv")}


def test_editing_a_question_regrades_only_that_question(updated: Path) -> None:
    bank = updated / "bank.questions.jsonl"
    old = bank.read_text()
    bank.write_text(old.replace("question 2 of q1?", "an edited question?"))
    again = HashGrader()
    update(updated, again)
    assert {cell.item.text for cell in again.asked} == {"an edited question?"}
    bank.write_text(old)
    back = HashGrader()
    update(updated, back)
    assert back.asked == []


def test_equal_texts_are_graded_once_whatever_their_ids(small_track: Path, hash_grader: HashGrader) -> None:
    passages = small_track / "passages.jsonl"
    lines = passages.read_text().replace("passage 1 about q1", "passage 0 about q1")
    passages.write_text(lines)
    update(small_track, hash_grader)
    q1 = [(cell.text, cell.item.item_id) for cell in hash_grader.asked]
    assert len(q1) == len(set(q1))
    labels = labels_of(small_track / "out" / "rubric.qrels")
    assert labels["q1", "q1-d00"] == labels["q1", "q1-d01"]


def test_with_average_answered_means_are_over_answered_queries(
    tmp_path: Path, hash_grader: HashGrader
) -> None:
    root = make_small_track(tmp_path / "t", config='[track]\ndepth = 8\n[scores]\naverage = "answered"\n')
    write_run(root / "runs" / "skips.run", {"q1": ["q1-d00", "q1-d01"]})
    update(root, hash_grader)
    values = {
        (r["run"], r["query_id"], r["measure"]): float(r["value"])
        for r in tsv_rows(root / "out" / "per_query.tsv")
    }
    row = next(r for r in tsv_rows(root / "out" / "leaderboard.tsv") if r["run"] == "skips")
    assert float(row["nDCG@8"]) == pytest.approx(values["skips", "q1", "nDCG@8"], abs=1e-6)


def test_queries_missing_from_the_bank_are_noted_and_left_out(
    small_track: Path, hash_grader: HashGrader
) -> None:
    write_run(small_track / "runs" / "more.run", {"q1": ["q1-d00"], "q77": ["q1-d00"], "q78": ["q1-d01"]})
    outside = "are not among the grader's queries, and were left out: "
    assert update(small_track, hash_grader).notes == (
        f"runs/more.run:2: 2 of its 3 queries {outside}'q77', 'q78'",
    )
    write_run(small_track / "runs" / "more2.run", {"q2": ["q2-d00"], "q77": ["q1"], "q78": ["q1-d01"]})
    write_run(small_track / "runs" / "other.run", {"q79": ["q1-d00"]})
    done = update(small_track, hash_grader)
    assert done.notes == (f"runs/more.run:2: 2 queries of this run and of 1 other {outside}'q77', 'q78'",)
    assert [(row.file, row.line) for row in done.rejected] == [("runs/other.run", 1)]
    assert "is among the grader's queries" in done.rejected[0].reason
    names = {row["run"] for row in tsv_rows(small_track / "out" / "leaderboard.tsv")}
    assert names == {"run0", "run1", "run2", "more", "more2"}


def test_a_duplicate_run_is_noted(small_track: Path, hash_grader: HashGrader) -> None:
    path = small_track / "runs" / "run1.run"
    (small_track / "runs" / "run1.run.gz").write_bytes(gzip.compress(path.read_bytes()))
    # Another score at the end is another run.
    lines = (small_track / "runs" / "run2.run").read_text()
    (small_track / "runs" / "zz.run").write_text(lines.rsplit(" ", 2)[0] + " -5.5 run2\n")
    done = update(small_track, hash_grader)
    assert done.notes == (
        "runs/run1.run.gz: the same rankings and scores as in runs/run1.run, and both count: remove one if "
        "that is a slip",
    )
    assert done.rejected == ()
    assert len(tsv_rows(small_track / "out" / "leaderboard.tsv")) == 5


def test_a_passage_with_two_texts_is_reported_with_both_lines_and_the_first_counts(
    small_track: Path, hash_grader: HashGrader
) -> None:
    path = small_track / "passages.jsonl"
    lines = path.read_text().splitlines()
    other = json.dumps({"id": "q1-d00", "contents": "another text"})
    path.write_text("\n".join([*lines, lines[0], other, lines[1], other]) + "\n")
    done = update(small_track, hash_grader)
    assert [(row.file, row.line, row.reason) for row in done.rejected] == [
        (
            "passages.jsonl",
            len(lines) + after,
            "passage 'q1-d00' has another text on line 1, which counts; this one does not",
        )
        for after in (2, 4)
    ]
    assert {cell.text for cell in hash_grader.asked if cell.doc_id == "q1-d00"} == {"passage 0 about q1"}


def test_files_with_the_same_tag_are_named_by_their_paths(small_track: Path, hash_grader: HashGrader) -> None:
    for name in ("bm25.run", "sub/dense.run.txt"):
        write_run(small_track / "runs" / name, {"q1": ["q1-d00"]}, tag="Anserini")
    update(small_track, hash_grader)
    names = {row["run"] for row in tsv_rows(small_track / "out" / "leaderboard.tsv")}
    assert names == {"run0", "run1", "run2", "bm25", "sub/dense.run"}


def test_hidden_and_partially_copied_files_are_not_read(small_track: Path, hash_grader: HashGrader) -> None:
    for name in (".hidden.run", "a.run.part", "b.run~", ".dir/c.run"):
        path = small_track / "runs" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("junk\n")
    assert update(small_track, HashGrader(version=2)).rejected == ()


def test_a_bad_passage_line_is_reported_and_its_passage_stays_ungraded(
    small_track: Path, hash_grader: HashGrader
) -> None:
    passages = small_track / "passages.jsonl"
    lines = passages.read_text().splitlines()
    lines[0] = '{"docid": "q1-d00", "text": "  "}'
    passages.write_text("\n".join(lines) + "\n")
    done = update(small_track, hash_grader)
    assert [(row.file, row.line) for row in done.rejected] == [
        ("passages.jsonl", 1),
        ("runs/run0.run", None),
        ("runs/run2.run", None),
    ]
    assert done.counts.no_text == 1
    assert ("q1", "q1-d00") not in labels_of(small_track / "out" / "rubric.qrels")


@pytest.mark.parametrize(("policy", "expected"), [("skip", None), ("zero", 0), ("seed", 1)])
def test_unparsed_answers_follow_the_configured_policy(
    tmp_path: Path, policy: str, expected: int | None
) -> None:
    root = make_small_track(tmp_path / "t", config=f'[track]\ndepth = 8\n[scores]\nunparsed = "{policy}"\n')
    grader = HashGrader()
    grader.status = lambda cell: "unparsed" if cell.doc_id == "q1-d00" else "ok"
    done = update(root, grader)
    assert done.counts.unparsed == 4
    assert labels_of(root / "out" / "rubric.qrels").get(("q1", "q1-d00")) == expected
    manifest = json.loads((root / "out" / "manifest.json").read_text())
    assert manifest["unparsed_policy"] == policy
    assert manifest["counts"]["unparsed"] == 4


def test_after_a_failure_the_same_process_asks_only_for_missing_grades(small_track: Path) -> None:
    grader = HashGrader(batch=5)
    grader.fail_after = 3
    with trecexam.open_track(small_track, grader=grader) as track:
        with pytest.raises(RuntimeError, match="broke"):
            track.update()
        grader.fail_after = None
        done = track.update()
    assert done.graded == done.counts.cells - 15


@pytest.mark.usefixtures("with_report")
def test_manifest_names_every_input_and_output_with_its_sha256(
    small_track: Path, hash_grader: HashGrader
) -> None:
    import hashlib

    update(small_track, hash_grader)
    manifest = json.loads((small_track / "out" / "manifest.json").read_text())
    for name, digest in manifest["inputs"].items():
        assert hashlib.sha256((small_track / name).read_bytes()).hexdigest() == digest
    for name, digest in manifest["outputs"].items():
        assert hashlib.sha256((small_track / "out" / name).read_bytes()).hexdigest() == digest
    out = small_track / "out"
    plots = {f"plots/{path.name}" for path in (out / "plots").iterdir()}
    assert len(plots) == 4
    assert set(manifest["outputs"]) == set(outputs(small_track)) - {"manifest.json"} | plots
    assert "runs/run0.run" in manifest["inputs"]


def test_what_only_an_earlier_manifest_names_is_removed_and_nothing_else(
    small_track: Path, hash_grader: HashGrader
) -> None:
    update(small_track, hash_grader)
    out, beside = small_track / "out", small_track / "beside.txt"
    manifest = json.loads((out / "manifest.json").read_text())
    gone, mine = out / "gone" / "of-an-extension.tsv", out / "mine.txt"
    gone.parent.mkdir()
    for path in (gone, mine, beside):
        path.write_text("x")
    names = ("gone/of-an-extension.tsv", "../beside.txt", str(beside))
    manifest["outputs"] |= dict.fromkeys(names, "0" * 64)
    (out / "manifest.json").write_text(json.dumps(manifest))
    update(small_track, hash_grader)
    assert not gone.parent.exists()
    assert mine.exists()
    assert beside.exists()


def test_a_bad_bank_stops_the_update_and_leaves_outputs_and_grades(
    updated: Path, hash_grader: HashGrader
) -> None:
    before = outputs(updated)
    bank = updated / "bank.questions.jsonl"
    good = bank.read_text()
    bank.write_text(good + good.splitlines()[0] + "\n")
    with pytest.raises(ConversionError, match=r"bank\.questions\.jsonl:4: "):
        update(updated, hash_grader)
    assert outputs(updated) == before
    bank.write_text(good)
    again = HashGrader()
    update(updated, again)
    assert again.asked == []


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ('[scores]\nmeasures = ["nDGC@10"]\n', "nDCG"),
        ('[track]\nruns = "queries.tsv"\n', r"queries\.tsv: the drop folder for runs is a file"),
        ('[track]\nruns = "rnus"\n', r"see `runs` in \[track\]"),
    ],
)
def test_wrong_settings_are_rejected_before_anything_is_graded(
    small_track: Path, hash_grader: HashGrader, settings: str, reason: str
) -> None:
    (small_track / "trecexam.toml").write_text(settings)
    with pytest.raises(TrecexamError, match=reason):
        update(small_track, hash_grader)
    assert hash_grader.asked == []


def test_an_update_is_rejected_while_another_process_grades(
    small_track: Path, hash_grader: HashGrader
) -> None:
    with track_lock(small_track / ".trecexam" / "lock"), pytest.raises(LockedError):
        update(small_track, hash_grader)


def test_a_run_whose_passages_have_no_text_is_reported(small_track: Path, hash_grader: HashGrader) -> None:
    write_run(small_track / "runs" / "other.run", {"q1": ["X-1", "X-2", "q1-d01"], "q2": ["q2-d01"]})
    done = update(small_track, hash_grader)
    (row,) = done.rejected
    assert (row.file, row.line) == ("runs/other.run", None)
    assert row.reason == (
        "2 of its 4 pooled passages have no text and count as not relevant, 'X-1' of query 'q1' among them"
    )
    assert (done.counts.missing, done.counts.no_text, done.counts.no_text_cells) == (0, 2, 8)


def test_cells_without_an_answer_of_the_grader_are_reported_at_the_end(
    small_track: Path,
) -> None:
    class Forgetful(HashGrader):
        def grade(self, cells: Iterable[Cell]) -> Iterator[Sequence[tuple[Cell, Answer]]]:
            return super().grade(cell for cell in cells if cell.query_id != "q2")

    done = update(small_track, Forgetful())
    (row,) = done.rejected
    assert done.complete
    assert row.file == "trecexam.toml"
    assert row.reason.startswith(
        f"the grader left {done.counts.missing} of {done.counts.cells} cells without"
    )
    assert "query 'q2'" in row.reason
    assert update(small_track, HashGrader(version=2)).rejected == ()


# Outputs along the way.


EVERY = "[track]\ndepth = 8\n[cells]\noutputs_every = 1e-6\n"


class ModelGrader(HashGrader):
    """A grader that declares to use a language model; looks at out/ before each cell."""

    cells_share: str | None = "nothing"

    def __init__(self, out: Path, batch: int = 7) -> None:
        super().__init__(batch)
        self.looks: list[tuple[dict[str, Any], str]] = []
        self.status = self._look
        self._out = out

    def _look(self, cell: Cell) -> str:
        manifest = self._out / "manifest.json"
        if manifest.exists():
            self.looks.append((json.loads(manifest.read_text()), (self._out / "report.html").read_text()))
        return "ok"


@pytest.fixture(scope="module")
def graded_with_updates(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ModelGrader]:
    """A track that was graded with a few intermediate outputs."""
    patch = pytest.MonkeyPatch()
    patch.setattr("trecexam.outputs.grader_update._LESS_OFTEN", 0)
    root = make_small_track(tmp_path_factory.mktemp("along") / "t", items=6, config=EVERY)
    grader = ModelGrader(root / "out", batch=70)
    with trecexam.open_track(root, grader=grader) as track:
        assert track.update().complete
    patch.undo()
    return root, grader


def test_intermediate_outputs_show_how_many_cells_are_missing(
    graded_with_updates: tuple[Path, ModelGrader],
) -> None:
    _, grader = graded_with_updates
    assert all(not manifest["complete"] for manifest, _ in grader.looks)
    counts = [manifest["counts"] for manifest, _ in grader.looks[::70]]
    assert [count["ok"] for count in counts] == [70, 140, 210]
    assert all(count["ok"] + count["missing"] == count["cells"] for count in counts)
    for (_, page), count in zip(grader.looks[::70], counts, strict=True):
        assert f"{count['missing']:,} of {count['cells']:,} cells have no grade yet" in page
        assert "all scores will change" in page


def test_a_stop_ends_after_the_current_batch_with_consistent_outputs(small_track: Path) -> None:
    with trecexam.open_track(small_track, grader=HashGrader(batch=5)) as track:
        graded: list[object] = []
        done = track.update(progress=graded.append, stop=lambda: bool(graded))
    assert (done.graded, done.complete) == (5, False)
    manifest = json.loads((small_track / "out" / "manifest.json").read_text())
    assert manifest["complete"] is False
    assert manifest["counts"]["ok"] == 5
    again = HashGrader()
    assert update(small_track, again).complete
    assert json.loads((small_track / "out" / "manifest.json").read_text())["complete"] is True


def test_another_grader_grades_anew_and_switching_back_costs_nothing(small_track: Path) -> None:
    update(small_track, HashGrader(version=1))
    two = HashGrader(version=2)
    update(small_track, two)
    assert two.asked
    one = HashGrader(version=1)
    assert update(small_track, one).changed
    assert one.asked == []
