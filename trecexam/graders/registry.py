"""Where graders are found.

Others come with an extension: `graders` of `trecexam.extension.Extension`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from trecexam.extension import extensions, named
from trecexam.graders.base import Factory

#: Graders that come with the package; known even where it runs from a source tree without metadata.
BUILT_IN = {
    "recorded": "trecexam.graders.recorded:FACTORY",
    "embedding": "trecexam.graders.embedding:FACTORY",
    "seq2seq": "trecexam.graders.seq2seq:FACTORY",
    "causal": "trecexam.graders.causal:FACTORY",
    "openai": "trecexam.graders.openai:FACTORY",
}


@cache
def available() -> Mapping[str, Factory]:
    """Every grader known here by name, whether it can run or not."""
    factories: dict[str, Factory] = {}
    declared = (extension.graders for extension in extensions())
    for graders in (BUILT_IN, *declared):
        factories |= {name: named(at) for name, at in graders.items()}
    return dict(sorted(factories.items()))
