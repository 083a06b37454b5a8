"""Characters that steer what shows a text: in ids, names and reasons they stand for no writing."""

from __future__ import annotations

import re

#: Controls but the line end, bidirectional embeddings, overrides and isolates, invisible tags, surrogates.
CONTROLS = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufff9-\ufffb\ud800-\udfff"
    "\U000e0000-\U000e007f]"
)


def escaped(text: str) -> str:
    """The text with the Python escape of each such character in its place."""
    return CONTROLS.sub(lambda match: ascii(match[0])[1:-1], text)
