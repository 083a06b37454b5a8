"""The kinds of grading that are known here.

Others come with an extension: `kinds` of `trecexam.extension.Extension`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cache

from trecexam.extension import extensions, named
from trecexam.line.kind import Kind
from trecexam.line.kinds import support
from trecexam.line.kinds.pooled import NUGGETS, RELEVANCE, RUBRIC

#: Those that come with the package.
BUILT_IN = {kind.name: kind for kind in (RUBRIC, NUGGETS, RELEVANCE, support.KIND)}


@cache
def available() -> Mapping[str, Kind]:
    """Every kind known here by name."""
    extension_kinds = {name: named(at) for extension in extensions() for name, at in extension.kinds.items()}
    return {**extension_kinds, **BUILT_IN}


def kind_of_items(item_kinds: Collection[str]) -> Kind:
    """The kind that a grader of these kinds of items has where no settings say it: that of rubrics, where no
    other one asks about these alone.
    """
    kind_set = frozenset(item_kinds)
    exact = (kind for kind in available().values() if kind.item_kinds == kind_set)
    return next(exact, RUBRIC)
