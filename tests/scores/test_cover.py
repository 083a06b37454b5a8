"""Cover and nCover as ir_measures measures, against computations with sets."""

from __future__ import annotations

import subprocess
import sys

from ir_measures import Qrel
from naive_cover import Frame, as_run, per_query

from trecexam.scores import Cover, nCover
from trecexam.scores.labels import RubricQrel, label_qrels
from trecexam.scores.ratings import QueryRatings


def test_a_skipped_query_is_zero(queries: list[QueryRatings], rankings: dict[str, list[str]]) -> None:
    del rankings["q2"]
    rankings["unknown"] = ["d00"]
    found = per_query(Cover(rel=1) @ 20, label_qrels(queries), as_run(rankings))
    assert found["q2"] == 0
    assert found.keys() == {q.query_id for q in queries}
    assert per_query(Cover @ 5, label_qrels(queries), {}) == dict.fromkeys(found, 0)


def test_rows_without_ratings_take_iterations_as_items() -> None:
    rows = [Qrel("q", "a", 5, "1"), Qrel("q", "b", 4, "2"), Qrel("q", "b", 1, "1"), Qrel("q", "c", 0, "x")]
    run = {"q": {"b": 2.0, "a": 1.0}}
    frame = Frame(rows, ("query_id", "doc_id", "relevance", "iteration"))
    for qrels in (rows, frame):
        assert per_query(Cover @ 1, qrels, run) == {"q": 1 / 3}
        assert per_query(Cover @ 2, qrels, run) == {"q": 2 / 3}
        assert per_query(nCover @ 1, qrels, run) == {"q": 1 / 2}
        assert per_query(Cover(rel=5) @ 2, qrels, run) == {"q": 1 / 3}
    run_frame = Frame([("q", "a", 1.0)], ("query_id", "doc_id", "score"))
    assert per_query(Cover @ 1, frame, run_frame) == {"q": 1 / 3}


def test_a_query_without_items_has_cover_zero() -> None:
    assert per_query(Cover, [RubricQrel("q", "a", 0, ratings=())], {"q": {"a": 1.0}}) == {"q": 0}
    assert per_query(nCover, [RubricQrel("q", "a", 0, ratings=(3,))], {"q": {"a": 1.0}}) == {"q": 0}


def test_cover_equals_hand_computed_values() -> None:
    rows = [RubricQrel("q", "a", 5, ratings=(5, -1, 0)), RubricQrel("q", "b", 4, ratings=(4, 4, -1))]
    run = as_run({"q": ["none", "a", "b"]})
    assert [per_query(each, rows, run)["q"] for each in (Cover @ 1, nCover @ 1)] == [0, 0]
    assert [per_query(each, rows, run)["q"] for each in (Cover @ 2, nCover @ 2)] == [1 / 3, 1 / 2]
    assert [per_query(each, rows, run)["q"] for each in (Cover, nCover)] == [2 / 3, 1]
    assert [per_query(each, rows, {})["q"] for each in (Cover, nCover)] == [0, 0]


def test_import_is_fast_and_lazy() -> None:
    script = (
        "import sys, trecexam.scores\n"
        "heavy = {'scipy', 'torch', 'transformers', 'ir_measures', 'numpy', 'pandas'} & sys.modules.keys()\n"
        "assert not heavy, heavy\n"
        "from trecexam.scores import Cover, nCover\n"
        "import ir_measures\n"
        "assert str(ir_measures.parse_measure('nCover@5')) == 'nCover(rel=4)@5'\n"
        "import trecexam.scores.measures, trecexam.scores.correlation, trecexam.scores.leaderboard\n"
        "assert not {'scipy', 'torch', 'transformers', 'pandas'} & sys.modules.keys()\n"
        "assert 'Cover' in dir(trecexam.scores)\n"
        "assert all(getattr(trecexam.scores, name) for name in trecexam.scores.__all__)\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
