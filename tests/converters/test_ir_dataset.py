from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import ir_datasets
import pytest
from support import HashGrader, make_small_track, write_run

import trecexam
from converters import ConversionError, Passage, Qrel, Query
from converters.ir_dataset import dataset_passages, dataset_qrels, dataset_queries
from trecexam.folder import TrackFolder
from trecexam.grades.open_track import OpenTrack


class Doc(NamedTuple):
    doc_id: str
    text: str

    def default_text(self) -> str:
        return self.text


class AQuery(NamedTuple):
    query_id: str
    text: str

    def default_text(self) -> str:
        return self.text


class AQrel(NamedTuple):
    query_id: str
    doc_id: str
    relevance: int
    iteration: str


class Store:
    def __init__(self, docs: dict[str, Doc]) -> None:
        self.docs = docs

    def get_many(self, doc_ids: list[str]) -> dict[str, Doc]:
        return {d: self.docs[d] for d in doc_ids if d in self.docs}


class Dataset:
    """As much of an ir_datasets dataset as the tests need."""

    def __init__(self, broken: bool = False) -> None:
        self.broken = broken

    def has_queries(self) -> bool:
        return True

    has_docs = has_qrels = has_queries

    def queries_iter(self) -> Iterator[AQuery]:
        if self.broken:
            raise RuntimeError("download failed: no network\nsecond line")
        yield from (AQuery(f"q{n}", f"dataset query {n}") for n in (1, 2, 3))

    def qrels_iter(self) -> Iterator[AQrel]:
        yield AQrel("q1", "q1-d00", 2, "0")

    def docs_store(self) -> Store:
        return Store(
            {f"q{q}-d{d:02}": Doc(f"q{q}-d{d:02}", f"text {d} of {q}") for q in (1, 2, 3) for d in range(12)}
        )


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    known: dict[str, Any] = {"tiny/one": Dataset(), "tiny/broken": Dataset(broken=True)}
    monkeypatch.setattr(ir_datasets, "load", lambda name: known[name])


def test_queries_qrels_and_requested_passages_are_read_as_records() -> None:
    assert next(iter(dataset_queries("tiny/one"))) == Query("q1", "dataset query 1")
    assert list(dataset_qrels("tiny/one")) == [Qrel("q1", "q1-d00", 2)]
    assert dataset_passages("tiny/one", {"q1-d00", "nowhere"}) == {"q1-d00": Passage("q1-d00", "text 0 of 1")}


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("tiny/none", "ir_datasets:tiny/none: no such dataset; see `ir_datasets list`"),
        ("tiny/broken", r"did not load \(download failed: no network\); fetch it"),
    ],
)
def test_a_dataset_that_does_not_load_is_a_one_line_error_with_a_remedy(name: str, reason: str) -> None:
    with pytest.raises(ConversionError, match=reason) as caught:
        list(dataset_queries(name))
    assert "\n" not in str(caught.value)


def test_a_track_takes_queries_passages_and_judgments_from_a_dataset(tmp_path: Any) -> None:
    root = make_small_track(tmp_path / "t", config='[track]\ndataset = "tiny/one"\ndepth = 5\n')
    for name in ("queries.tsv", "passages.jsonl", "qrels.txt"):
        (root / name).unlink()
    grader = HashGrader()
    with trecexam.open_track(root, grader=grader) as track:
        done = track.update()
        assert done.counts.no_text == 0
        assert done.counts.missing == 0
        assert {cell.query_text for cell in grader.asked} == {f"dataset query {n}" for n in (1, 2, 3)}
        assert all(cell.text.startswith("text ") for cell in grader.asked)
        write_run(root / "runs" / "new.run", {"q1": ["q1-d11", "q1-d10"]})
        assert track.update().counts.missing == 0
    assert (root / "out" / "correlation.tsv").exists()


def test_a_dataset_is_read_once_and_again_after_a_failure(
    small_track: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []

    def queries(dataset: str) -> Iterator[Query]:
        calls.append(dataset)
        if len(calls) == 1:
            raise ConversionError(f"ir_datasets:{dataset}", None, "its data is not here")
        return iter([Query("q1", "a text of the dataset")])

    monkeypatch.setattr("trecexam.inputs.inputs.dataset_queries", queries)
    monkeypatch.setattr("trecexam.inputs.inputs.dataset_qrels", lambda dataset: iter(()))
    (small_track / "queries.tsv").unlink()
    (small_track / "trecexam.toml").write_text('[track]\ndataset = "tiny/x"\ndepth = 8\n')
    with OpenTrack(TrackFolder.open(small_track), HashGrader()) as loaders:
        assert [row.reason for row in loaders.first.load().rejected] == ["its data is not here"]
        for number in (1, 2):
            write_run(small_track / "runs" / f"more{number}.run", {"q1": ["q1-d00"]})
            track = loaders.first.load()
            assert track.rejected == ()
            assert track.query_texts["q1"] == "a text of the dataset"
    assert len(calls) == 2
