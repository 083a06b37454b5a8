"""The pool, against a brute-force union of rankings cut to a depth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from converters import Run
from trecexam.inputs import run_columns
from trecexam.inputs.pool import PooledQuery, pool_with_ranks
from trecexam.inputs.run_columns import RunColumns

Ranked = Mapping[str, Sequence[str]]


def run_of(name: str, ranked: Ranked) -> Run:
    """A run that ranks these passages in this order."""
    return Run.from_entries(
        name, [(q, doc_id, -float(rank)) for q, docs in ranked.items() for rank, doc_id in enumerate(docs)]
    )


def brute_force(
    runs: Sequence[Ranked], query_ids: Sequence[str], depth: int
) -> dict[str, tuple[tuple[str, ...], list[list[int]]]]:
    """query_id -> its passages, sorted, and for each run the index of the passage at each rank, or -1."""
    pooled = {}
    for query_id in query_ids:
        tops = [list(ranked.get(query_id, ()))[:depth] for ranked in runs]
        doc_ids = tuple(sorted({doc_id for top in tops for doc_id in top}))
        longest = max(map(len, tops), default=0)
        ranks = [[*map(doc_ids.index, top), *[-1] * (longest - len(top))] for top in tops]
        pooled[query_id] = doc_ids, ranks
    return pooled


def check(
    pooled: Mapping[str, PooledQuery], runs: Sequence[Ranked], query_ids: Sequence[str], depth: int
) -> None:
    expected = brute_force(runs, query_ids, depth)
    assert list(pooled) == list(expected)
    for query_id, (doc_ids, ranks) in expected.items():
        assert pooled[query_id].doc_ids == doc_ids
        assert pooled[query_id].ranks.dtype == np.int32
        assert pooled[query_id].ranks.shape[0] == len(runs)
        assert pooled[query_id].ranks.tolist() == ranks


# Ids whose orders as text, as bytes, and of appearance differ.
DOCS = st.sampled_from(["d1", "d10", "d2", "D1", "é", "e\u0301", "\uffee", "\U0001f600", "z"])
RANKED = st.dictionaries(
    st.sampled_from(["q1", "q2", "q3", "elsewhere"]), st.lists(DOCS, min_size=1, unique=True), max_size=4
)


@given(
    st.lists(RANKED, max_size=5),
    st.lists(st.sampled_from(["q1", "q2", "q3", "nobody answers"]), unique=True),
    st.integers(1, 12),
)
@settings(deadline=None)
def test_the_pool_has_the_sorted_top_passages_of_all_runs_with_their_ranks(
    ranked: list[Ranked], query_ids: list[str], depth: int
) -> None:
    runs = [run_of(f"run{number}", each) for number, each in enumerate(ranked)]
    check(pool_with_ranks(runs, query_ids, depth), ranked, query_ids, depth)


@pytest.mark.parametrize("depth", [1, 99, 100, 101, 150, 1000])
def test_runs_on_disk_and_in_memory_give_the_same_pool(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, depth: int
) -> None:
    monkeypatch.setattr(run_columns, "LEAST", 1)
    ranked = [
        {f"q{q}": [f"d{(place * 7 + number) % 211}" for place in range(40 * q)] for q in (1, 3, 5)}
        for number in range(3)
    ]
    paths = [tmp_path / f"run{number}.run" for number in range(3)]
    for path, each in zip(paths, ranked, strict=True):
        lines = [f"{q} Q0 {doc} 0 {-rank} t\n" for q, docs in each.items() for rank, doc in enumerate(docs)]
        path.write_text("".join(lines))
    columns = RunColumns(tmp_path / "columns")
    runs = [*map(columns.read, paths[:2]), run_of("run2", ranked[2])]
    check(pool_with_ranks(runs, ["q1", "q2", "q3", "q5"], depth), ranked, ["q1", "q2", "q3", "q5"], depth)
