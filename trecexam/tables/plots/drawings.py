"""The plots' pictures, drawn again only where they would look otherwise."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from trecexam.errors import TrecexamError
from trecexam.files.atomic import sha256
from trecexam.files.kept import read_regular, recall, remember
from trecexam.tables.plots.canvas import draw, drawn_by
from trecexam.tables.plots.model import Drawing, Plot
from trecexam.tables.table import to_tsv

#: In out/, and the kinds of file that each plot has there.
FOLDER = "plots"
#: In .trecexam/.
MEMORY = "plots.json"
KINDS = ("svg", "pdf", "tsv")


class Drawings:
    """What was drawn by earlier updates, as far as it is untouched in the folder of plots."""

    def __init__(self, out: Path, state: Path, *, pdf: bool = False) -> None:
        """Args: out: has the folder of plots. state: where it is kept which plot gave which picture.
        pdf: as PDF too.
        """
        self._pdf = pdf
        self._folder = out / FOLDER
        self._memory = state / MEMORY
        saved = recall(self._memory).get(out.name, {})
        self._known = {key: tuple(digests) for key, digests in saved.items()}
        self._now: dict[str, Any] = {}

    def of(self, plot: Plot) -> Drawing:
        """The plot's picture."""
        key = f"{plot.digest()} {drawn_by(plot.draw.__module__)}"
        drawing = self._earlier(plot.name, self._known.get(key, ())) or draw(plot, pdf=self._pdf)
        if drawing.svg:
            self._now[key] = [sha256(content) for content in self._contents(drawing)]
        return drawing

    def remember(self) -> None:
        """Notes what was asked for since this was made, for the next update."""
        # Where it cannot be noted, all is drawn again.
        with contextlib.suppress(TrecexamError):
            remember(self._memory, {**recall(self._memory), self._folder.parent.name: self._now})

    def _earlier(self, name: str, digests: tuple[str, ...]) -> Drawing | None:
        try:
            files = [read_regular(self._folder / f"{name}.{kind}") for kind in KINDS[: 1 + self._pdf]]
        except OSError:
            return None
        if tuple(map(sha256, files)) != digests:
            return None
        svg, *pdf = files
        return Drawing(svg, pdf[0] if pdf else b"")

    def _contents(self, drawing: Drawing) -> Sequence[bytes]:
        return (drawing.svg, drawing.pdf)[: 1 + self._pdf]


def drawn(plots: Iterable[Plot]) -> tuple[dict[str, bytes], list[str]]:
    """The files of plots, by their names; and why one could not be drawn, one per line."""
    files: dict[str, bytes] = {}
    why = []
    for plot in plots:
        drawing = draw(plot)
        files.update(plot_files(plot, drawing))
        if drawing.why:
            why.append(f"plot {plot.name} could not be drawn: {drawing.why}")
    return files, why


def plot_files(plot: Plot, drawing: Drawing) -> Iterator[tuple[str, bytes]]:
    """The files of a plot, by their names in out/."""
    contents = (drawing.svg, drawing.pdf, to_tsv(plot.table).encode())
    for kind, content in zip(KINDS, contents, strict=True):
        if content:
            yield f"{FOLDER}/{plot.name}.{kind}", content
