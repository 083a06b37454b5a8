"""The order of items by how promising they are for a passage."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import RECORDED, HashGrader, make_small_track

import trecexam
from trecexam.cli.main import run
from trecexam.errors import GraderError
from trecexam.extensions.learn import promise
from trecexam.extensions.learn.promise import promising_places
from trecexam.line.cell_order import item_places
from trecexam.line.loader import opened


class ModelGrader(HashGrader):
    cells_share: str | None = "nothing"


class DigitEncoder:
    """The vector of a text depends on its last digit."""

    def __init__(self) -> None:
        self.encoded: list[str] = []

    @property
    def identity(self) -> Mapping[str, Any]:
        return {"encoder": "digits"}

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        self.encoded += texts
        first = [next((int(letter) for letter in text if letter.isdigit()), 0) for text in texts]
        return np.eye(10, dtype=np.float32)[np.array(first) % 4]


@pytest.fixture
def encoding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(promise, "WORTH_ENCODING", 1)
    monkeypatch.setattr("trecexam.extensions.learn.encoding.BLOCK", 1)


def test_the_item_nearest_to_a_passage_is_its_most_promising_one(tmp_path: Path, encoding: None) -> None:
    root, encoder = make_small_track(tmp_path / "t"), DigitEncoder()
    with opened(root, ModelGrader()) as loader:
        track = loader.load()
        places = promising_places(track, encoder=encoder)
        assert places is not None
        for query_id, sheet in track.sheets.items():
            for row, text in enumerate(sheet.texts):
                # "passage 7 about q1" and its nearest item, "question 3 of q1?", have the same first digit.
                assert int(places[query_id][row].argmin()) == int(str(text).split()[1][0]) % 4
                assert sorted(places[query_id][row]) == [0, 1, 2, 3]
        n_encoded = len(encoder.encoded)
        again = promising_places(track, encoder=encoder)
        assert again is not None
        assert len(encoder.encoded) == n_encoded
        assert all((again[query_id] == places[query_id]).all() for query_id in places)


def test_a_few_cells_are_not_encoded(tmp_path: Path) -> None:
    encoder = DigitEncoder()
    with opened(make_small_track(tmp_path / "t"), ModelGrader()) as loader:
        track = loader.load()
        places = promising_places(track, encoder=encoder)
        assert places is not None
        assert encoder.encoded == []
        assert all((places[query_id] == by_words).all() for query_id, by_words in item_places(track).items())


def test_passages_with_one_item_each_are_not_encoded(tmp_path: Path, encoding: None) -> None:
    encoder, root = DigitEncoder(), make_small_track(tmp_path / "t", items=1)
    with opened(root, ModelGrader()) as loader:
        places = promising_places(loader.load(), encoder=encoder)
    assert encoder.encoded == []
    assert places is not None
    assert not any(of_query.any() for of_query in places.values())


@pytest.mark.parametrize("error", [GraderError("not installed"), ModuleNotFoundError("torch", name="torch")])
def test_without_the_encoder_items_are_ordered_by_words(
    tmp_path: Path, encoding: None, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def missing(*args: object) -> None:
        raise error

    monkeypatch.setattr(promise, "track_encoder", missing)
    with opened(make_small_track(tmp_path / "t"), ModelGrader()) as loader:
        track = loader.load()
        places = promising_places(track)
        assert places is not None
        assert all((places[query_id] == by_words).all() for query_id, by_words in item_places(track).items())


def test_encoding_stops_on_request(tmp_path: Path, encoding: None) -> None:
    encoder = DigitEncoder()
    with opened(make_small_track(tmp_path / "t"), ModelGrader()) as loader:
        promising_places(loader.load(), lambda: True, encoder=encoder)
    assert len(encoder.encoded) == 1


@pytest.mark.parametrize("share", [None, "prompts", "answer"])
def test_nothing_is_encoded_if_passages_are_graded_as_a_whole(
    tmp_path: Path, encoding: None, share: str | None
) -> None:
    encoder, grader = DigitEncoder(), ModelGrader()
    grader.cells_share = share
    with opened(make_small_track(tmp_path / "t"), grader) as loader:
        assert promising_places(loader.load(), encoder=encoder) is None
    assert encoder.encoded == []


def test_an_update_shows_the_progress_of_encoding_before_the_first_cell(
    tmp_path: Path, encoding: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(promise, "track_encoder", lambda track: DigitEncoder())
    shown: list[tuple[str, int, int]] = []
    with trecexam.open_track(make_small_track(tmp_path / "t"), grader=ModelGrader()) as track:
        track.update(
            progress=lambda progress: shown.append(("graded", progress.graded, progress.cells)),
            encoding=lambda done, of: shown.append(("encoded", done, of)),
        )
    kinds = [kind for kind, _, _ in shown]
    n = kinds.count("encoded")
    assert kinds[:n] == ["encoded"] * n
    assert [(done, of) for _, done, of in shown[:n]] == [(at + 1, n) for at in range(n)]
    assert "graded" in kinds


@pytest.mark.parametrize("once", [["--once"], []])
def test_watch_prints_how_many_passages_are_encoded(
    graded: Path,
    encoding: None,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    once: list[str],
) -> None:
    monkeypatch.setattr(promise, "track_encoder", lambda track: DigitEncoder())
    monkeypatch.setattr("trecexam.cli.bars.LOG_EVERY", 0.0)
    # The daemon stops after its first update.
    monkeypatch.setattr("trecexam.daemon.Daemon._report", lambda daemon, update: daemon.stop())
    shutil.rmtree(graded / ".trecexam")
    (graded / "trecexam.toml").write_text(f'{RECORDED}[cells]\norder = "useful"\n')
    assert run(["watch", str(graded), *once]) == 0
    told = capsys.readouterr().err
    assert "encoded 1 of 48 texts" in told
    assert told.index("encoded 48 of 48 texts") < told.index("graded ")


def test_with_the_embedding_grader_its_own_model_orders_the_items(
    tmp_path: Path, encoding: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str | None, str | None, str | None]] = []

    def no_model(
        model: str | None,
        root: Path,
        device: str | None,
        revision: str | None = None,
        dtype: str | None = None,
    ) -> None:
        asked.append((model, revision, dtype))
        raise GraderError("not here")

    monkeypatch.setattr("trecexam.extensions.learn.learned_pool.TextEncoder", no_model)
    config = '[track]\ndepth = 8\n[grader]\nname = "embedding"\nmodel = "a/hub-id"\nrevision = "v2"\n'
    with opened(make_small_track(tmp_path / "t", config=config), ModelGrader()) as loader:
        promising_places(loader.load())
    assert asked == [("a/hub-id", "v2", "float32")]
