"""The report of a track: what the features add to it, their plots drawn, and the page around them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from trecexam.outputs.page.model import PagePart
from trecexam.outputs.page.render import render
from trecexam.outputs.report.contents import UpdateFacts, page_of
from trecexam.tables.plots.drawings import Drawings, plot_files
from trecexam.tables.section import Picture

if TYPE_CHECKING:
    from trecexam.line.assessment import Assessment
    from trecexam.line.output_files import Feature


def report_files(
    track: Assessment, features: Sequence[Feature], facts: UpdateFacts
) -> Iterator[tuple[str, bytes]]:
    """report.html and the plots' files, by their names in out/."""
    folder = track.folder
    drawings = Drawings(folder.out, folder.state, pdf=track.config.report.pdf)
    parts = []
    for feature in features:
        for part in () if feature.report is None else feature.report(track):
            plots = () if part.result is None else part.result.plots
            pictures = tuple(Picture(plot, drawings.of(plot)) for plot in plots)
            parts.append(PagePart(part, pictures, link=folder.link))
            for picture in pictures:
                yield from plot_files(picture.plot, picture.drawing)
    drawings.remember()
    yield "report.html", render(page_of(track, facts, parts))
