"""Queries, qrels and passages of an ir_datasets id, loaded lazily."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any

from converters.errors import ConversionError
from converters.records import Passage, Qrel, Query


def dataset_queries(dataset_id: str) -> Iterator[Query]:
    """The queries of a dataset.

    Raises:
        ConversionError: there is no such dataset, it has no queries, or its data is not here.
    """
    with _explained(dataset_id):
        for query in _load(dataset_id, "queries").queries_iter():
            yield Query(query.query_id, _default_text(query))


def dataset_qrels(dataset_id: str) -> Iterator[Qrel]:
    """The judgments of a dataset; empty if it has none.

    Raises:
        ConversionError: as `dataset_queries`.
    """
    with _explained(dataset_id):
        dataset = _load(dataset_id)
        if not dataset.has_qrels():
            return
        for qrel in dataset.qrels_iter():
            iteration = getattr(qrel, "subtopic_id", None) or getattr(qrel, "iteration", None) or "0"
            yield Qrel(qrel.query_id, qrel.doc_id, qrel.relevance, str(iteration))


def dataset_passages(dataset_id: str, doc_ids: Collection[str]) -> dict[str, Passage]:
    """The passages with these ids, as far as the dataset has them.

    Raises:
        ConversionError: as `dataset_queries`.
    """
    with _explained(dataset_id):
        store = _load(dataset_id, "docs").docs_store()
        docs = store.get_many(sorted(doc_ids))
        return {doc_id: Passage(doc_id, _default_text(doc)) for doc_id, doc in docs.items()}


def _load(dataset_id: str, needs: str | None = None) -> Any:
    import ir_datasets

    dataset = ir_datasets.load(dataset_id)
    if needs is not None and not getattr(dataset, f"has_{needs}")():
        raise ConversionError(f"ir_datasets:{dataset_id}", None, f"this dataset has no {needs}")
    return dataset


def _default_text(record: Any) -> str:
    text: str = record.default_text() if hasattr(record, "default_text") else record.text
    return text


@contextmanager
def _explained(dataset_id: str) -> Iterator[None]:
    try:
        yield
    except ConversionError:
        raise
    except KeyError:
        raise ConversionError(
            f"ir_datasets:{dataset_id}", None, "no such dataset; see `ir_datasets list`"
        ) from None
    except Exception as error:
        # ir_datasets raises what its downloads and parsers raise: requests' errors, RuntimeError, OSError.
        reason = (str(error) or type(error).__name__).split("\n", 1)[0][:200]
        raise ConversionError(
            f"ir_datasets:{dataset_id}",
            None,
            f"its data is not here and did not load ({reason}); fetch it where there is a network and set "
            "IR_DATASETS_HOME, or give files instead",
        ) from error
