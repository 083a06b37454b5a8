"""The plots' pictures, drawn again only where they would look otherwise."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from trecexam.errors import TrecexamError
from trecexam.files.atomic import sha256
from trecexam.files.memory import recall, remember
from trecexam.tables.plots.canvas import draw, drawn_by
from trecexam.tables.plots.model import Drawing, Plot
from trecexam.tables.table import to_tsv

#: In out/, and the kinds of file that each plot has there.
FOLDER = "plots"
KINDS = ("svg", "png", "tsv")


class Drawings:
    """What was drawn by earlier updates, as far as it still lies in out/plots/ untouched."""

    def __init__(self, out: Path, memory: Path) -> None:
        """Args: out: the outputs' folder. memory: a file that tells which plot gave which picture."""
        self._folder = out / FOLDER
        self._memory = memory
        try:
            self._known = {key: tuple(map(str, value)) for key, value in recall(memory).items()}
        except TypeError:
            self._known = {}
        self._now: dict[str, Any] = {}

    def of(self, plot: Plot) -> Drawing:
        """The plot's picture."""
        key = f"{plot.digest()} {drawn_by()}"
        drawing = self._earlier(plot.name, self._known.get(key, ())) or draw(plot)
        if drawing.svg:
            self._now[key] = sha256(drawing.svg), sha256(drawing.png)
        return drawing

    def remember(self) -> None:
        """Notes what was asked for since this was made, for the next update."""
        # Where it cannot be noted, all is drawn again.
        with contextlib.suppress(TrecexamError):
            remember(self._memory, self._now)

    def _earlier(self, name: str, digests: tuple[str, ...]) -> Drawing | None:
        if len(digests) != 2:
            return None
        try:
            svg, png = ((self._folder / f"{name}.{kind}").read_bytes() for kind in KINDS[:2])
        except OSError:
            return None
        same = (sha256(svg), sha256(png)) == digests
        return Drawing(svg, png) if same else None


def plot_files(plot: Plot, drawing: Drawing) -> Iterator[tuple[str, bytes]]:
    """The files of a plot, by their names in out/."""
    for kind, content in zip(KINDS, (drawing.svg, drawing.png, to_tsv(plot.table).encode()), strict=True):
        if content:
            yield f"{FOLDER}/{plot.name}.{kind}", content
