"""Outputs along the way: marked as partial, with intervals that hold what comes of them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from support import HashGrader, make_small_track

import trecexam
from trecexam.graders import Cell
from trecexam.line.grading import Progress
from trecexam.scores.missing_ratings import PartlyRated

EVERY = "[track]\ndepth = 8\n[cells]\noutputs_every = 1e-6\n"


class ModelGrader(HashGrader):
    """A grader that asks a language model, as it says; looks at out/ before each cell."""

    cells_share = "nothing"

    def __init__(self, out: Path, batch: int = 7) -> None:
        super().__init__(batch)
        self.looks: list[tuple[dict[str, object], list[list[str]], str]] = []
        self.status = self._look
        self._out = out

    def _look(self, cell: Cell) -> str:
        manifest, partial = self._out / "manifest.json", self._out / "partial.tsv"
        if manifest.exists():
            lines = partial.read_text().splitlines() if partial.exists() else []
            page = (self._out / "report.html").read_text()
            self.looks.append((json.loads(manifest.read_text()), [line.split("\t") for line in lines], page))
        return "ok"


@pytest.fixture(scope="module")
def along(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ModelGrader]:
    """A track that was graded with outputs along the way, a few times."""
    patch = pytest.MonkeyPatch()
    patch.setattr("trecexam.outputs.update._LESS_OFTEN", 0)
    root = make_small_track(tmp_path_factory.mktemp("along") / "t", items=6, config=EVERY)
    grader = ModelGrader(root / "out", batch=70)
    with trecexam.open_track(root, grader=grader) as track:
        assert track.update().complete
    patch.undo()
    return root, grader


def test_outputs_along_the_way_say_the_share_that_is_graded(along: tuple[Path, ModelGrader]) -> None:
    _, grader = along
    parts = [manifest["partial"] for manifest, _, _ in grader.looks]
    assert all(not manifest["complete"] for manifest, _, _ in grader.looks)
    assert [part["graded"] for part in parts[::70]] == [70, 140, 210]  # type: ignore[index]
    cells = parts[0]["cells"]  # type: ignore[index]
    assert parts[0]["share"] == round(70 / cells, 4)  # type: ignore[index]


def test_partial_tsv_has_the_interval_of_each_run_and_measure(along: tuple[Path, ModelGrader]) -> None:
    _, grader = along
    manifest, (header, *rows), page = grader.looks[-1]
    assert header == ["run", "measure", "value", "expected", "low", "high"]
    assert "partial.tsv" in manifest["outputs"]  # type: ignore[operator]
    assert {row[0] for row in rows} == {"run0", "run1", "run2"}
    assert len(rows) == 3 * len({row[1] for row in rows})
    assert all(float(row[4]) <= float(row[3]) <= float(row[5]) for row in rows)
    assert "pairs of runs overlap by the first measure, and may still change places" in page
    assert "all scores will change" in page


def test_complete_outputs_have_nothing_partial(along: tuple[Path, ModelGrader]) -> None:
    root, _ = along
    manifest = json.loads((root / "out" / "manifest.json").read_text())
    assert manifest["complete"]
    assert "partial" not in manifest
    assert not (root / "out" / "partial.tsv").exists()
    # The history has the end alone.
    with trecexam.open_track(root) as track:
        assert {row.cause for row in track.history()} == {"the first leaderboard"}


def test_a_grader_without_a_language_model_writes_once(tmp_path: Path) -> None:
    root = make_small_track(tmp_path / "t", config=EVERY)
    grader = ModelGrader(root / "out")
    grader.cells_share = None  # type: ignore[assignment]
    with trecexam.open_track(root, grader=grader) as track:
        track.update()
    assert grader.looks == []


def test_a_stopped_update_says_what_may_change_and_the_next_one_goes_on(tmp_path: Path) -> None:
    root = make_small_track(tmp_path / "t")
    grader = ModelGrader(root / "out", batch=20)
    calls: list[Progress] = []
    with trecexam.open_track(root, grader=grader) as track:
        assert not track.update(progress=calls.append, stop=lambda: len(calls) > 1).complete
    manifest = json.loads((root / "out" / "manifest.json").read_text())
    assert manifest["partial"]["graded"] == 40
    assert (root / "out" / "partial.tsv").exists()
    rest = HashGrader()
    with trecexam.open_track(root, grader=rest) as track:
        assert track.update().graded == manifest["partial"]["cells"] - 40
    assert not (root / "out" / "partial.tsv").exists()


def test_too_few_grades_give_no_interval(tmp_path: Path) -> None:
    root = make_small_track(tmp_path / "t", items=9)
    calls: list[Progress] = []
    with trecexam.open_track(root, grader=ModelGrader(root / "out", batch=5)) as track:
        track.update(progress=calls.append, stop=lambda: bool(calls))
    assert json.loads((root / "out" / "manifest.json").read_text())["partial"]["graded"] == 5
    assert not (root / "out" / "partial.tsv").exists()


def test_answers_that_cannot_be_read_give_no_interval(tmp_path: Path) -> None:
    root = make_small_track(tmp_path / "t")
    grader = ModelGrader(root / "out", batch=50)
    grader.status = lambda cell: "unparsed"
    calls: list[Progress] = []
    with trecexam.open_track(root, grader=grader) as track:
        track.update(progress=calls.append, stop=lambda: bool(calls))
    assert json.loads((root / "out" / "manifest.json").read_text())["partial"]["graded"] == 50
    assert not (root / "out" / "partial.tsv").exists()


def partly_rated(rng: np.random.Generator, share: float) -> tuple[PartlyRated, np.ndarray]:
    """Passages whose ratings are above 0 for an item as often as its query's chance says."""
    chance = rng.beta(1, 3, size=8).repeat(40)
    items = np.arange(8).repeat(40)[:, None] * 5 + np.arange(5)
    truth = np.where(rng.random((320, 5)) < chance[:, None], rng.choice([2, 4, 5], (320, 5)), 0)
    there = rng.random((320, 5)) < share
    ratings = np.where(there, truth, -1).astype(np.int8)
    return PartlyRated(np.arange(8).repeat(40), items, ratings, ~there, rng.random(320), 4), truth


