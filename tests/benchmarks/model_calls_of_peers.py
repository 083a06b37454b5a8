# ruff: noqa: E501
"""Runs nuggetizer or open-rag-eval on the responses of a file; `model_calls.py` counts the calls.

    PYTHON tests/benchmarks/model_calls_of_peers.py nuggetizer|open-rag-eval DATA.json URL [QUERY_ID ...]

PYTHON has nuggetizer and open-rag-eval (installed with `--no-deps`), numpy, openai, pandas, pydantic, python-dotenv and tenacity.
Their other imports, for other model servers and token counting, are replaced by stubs.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from collections.abc import Iterator
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import MagicMock


def nuggetizer(data: list[dict[str, Any]]) -> None:
    """Creation and importance for each query, assignment for each response: `run_create_batch`, `run_assign_answers_batch`."""
    sys.modules["tiktoken"] = MagicMock()
    types = importlib.import_module("nuggetizer.core.types")
    judge = importlib.import_module("nuggetizer.models.nuggetizer").Nuggetizer(model="counted")
    nuggets_file = Path(os.environ["NUGGETS"])
    kept = json.loads(nuggets_file.read_text()) if nuggets_file.exists() else {}
    for row in data:
        if row["query_id"] not in kept:
            documents = [types.Document(doc_id, text) for doc_id, text in row["passages"].items()]
            request = types.Request(types.Query(row["query_id"], row["query"]), documents)
            kept[row["query_id"]] = [vars(nugget) for nugget in judge.create(request)][:20]
        nuggets = [types.ScoredNugget(**nugget) for nugget in kept[row["query_id"]]]
        judge.assign(row["query"], " ".join(part["text"] for part in row["answer"]), nuggets)
    nuggets_file.write_text(json.dumps(kept))


def open_rag_eval(data: list[dict[str, Any]], url: str) -> None:
    """The calls of `TRECEvaluator.evaluate` for each response, in its order, but that of HHEM, a local model."""
    for name in ("google", "google.genai", "google.genai.errors", "anthropic", "together"):
        sys.modules[name] = MagicMock()
    sys.modules["google.genai.errors"].APIError = OSError  # type: ignore[attr-defined]
    # Its metrics' own __init__ imports torch for the hallucination metric.
    package = importlib.import_module("open_rag_eval")
    metrics = ModuleType("open_rag_eval.metrics")
    metrics.__path__ = [str(Path(str(package.__file__)).parent / "metrics")]
    metrics.__spec__ = ModuleSpec(metrics.__name__, None, is_package=True)
    sys.modules[metrics.__name__] = metrics
    results = importlib.import_module("open_rag_eval.data_classes.rag_results")
    judges = importlib.import_module("open_rag_eval.models.llm_judges")
    judge = judges.OpenAIModel({"name": "counted", "api_key": "none", "base_url": url})

    def metric(module: str, name: str) -> Any:
        return getattr(importlib.import_module(f"open_rag_eval.metrics.{module}"), name)(judge)

    umbrela, nuggets = (
        metric("umbrela_metric", "UMBRELAMetric"),
        metric("autonugget_metric", "AutoNuggetMetric"),
    )
    citations, answered = (
        metric("citation_metric", "CitationMetric"),
        metric("no_answer_metric", "NoAnswerMetric"),
    )
    for row in data:
        retrieved = results.RetrievalResult(row["query"], row["passages"])
        parts = [results.GeneratedAnswerPart(part["text"], part["citations"]) for part in row["answer"]]
        generated = results.AugmentedGenerationResult(row["query"], parts)
        both = results.RAGResult(retrieved, generated)
        scores = umbrela.compute(retrieved, [1, 3, 5])
        if not nuggets.compute(both, scores["umbrela_scores"]):
            raise SystemExit(f"{row['query_id']}: no nuggets")
        citations.compute(both)
        answered.compute(generated)


def _rows(path: str, only: list[str]) -> Iterator[dict[str, Any]]:
    for row in json.loads(Path(path).read_text()):
        if not only or row["query_id"] in only:
            yield row


if __name__ == "__main__":
    peer, path, url, *only = sys.argv[1:]
    if find_spec("openai") is None:
        raise SystemExit("this interpreter has no openai")
    os.environ |= {"OPENAI_API_KEY": "none", "OPENAI_BASE_URL": url}
    rows = [*_rows(path, only)]
    nuggetizer(rows) if peer == "nuggetizer" else open_rag_eval(rows, url)
