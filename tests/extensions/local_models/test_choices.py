from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trecexam.extensions.local_models.choices import ChoiceTree

ANSWERS = st.lists(
    st.lists(st.integers(1, 4), min_size=1, max_size=4).map(tuple), min_size=1, max_size=6, unique=True
)


@given(ANSWERS)
def test_the_path_of_an_answer_spells_its_tokens(answers: list[tuple[int, ...]]) -> None:
    tree = ChoiceTree.of(answers)
    for answer, path, leaf in zip(answers, tree.paths, tree.leaves, strict=True):
        assert tuple(token for _, token in path) == answer
        assert tree.tokens[leaf] == answer[-1]
        assert tree.depths[leaf] == len(answer)
        way = []
        while leaf >= 0:
            way.append(tree.tokens[leaf])
            leaf = tree.parents[leaf]
        assert tuple(reversed(way)) == answer


@given(ANSWERS)
def test_common_prefixes_share_a_node(answers: list[tuple[int, ...]]) -> None:
    tree = ChoiceTree.of(answers)
    assert len(tree.tokens) == len({answer[:end] for answer in answers for end in range(1, len(answer) + 1)})
    assert all(parent < place for place, parent in enumerate(tree.parents))


@given(ANSWERS)
def test_a_node_attends_only_to_itself_and_its_ancestors(answers: list[tuple[int, ...]]) -> None:
    tree = ChoiceTree.of(answers)
    for place, row in enumerate(tree.sees()):
        assert sum(row) == tree.depths[place]
        assert row[place]
    distances = tree.distances()
    assert [row[0] for row in distances] == [0, *tree.depths]


def test_indistinguishable_answers_are_rejected() -> None:
    with pytest.raises(ValueError, match="two answers have the same tokens"):
        ChoiceTree.of([(1, 2), (1, 2)])
    with pytest.raises(ValueError, match="without tokens"):
        ChoiceTree.of([()])
