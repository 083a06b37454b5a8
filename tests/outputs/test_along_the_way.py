"""Outputs during grading: marked as incomplete, with a count of missing cells."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support import HashGrader, make_small_track, tsv_rows

import trecexam
from trecexam.graders import Cell

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


def test_complete_outputs_say_so(graded_with_updates: tuple[Path, ModelGrader]) -> None:
    root, _ = graded_with_updates
    assert json.loads((root / "out" / "manifest.json").read_text())["complete"]
    assert "all scores will change" not in (root / "out" / "report.html").read_text()
    # The history has only the final state.
    rows = tsv_rows(root / "out" / "history.tsv")
    assert len({row["run"] for row in rows}) == len(rows) > 0


def test_a_grader_without_a_language_model_writes_outputs_once(tmp_path: Path) -> None:
    root = make_small_track(tmp_path / "t", config=EVERY)
    grader = ModelGrader(root / "out")
    grader.cells_share = None
    with trecexam.open_track(root, grader=grader) as track:
        track.update()
    assert grader.looks == []
