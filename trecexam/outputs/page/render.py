"""The report as HTML: one template, one style sheet, and the plots' SVG inside."""

from __future__ import annotations

import math
import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from trecexam.outputs.page.model import Report
from trecexam.scores.leaderboard import Score, interval
from trecexam.tables.excerpt import shown
from trecexam.tables.terminal import cut, printable

if TYPE_CHECKING:
    import jinja2
    from markupsafe import Markup

_HERE = Path(__file__).parent
#: Runs of the leaderboard that the page lists.
RUNS = 200


def render(report: Report) -> bytes:
    """The page."""
    text = _template().render(report=report, style=(_HERE / "report.css").read_text(encoding="utf-8"))
    # What slipped through as half a character is written as its escape.
    return (text + "\n").encode("utf-8", "backslashreplace")


@cache
def _template() -> jinja2.Template:
    import jinja2
    from markupsafe import Markup

    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {
        "cut": cut,
        "printable": printable,
        "shown": shown,
        # The SVG is our own, in which matplotlib escaped all names.
        "svg": lambda content: Markup(content.decode()),
        "spread": _spread,
        "said": _said,
    }
    environment.globals["most_runs"] = RUNS
    return environment.from_string((_HERE / "report.html").read_text(encoding="utf-8"))


def _said(line: str, width: int) -> Markup:
    """A line of talk, cut; what stands in backquotes in it is set as code."""
    from markupsafe import Markup, escape

    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(cut(line, width)))))


def _spread(score: Score, n: int) -> str:
    """The 95% interval of a mean over n queries; "" where there is none."""
    low, high = interval(score, n)
    return "" if math.isnan(low) else f"{low:.3f} to {high:.3f}"
