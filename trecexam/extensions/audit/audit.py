"""The audit as one result and one HTML page: findings, most important first, and their tables."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trecexam.extensions.audit.findings import Finding
from trecexam.extensions.audit.judge import judge
from trecexam.extensions.audit.pool import pool
from trecexam.extensions.audit.ranking import ranking, sensitivity
from trecexam.extensions.audit.records import AuditInputs
from trecexam.extensions.audit.scales import scales
from trecexam.files import atomic
from trecexam.results.html import TEMPLATES, environment, style
from trecexam.results.page.page import Page
from trecexam.results.result import Tables
from trecexam.results.table import Layout, Table

#: Section -> title, introduction, and the function that makes the section.
SECTIONS = {
    "scales": (
        "Scales and thresholds",
        "How far the two sets of labels agree. Intervals are over queries.",
        scales,
    ),
    "pool": (
        "Pool",
        "Unjudged passages in the first ranks, and how many ranks of the leaderboard they could change.",
        pool,
    ),
    "ranking": (
        "Ranking",
        "Which differences these queries can show; pairs that the other side orders the other way.",
        ranking,
    ),
    "judge": (
        "The judge against people",
        "Where the second side's labels are higher than the first's labels predict.",
        judge,
    ),
    "sensitivity": ("Sensitivity", "Leaderboards over k, threshold and gains.", sensitivity),
}
#: Maximum rows of each table on the page; --json has all rows.
_ROWS = 100
#: Maximum characters of a finding's line on a terminal.
_WIDTH = 66


@dataclass(frozen=True, eq=False)
class Audit(Tables):
    """Findings of an audit, with their source tables.

    Attributes:
        findings: all findings, most important first.
        sections: section -> tables.
    """

    findings: tuple[Finding, ...] = ()
    sections: Mapping[str, Mapping[str, Table]] = field(default_factory=dict)

    @property
    def alarms(self) -> tuple[Finding, ...]:
        """Return the findings after which a conclusion may be wrong or a paper needs a remark."""
        return tuple(finding for finding in self.findings if finding.weight > 1)

    def _for_people(self, *, wide: bool = False) -> tuple[Table, ...]:
        """Return the findings in lines that fit a terminal."""
        rows: list[tuple[str, str]] = []
        for finding in self.findings:
            texts = finding.sentence, f"Why: {finding.reason}", f"Do: {finding.action}"
            lines = [line for text in texts for line in textwrap.wrap(text, _WIDTH)]
            rows += [("!" * finding.weight if not i else "", line) for i, line in enumerate(lines)]
        return (Table(("weight", "finding"), tuple(rows), layout=Layout(("weight",))),)


def audit(inputs: AuditInputs) -> Audit:
    """Run all sections of the audit on inputs of `read_inputs`."""
    notes = [*inputs.notes, *inputs.rejected]
    if len(inputs.sides) == 1:
        left_out = "agreement, thresholds, correlation, swaps and the judge's bias"
        notes.append(f"left out {left_out}: they need a second --qrels")
        if inputs.judge_run is not None:
            notes.append("--judge-run was ignored: it needs a second --qrels")
    if inputs.n_queries == 1:
        notes.append("left out tests, intervals and the smallest difference: they need two queries or more")
    about: dict[str, Any] = {"n_runs": len(inputs.runs), "n_queries": inputs.n_queries}
    about |= {"judgments": [side.name for side in inputs.sides], "cutoff": inputs.cutoff}
    findings: list[Finding] = []
    sections: dict[str, Mapping[str, Table]] = {}
    for name, (_, _, find) in SECTIONS.items():
        found, sections[name] = find(inputs)
        findings += found
    findings.sort(key=lambda finding: -finding.weight)
    header = ("weight", "section", "kind", "about", "finding", "number", "why", "do")
    tables = {"findings": Table(header, tuple(findings))}
    for tables_of_section in sections.values():
        tables |= tables_of_section
    return Audit(tables, tuple(notes), (), about, inputs.rejected, tuple(findings), sections)


def write_page(audit: Audit, path: Path) -> None:
    """Write the page of an audit.

    Raises:
        TrecexamError: the page cannot be written.
    """
    page = Page()
    for name, (title, lead, _) in SECTIONS.items():
        if tables := audit.sections[name]:
            page.add(name, Tables(tables), title=title, lead=lead, rows=_ROWS, folded=True)
    template = environment(Path(__file__).parent, TEMPLATES).get_template("audit.html")
    text = template.render(audit=audit, sections=page.sections, style=style())
    atomic.replace(path, text.encode("utf-8", "backslashreplace"))
