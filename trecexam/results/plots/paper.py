"""A plot in the size for a paper: a matplotlib figure with paper-ready file output."""

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

#: Suffix -> metadata keys to remove, which would name the program and the time.
KINDS: dict[str, dict[str, None]] = {
    "pdf": {"Creator": None, "Producer": None, "CreationDate": None},
    "svg": {"Creator": None, "Date": None},
    "png": {"Software": None},
}
#: Resolution in dots per inch, on a screen and in print.
_SCREEN, _PRINT = 160, 300


class PaperFigure(Figure):
    """A drawn plot.

    `savefig` gives the same bytes for the same plot under any matplotlib settings of the user: exactly the
    figure's size, text as embedded TrueType fonts in PDFs and as paths in SVGs.

    Attributes:
        plot: the numbers, title and caption.
        notes: notes on the grades behind the plot.
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
            width: inches; None for the width in the report.
            height: inches; None for a height that suits the plot at this width.
            letters: font size in points; some text is a little smaller.
        """
        across = WIDTH if width is None else width
        # Height follows the letters for rows of names; other plots keep their aspect ratio up to a limit.
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
            # The layout is fixed now and does not change with the resolution.
            self.set_layout_engine("none")

    def draw(self, renderer: RendererBase) -> None:
        """Draw the figure under our matplotlib settings, which affect the axis ticks."""
        with own_settings(self._settings):
            super().draw(renderer)

    def savefig(self, fname: Any, **settings: Any) -> None:
        """Save the figure like matplotlib's `Figure.savefig`, with our settings."""
        kind = str(settings.get("format") or Path(str(fname)).suffix[1:] or "png").lower()
        settings.setdefault("dpi", _PRINT)
        if kind in KINDS:
            title = {"Title": printable(self.plot.title)}
            settings.setdefault("metadata", KINDS[kind] | title)
        with own_settings(self._settings):
            super().savefig(fname, **settings)

    def file(self, kind: str, dpi: int = _PRINT) -> bytes:
        """Return the content of a file of this type."""
        buffer = io.BytesIO()
        self.savefig(buffer, format=kind, dpi=dpi)
        return buffer.getvalue()

    def _repr_png_(self) -> bytes:
        return self.file("png", _SCREEN)
