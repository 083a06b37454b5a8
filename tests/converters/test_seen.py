from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from converters import trec_qrels as seen
from converters.trec_qrels import Seen

ROWS = st.lists(st.tuples(st.sampled_from("abc"), st.text("xyz ", max_size=3)), max_size=60)


@given(ROWS, st.integers(0, 20))
def test_the_first_line_of_each_key_is_found_in_any_order(rows: list[tuple[str, str]], patience: int) -> None:
    before, seen._PATIENCE = seen._PATIENCE, patience
    try:
        ours, plain = Seen(), dict[tuple[str, str], int]()
        for line, (query_id, key) in enumerate(rows, 1):
            assert ours.first(query_id, key, line) == plain.setdefault((query_id, key), line)
        assert len(ours) == len({query_id for query_id, _ in rows})
    finally:
        seen._PATIENCE = before
