"""Where graders are found.

New ones come in through the entry point group "trecexam.graders", whose objects are `Factory` instances.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points

from trecexam.graders.base import Factory

#: Graders that come with the package; known even where it runs from a source tree without metadata.
BUILT_IN = {
    "recorded": "trecexam.graders.recorded:FACTORY",
    "embedding": "trecexam.graders.embedding:FACTORY",
    "seq2seq": "trecexam.graders.seq2seq:FACTORY",
    "causal": "trecexam.graders.causal:FACTORY",
    "openai": "trecexam.graders.openai:FACTORY",
    "ragval": "trecexam.extensions.ragval.grader:FACTORY",
    "erag": "trecexam.extensions.erag.grader:FACTORY",
}


@cache
def available() -> Mapping[str, Factory]:
    """Every grader known here by name, whether it can run or not."""
    factories: dict[str, Factory] = {}
    for name, target in BUILT_IN.items():
        module, _, attribute = target.partition(":")
        factories[name] = getattr(import_module(module), attribute)
    for entry in entry_points(group="trecexam.graders"):
        if entry.name not in BUILT_IN:
            factories[entry.name] = entry.load()
    return dict(sorted(factories.items()))
