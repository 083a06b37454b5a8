"""What a plot is, before anything is drawn."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from trecexam.results.table import Table, Value

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Size(NamedTuple):
    """The size of a plot in the report, in inches; the height of `rows` of text goes with their letters."""

    width: float
    height: float
    rows: bool = False


@dataclass(frozen=True)
class Plot:
    """A plot, all of it: `draw` looks at nothing else.

    Attributes:
        name: of its files, and the start of the ids inside its SVG; letters and underscores.
        title: a few words.
        caption: how it is to be read.
        summary: what there is to see, for who cannot see it.
        table: its numbers.
        draw: draws it on an empty figure, of whatever size.
        size: in the report.
        settings: what else it needs to know.
    """

    name: str
    title: str
    caption: str
    summary: str
    table: Table
    draw: Callable[[Figure, Plot], None] = field(compare=False)
    size: Size
    settings: Mapping[str, Value] = field(default_factory=dict)


@dataclass(frozen=True)
class Drawing:
    """Files of a plot; a file that could not be drawn is empty, and `why` says the reason."""

    svg: bytes = b""
    pdf: bytes = b""
    why: str = ""
