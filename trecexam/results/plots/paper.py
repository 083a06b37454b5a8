"""A plot at the size that a paper has for it: a matplotlib figure that is saved as papers need it."""

from __future__ import annotations

import io
import warnings
from pathlib import Path
from typing import Any

from matplotlib.backend_bases import RendererBase
from matplotlib.figure import Figure

from trecexam.errors import TrecexamError
from trecexam.results.plots.style import LETTERS, WIDTH, own_settings
from trecexam.results.result import Plot
from trecexam.results.terminal import printable

#: The kinds of file, by their endings; what each would otherwise say of the program and the time goes.
KINDS: dict[str, dict[str, None]] = {
    "pdf": {"Creator": None, "Producer": None, "CreationDate": None},
    "svg": {"Creator": None, "Date": None},
    "png": {"Software": None},
}
#: Dots an inch, on a screen and in print.
_SCREEN, _PRINT = 160, 300


class PaperFigure(Figure):
    """A plot, drawn.

    `savefig` gives the same bytes for the same plot whatever the user's settings of matplotlib are: exactly
    as wide and high as the figure, text in PDFs in embedded TrueType fonts, in SVGs as paths.

    Attributes:
        plot: its numbers, title and caption.
        notes: what one must know of its grades.
    """

    def __init__(
        self,
        plot: Plot,
        *,
        width: float | None = None,
        height: float | None = None,
        letters: float = LETTERS,
        notes: tuple[str, ...] = (),
    ) -> None:
        """Draw a plot in a size.

        Args:
            width: inches; None for that in the report.
            height: inches; None for one that suits the plot at this width.
            letters: points of the letters; some are a little smaller.
        """
        across = WIDTH if width is None else width
        # Rows of names are as high as their letters; other plots keep their shape, but grow no higher.
        ratio = letters / LETTERS if plot.rows else min(1.0, across / WIDTH)
        up = plot.height * ratio if height is None else height
        self.plot, self.notes = plot, notes
        # Text as paths: whatever fonts a reader has, nothing collides.
        self._settings = {"font.size": letters, "svg.fonttype": "path"}
        with own_settings(self._settings), warnings.catch_warnings():
            warnings.filterwarnings("error", ".*constrained_layout not applied.*")
            super().__init__((across, up), dpi=_SCREEN, layout="constrained")
            try:
                plot.draw(self, plot)
                for axes in self.axes:
                    axes.xaxis.label.set_wrap(True)
                    axes.yaxis.label.set_wrap(True)
                self.draw_without_rendering()
            except UserWarning:
                raise TrecexamError(
                    f"plot {plot.name}: {across:.2f} x {up:.2f} in are too small with letters of "
                    f"{letters:g} points; give more width or height, or smaller letters"
                ) from None
            # What is where is settled, and does not change with the resolution.
            self.set_layout_engine("none")

    def draw(self, renderer: RendererBase) -> None:
        """As matplotlib's, with our settings: how many numbers are at an axis depends on them."""
        with own_settings(self._settings):
            super().draw(renderer)

    def savefig(self, fname: Any, **settings: Any) -> None:
        """As matplotlib's, which has the arguments, with our settings."""
        kind = str(settings.get("format") or Path(str(fname)).suffix[1:] or "png").lower()
        settings.setdefault("dpi", _PRINT)
        if kind in KINDS:
            title = {"Title": printable(self.plot.title)}
            settings.setdefault("metadata", KINDS[kind] | title)
        with own_settings(self._settings):
            super().savefig(fname, **settings)

    def file(self, kind: str, dpi: int = _PRINT) -> bytes:
        """Return the content of a file of this kind."""
        buffer = io.BytesIO()
        self.savefig(buffer, format=kind, dpi=dpi)
        return buffer.getvalue()

    def _repr_png_(self) -> bytes:
        return self.file("png", _SCREEN)
