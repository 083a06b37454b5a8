"""The audit as one result and one HTML page: findings, most important first, and their tables."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trecexam.extensions.audit.findings import Finding, Part
from trecexam.extensions.audit.judge import judge
from trecexam.extensions.audit.pool import pool
from trecexam.extensions.audit.ranking import ranking
from trecexam.extensions.audit.records import AuditInputs
from trecexam.extensions.audit.scales import scales
from trecexam.extensions.audit.sensitivity import sensitivity
from trecexam.files import atomic
from trecexam.results.html import filters, style
from trecexam.results.page.page import Page
from trecexam.results.result import Result, Tables
from trecexam.results.table import Layout, Table

#: Section -> its title, an introduction, and the function that makes it.
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
    "sensitivity": ("Sensitivity", "Leaderboards over k, threshold, gains, unjudged passages.", sensitivity),
}
#: Rows of each table on the page; --json has all.
_ROWS = 100
_ONE_SIDE = (
    "left out agreement, thresholds, correlation, swaps and the judge's bias: they need a second --qrels"
)
#: Characters of a finding's line on a terminal.
_WIDTH = 66


@dataclass(frozen=True, eq=False)
class Audit(Result):
    """Findings of an audit, with the tables that they are based on.

    Attributes:
        parts: section -> its findings and tables.
        about: how many runs and queries; the judgments' names; the cutoff.
        notes: what was left out, and why.
        rejected: run files that could not be read.
    """

    parts: Mapping[str, Part]
    about: Mapping[str, Any]
    notes: tuple[str, ...] = ()
    rejected: tuple[str, ...] = ()

    @property
    def findings(self) -> tuple[Finding, ...]:
        """All findings, most important first."""
        every = [finding for part in self.parts.values() for finding in part.findings]
        return tuple(sorted(every, key=lambda finding: -finding.weight))

    @property
    def alarms(self) -> tuple[Finding, ...]:
        """The findings after which a conclusion may be wrong or needs a remark in a paper."""
        return tuple(finding for finding in self.findings if finding.weight > 1)

    def _declare(self) -> dict[str, Table]:
        """The findings, and then the tables of all sections."""
        header = ("weight", "section", "kind", "about", "finding", "number", "why", "do")
        rows = tuple(
            (f.weight, f.section, f.kind, f.about, f.sentence, f.number, f.reason, f.action)
            for f in self.findings
        )
        behind = {name: made for part in self.parts.values() for name, made in part.tables.items()}
        return {"findings": Table(header, rows), **behind}

    def _for_people(self, *, wide: bool = False) -> tuple[Table, ...]:
        """The findings in lines that a terminal has room for."""
        rows: list[tuple[str, str]] = []
        for finding in self.findings:
            texts = finding.sentence, f"Why: {finding.reason}", f"Do: {finding.action}"
            lines = [line for text in texts for line in textwrap.wrap(text, _WIDTH)]
            rows += [("!" * finding.weight if not i else "", line) for i, line in enumerate(lines)]
        return (Table(("weight", "finding"), tuple(rows), layout=Layout(("weight",))),)

    @property
    def facts(self) -> Mapping[str, Any]:
        """How many queries, runs and judgments were audited."""
        return self.about


def audit(inputs: AuditInputs) -> Audit:
    """Runs all sections of the audit on inputs of `read_inputs`."""
    notes = [*inputs.notes, *inputs.rejected]
    if len(inputs.sides) == 1:
        notes.append(_ONE_SIDE)
        if inputs.judge_run is not None:
            notes.append("--judge-run was ignored: it needs a second --qrels")
    elif inputs.teams == inputs.runs:
        notes.append("left out bias and tau by team: give --teams")
    if len(inputs.sides) == 2 and inputs.judge_run is None:
        notes.append("left out how far likeness to the judge explains its bias: give --judge-run")
    if len(inputs.query_ids) == 1:
        notes.append("left out tests, intervals and the smallest difference: they need two queries or more")
    about: dict[str, Any] = {"n_runs": len(inputs.runs), "n_queries": len(inputs.query_ids)}
    about |= {"judgments": [side.name for side in inputs.sides], "cutoff": inputs.cutoff}
    parts = {name: make(inputs) for name, (_, _, make) in SECTIONS.items()}
    return Audit(parts, about, tuple(notes), inputs.rejected)


def write_page(audit: Audit, path: Path, track: str) -> None:
    """Write the page of an audit; its title names the track.

    Raises:
        TrecexamError: it cannot be written.
    """
    import jinja2

    page = Page()
    for name, (title, lead, _) in SECTIONS.items():
        if tables := audit.parts[name].tables:
            page.add(name, Tables(tables), title=title, lead=lead, rows=_ROWS, folded=True)
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True)
    environment.filters |= filters()
    template = environment.from_string(Path(__file__).with_name("audit.html").read_text(encoding="utf-8"))
    text = template.render(audit=audit, track=track, sections=page.sections, style=style())
    atomic.replace(path, text.encode("utf-8", "backslashreplace"))
