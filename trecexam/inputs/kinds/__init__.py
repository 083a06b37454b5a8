"""The kinds of grading, by the name that `kind` in [graders.NAME] has for each."""

from __future__ import annotations

from collections.abc import Collection

from trecexam.inputs.kind import Kind
from trecexam.inputs.kinds import support
from trecexam.inputs.kinds.pooled import NUGGETS, RELEVANCE, RUBRIC

KINDS = {kind.name: kind for kind in (RUBRIC, NUGGETS, RELEVANCE, support.KIND)}


def kind_of_items(item_kinds: Collection[str]) -> Kind:
    """Return the kind of a grader of exactly these kinds of items, else that of rubrics."""
    kind_set = frozenset(item_kinds)
    return next((kind for kind in KINDS.values() if kind.item_kinds == kind_set), RUBRIC)
