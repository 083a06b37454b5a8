"""The audit as one HTML page that needs nothing else, in the look of the report."""

from __future__ import annotations

from pathlib import Path

from trecexam.extensions.audit.result import Audit
from trecexam.files import atomic
from trecexam.outputs.page import render
from trecexam.outputs.page.model import PagePart
from trecexam.tables.result import Tables
from trecexam.tables.section import ReportPart

#: Rows of each table on the page; --json has all.
_ROWS = 100
#: Section -> its title, and how it is to be read.
_WORDS = {
    "scales": ("Scales and thresholds", "How far the sides say the same. Intervals are over queries."),
    "pool": ("Pool", "What is not judged in the first ranks, and how many ranks that leaves open."),
    "ranking": ("Ranking", "Which differences these queries can tell; pairs that the other side reverses."),
    "judge": ("The judge against people", "What the second side gives runs beyond the first side's labels."),
    "sensitivity": ("Sensitivity", "Leaderboards over k, threshold, gains, and what is unjudged."),
}


def write_page(audit: Audit, path: Path) -> None:
    """Writes the page.

    Raises:
        TrecexamError: it cannot be written.
    """
    import jinja2

    parts = [
        PagePart(ReportPart(name, Tables(part.tables), title, lead, rows=_ROWS))
        for name, (title, lead) in _WORDS.items()
        if (part := audit.parts[name]).tables
    ]
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True)
    environment.filters |= render.filters()
    template = environment.from_string(Path(__file__).with_name("audit.html").read_text(encoding="utf-8"))
    style = (render.HERE / "report.css").read_text(encoding="utf-8")
    text = template.render(audit=audit, sections=list(render.rendered(parts)), style=style)
    atomic.replace(path, text.encode("utf-8", "backslashreplace"))
