from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from converters.records import NOT_JUDGED, Qrel
from trecexam.features.fill.arithmetic.merging import Machine, holes_of, merge, with_both
from trecexam.features.fill.arithmetic.scale_map import IDENTITY, thresholds

QUERIES = st.sampled_from(["q1", "q2", "q10"])
DOCS = st.sampled_from([f"d{n}" for n in range(12)])
#: Official rows: no duplicate document for a query and subtopic, in any order.
OFFICIAL = st.dictionaries(
    st.tuples(QUERIES, DOCS, st.sampled_from(["0", "1", "2"])), st.integers(-2, 4), max_size=25
).map(lambda rows: [Qrel(q, d, label, i) for (q, d, i), label in rows.items()])
POOL = st.dictionaries(QUERIES, st.frozensets(DOCS).map(lambda docs: tuple(sorted(docs))))
AUTOMATIC = st.dictionaries(QUERIES, st.dictionaries(DOCS, st.integers(0, 5)))
MACHINES = dict.fromkeys(["q1", "q2", "q10"], Machine("hash", "m", "p"))


def judged(rows: list[Qrel]) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for row in rows:
        if row.relevance != NOT_JUDGED:
            docs = found.setdefault(row.query_id, {})
            docs[row.doc_id] = max(row.relevance, 0, docs.get(row.doc_id, 0))
    return found


@given(OFFICIAL, POOL, AUTOMATIC, st.booleans())
def test_official_lines_are_kept_and_every_new_line_is_a_labelled_hole(
    official: list[Qrel],
    pool: dict[str, tuple[str, ...]],
    automatic: dict[str, dict[str, int]],
    as_unjudged: bool,
) -> None:
    rule = thresholds({2: 1, 5: 3})
    holes = holes_of(pool, judged(official))
    rows = merge(official, holes, automatic, rule, MACHINES, as_unjudged=as_unjudged)
    expected = {
        (q, d): automatic[q][d]
        for q, docs in pool.items()
        for d in docs
        if d not in judged(official).get(q, {}) and d in automatic.get(q, {})
    }
    kept = [row for row in official if (row.query_id, row.doc_id) not in expected]
    old, new = rows[: len(kept)], rows[len(kept) :]
    assert [row.qrel for row in old] == kept
    assert {row for row in official if row.relevance != NOT_JUDGED} <= set(kept)
    assert all(row.label == row.qrel.relevance and row.machine is None for row in old)
    assert [row.source for row in old] == [
        "unjudged" if row.relevance == NOT_JUDGED else "human" for row in kept
    ]
    assert {(row.qrel.query_id, row.qrel.doc_id): row.rating for row in new} == expected
    assert len(new) == len(expected)
    assert [row.qrel[:2] for row in new] == sorted(row.qrel[:2] for row in new)
    for row in new:
        assert row.rating is not None
        assert row.label == rule(row.rating)
        assert row.qrel.relevance == (NOT_JUDGED if as_unjudged else row.label)
        assert (row.source, row.machine, row.qrel.iteration) == ("model", Machine("hash", "m", "p"), "0")
    keys = [(row.qrel.query_id, row.qrel.iteration, row.qrel.doc_id) for row in rows]
    assert len(set(keys)) == len(keys)


def test_an_unjudged_query_is_all_holes_and_one_without_holes_is_left_out() -> None:
    assert holes_of({"q1": ("a",), "q2": ("b",), "q3": ()}, {"q1": {"a": 0}}) == {"q2": ("b",)}


@given(AUTOMATIC, OFFICIAL)
def test_labels_of_passages_with_both_sides_are_paired(
    automatic: dict[str, dict[str, int]], official: list[Qrel]
) -> None:
    human = judged(official)
    expected = sorted(
        (label, human[q][d]) for q in automatic for d, label in automatic[q].items() if d in human.get(q, {})
    )
    labels, judgments = with_both(automatic, human)
    assert sorted(zip(labels, judgments, strict=True)) == expected


def test_an_override_has_its_author_and_reason_and_no_confidence() -> None:
    rows = merge(
        [Qrel("q1", "a", 1)],
        {"q1": ("b", "c")},
        {"q1": {"b": 4, "c": 2}},
        IDENTITY,
        MACHINES,
        confidences={"q1": {"b": 0.5, "c": 0.75}},
        overridden={("q1", "b"): ("ann", "saw it"), ("q1", "a"): ("ann", "is judged already")},
    )
    assert [(row.source, row.label, row.confidence, row.who, row.why) for row in rows] == [
        ("human", 1, None, "", ""),
        ("override", 4, None, "ann", "saw it"),
        ("model", 2, 0.75, "", ""),
    ]
