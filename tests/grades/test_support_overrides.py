"""Which citation labels count: the last one for a text, wherever it is cited."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from converters.records import HumanRating, Item
from trecexam.bank.model import Bank
from trecexam.inputs.overrides import COUNTS, REFUSED, REPLACED, WITHDRAWN, resolve

QUERIES, SENTENCES, DOCS = ("q1", "q2"), ("statement:a", "statement:b"), ("d1", "d2", "d3")
#: d1 and d2 have the same text; d3 has none here.
TEXTS = {"d1": "Pumps move heat.", "d2": "Pumps move heat."}
KEYS = st.tuples(st.sampled_from(QUERIES), st.sampled_from(DOCS), st.sampled_from(SENTENCES))
ROWS = st.builds(
    lambda key, rating: HumanRating(*key, rating, "ann", "so"), KEYS, st.none() | st.integers(0, 3)
)


@given(st.lists(ROWS, max_size=8), st.frozensets(KEYS))
def test_the_last_label_of_a_citation_counts_wherever_its_text_is_cited(
    rows: list[HumanRating], cited: frozenset[tuple[str, str, str]]
) -> None:
    items: dict[str, dict[str, Item]] = {q: {} for q in QUERIES}
    pool: dict[str, dict[str, None]] = {q: {} for q in QUERIES}
    for q, doc, item in sorted(cited):
        items[q][item], pool[q][doc] = Item(q, item, item, "statement"), None
    bank = Bank({q: tuple(of_query.values()) for q, of_query in items.items()}, {})
    decided = resolve(
        list(enumerate(rows, 2)),
        "overrides.tsv",
        bank,
        {q: tuple(docs) for q, docs in pool.items()},
        TEXTS,
        2,
        cited=cited,
    )

    def group(row: HumanRating) -> tuple[str, str, str]:
        return row.query_id, TEXTS.get(row.doc_id, row.doc_id), row.item_id

    taken = [row for row in rows if row[:3] in cited and row.rating != 3]
    last = {group(row): row for row in taken}
    expected = {
        key: last[group(HumanRating(*key))]
        for key in cited
        if group(HumanRating(*key)) in last and last[group(HumanRating(*key))].rating is not None
    }
    assert decided.ratings == expected
    assert len(decided.rejected) == sum(row.rating == 3 and row[:3] in cited for row in rows)
    assert sorted(decision.line for decision in decided.decisions) == list(range(2, len(rows) + 2))
    for line, row, state in decided.decisions:
        later = [other for other in rows[line - 1 :] if other in taken and group(other) == group(row)]
        if row[:3] not in cited:
            assert state == "not cited"
        elif row.rating == 3:
            assert state == REFUSED
        else:
            assert state == (REPLACED if later else WITHDRAWN if row.rating is None else COUNTS)
