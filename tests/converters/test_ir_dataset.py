from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import ir_datasets
import pytest
from ir_datasets.formats import GenericDoc, GenericQuery, TrecQrel
from support import HashGrader, make_small_track, write_run

import trecexam
from converters import ConversionError
from converters.ir_dataset import dataset_queries


class Store:
    def __init__(self, docs: dict[str, GenericDoc]) -> None:
        self.docs = docs

    def get_many(self, doc_ids: list[str]) -> dict[str, GenericDoc]:
        return {d: self.docs[d] for d in doc_ids if d in self.docs}


class Dataset:
    """As much of an ir_datasets dataset as the tests need."""

    def __init__(self, broken: bool = False) -> None:
        self.broken = broken

    def has_queries(self) -> bool:
        return True

    has_docs = has_qrels = has_queries

    def queries_iter(self) -> Iterator[GenericQuery]:
        if self.broken:
            raise RuntimeError("download failed: no network\nsecond line")
        yield from (GenericQuery(f"q{n}", f"dataset query {n}") for n in (1, 2, 3))

    def qrels_iter(self) -> Iterator[TrecQrel]:
        yield TrecQrel("q1", "q1-d00", 2, "0")

    def docs_store(self) -> Store:
        return Store(
            {
                f"q{q}-d{d:02}": GenericDoc(f"q{q}-d{d:02}", f"text {d} of {q}")
                for q in (1, 2, 3)
                for d in range(12)
            }
        )


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    known: dict[str, Any] = {"tiny/one": Dataset(), "tiny/broken": Dataset(broken=True)}
    monkeypatch.setattr(ir_datasets, "load", lambda name: known[name])


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
