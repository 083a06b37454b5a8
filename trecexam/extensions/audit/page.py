"""The audit as one HTML page that needs nothing else, in the look of the report."""

from __future__ import annotations

from pathlib import Path

import jinja2

from trecexam.extensions.audit.audit import SECTIONS, Audit
from trecexam.files import atomic
from trecexam.outputs.page import render
from trecexam.outputs.page.model import PagePart
from trecexam.tables.result import Tables
from trecexam.tables.section import ReportPart

#: Rows of each table on the page; --json has all.
_ROWS = 100
_LEADS = {
    "scales": "Thresholds of each side, and how far they say the same. Intervals are over queries.",
    "pool": "What is not judged in the first ranks, and how many ranks that leaves open.",
    "ranking": "Which differences these queries can tell, and which pairs the other side orders otherwise.",
    "judge": "What the second side gives runs beyond passages of the same query and the same first label.",
    "sensitivity": "Leaderboards over k, threshold, gains, and what is unjudged.",
}


def write_page(audit: Audit, path: Path) -> None:
    """Writes the page.

    Raises:
        TrecexamError: it cannot be written.
    """
    atomic.replace(path, page(audit))


def page(audit: Audit) -> bytes:
    """The page, in UTF-8."""
    parts = [
        PagePart(
            ReportPart(name, Tables(part.tables), title, _LEADS[name], rows=_ROWS),
        )
        for name, (title, _) in SECTIONS.items()
        if (part := audit.parts[name]).tables
    ]
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= render.filters()
    template = environment.from_string(Path(__file__).with_name("audit.html").read_text(encoding="utf-8"))
    numbers = {
        "runs": audit.about["n_runs"],
        "queries": audit.about["n_queries"],
        "sets of judgments": len(audit.about["judgments"]),
        "alarms": len(audit.alarms),
    }
    text = template.render(
        audit=audit,
        numbers=numbers,
        sections=list(render.rendered(parts)),
        style=(render.HERE / "report.css").read_text(encoding="utf-8"),
    )
    return text.encode("utf-8", "backslashreplace")
