"""What a feature declares of its files in out/: which they are, what they hang on, and how they are made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from trecexam.line.loaded import LoadedTrack, Part


@dataclass(frozen=True)
class OutputFiles:
    """Files of out/ that are made together.

    Attributes:
        names: all that there may be, by their names in out/.
        parts: the parts of a track that they are made from; where these are the same, so are the files.
        make: gives the contents of those that apply to a loaded track.
    """

    names: tuple[str, ...]
    parts: tuple[Part, ...]
    make: Callable[[LoadedTrack], Mapping[str, bytes]]
