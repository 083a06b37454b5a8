from __future__ import annotations

import pytest

from trecexam.extensions.local_models.choices import ChoiceTree


def test_indistinguishable_answers_are_rejected() -> None:
    with pytest.raises(ValueError, match="two answers have the same tokens"):
        ChoiceTree([(1, 2), (1, 2)], [0], "cpu")
    with pytest.raises(ValueError, match="without tokens"):
        ChoiceTree([()], [0], "cpu")