def test_draws_keep_what_is_rated_and_fill_all_that_is_missing() -> None:
    parts, _ = partly_rated(np.random.default_rng(3), 0.3)
    for draw in parts.draws(3):
        assert (draw[~parts.missing] == parts.ratings[~parts.missing]).all()
        assert ((draw >= 0) & (draw <= 5)).all()


def test_draws_are_the_same_each_time() -> None:
    parts, _ = partly_rated(np.random.default_rng(3), 0.3)
    assert all((one == other).all() for one, other in zip(parts.draws(3), parts.draws(3), strict=True))


def test_shares_of_draws_hold_the_truth_about_as_often_as_they_should() -> None:
    rng = np.random.default_rng(0)
    held = []
    for _ in range(60):
        parts, truth = partly_rated(rng, 0.3)
        shares = [(draw >= 4).reshape(8, -1).mean(axis=1) for draw in parts.draws(30)]
        mean, deviation = np.mean(shares, axis=0), np.std(shares, axis=0, ddof=1)
        held.append(np.abs((truth >= 4).reshape(8, -1).mean(axis=1) - mean) <= 2.08 * deviation)
    assert 0.92 <= np.mean(held) <= 0.99


def test_what_no_passage_was_rated_on_has_the_ratings_of_all() -> None:
    ratings = np.array([[3, -1], [3, -1], [-1, -1]], np.int8)
    parts = PartlyRated(
        np.array([0, 0, 1]), np.array([[0, 1], [0, 1], [2, 3]]), ratings, ratings < 0, np.ones(3), 4
    )
    drawn = np.array(list(parts.draws(200)))
    assert set(np.unique(drawn)) <= {0, 3}
    assert (drawn[:, parts.missing] == 3).mean() > 0.3
