"""The audit as one result: findings, most important first, and the tables behind them."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trecexam.extensions.audit.judge import judge
from trecexam.extensions.audit.pool import pool
from trecexam.extensions.audit.ranking import ranking
from trecexam.extensions.audit.reading import read_inputs
from trecexam.extensions.audit.records import AuditInputs, Finding, Part
from trecexam.extensions.audit.scales import scales
from trecexam.extensions.audit.sensitivity import sensitivity
from trecexam.tables.result import Result
from trecexam.tables.table import Layout, Table
from trecexam.tables.text import plural

#: Section -> its title and what makes it, in the order of the page.
SECTIONS = {
    "scales": ("Scales and thresholds", scales),
    "pool": ("Pool", pool),
    "ranking": ("Ranking", ranking),
    "judge": ("The judge against people", judge),
    "sensitivity": ("Sensitivity", sensitivity),
}
#: Letters in a line of a finding, as a terminal shows it.
_WIDTH = 66
_ONE_SIDE = (
    "one set of judgments: agreement, thresholds, correlation, swaps and the judge's bias need a second "
    "--qrels, and are left out"
)


@dataclass(frozen=True, eq=False)
class Audit(Result):
    """What survives of these runs and judgments.

    Attributes:
        parts: section -> its findings and tables.
        about: runs, queries, judgments.
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
        """Those after which a conclusion may be wrong, or needs a word in a paper."""
        return tuple(finding for finding in self.findings if finding.weight > 1)

    def declare(self) -> dict[str, Table]:
        """The findings, and then the tables of all sections."""
        header = ("weight", "section", "kind", "about", "finding", "number", "why", "do")
        rows = tuple(
            (f.weight, f.section, f.kind, f.about, f.sentence, f.number, f.reason, f.action)
            for f in self.findings
        )
        tables = {"findings": Table(header, rows, layout=Layout(("finding",)))}
        for part in self.parts.values():
            tables |= part.tables
        return tables

    def for_people(self) -> tuple[Table, ...]:
        """The findings in lines that a terminal has room for."""
        rows: list[tuple[str, str]] = []
        for finding in self.findings:
            texts = finding.sentence, f"Why: {finding.reason}", f"Do: {finding.action}"
            lines = [line for text in texts for line in textwrap.wrap(text, _WIDTH)]
            rows += [("!" * finding.weight if not i else "", line) for i, line in enumerate(lines)]
        return (Table(("weight", "finding"), tuple(rows), layout=Layout(("weight",))),)

    @property
    def facts(self) -> Mapping[str, Any]:
        """Runs, queries, judgments; and how many alarms there are."""
        return {**self.about, "n_alarms": len(self.alarms)}


def audit(inputs: AuditInputs) -> Audit:
    """Which conclusions survive?"""
    parts = {name: make(inputs) for name, (_, make) in SECTIONS.items()}
    notes = [*inputs.notes, *inputs.rejected]
    if len(inputs.sides) == 1:
        notes.append(_ONE_SIDE)
    elif inputs.teams == inputs.runs:
        notes.append("no teams: bias and tau by team are left out; name them with --teams")
    if len(inputs.sides) == 2 and inputs.judge_run is None:
        notes.append("no --judge-run: how far likeness to the judge explains its bias is left out")
    about = {
        "n_runs": len(inputs.runs),
        "n_queries": len(inputs.query_ids),
        "judgments": [side.name for side in inputs.sides],
        "cutoff": inputs.cutoff,
    }
    return Audit(parts, about, tuple(notes), inputs.rejected)


def audit_files(
    qrels: Sequence[Path | str],
    runs: Sequence[Path | str],
    *,
    teams: Path | str | None = None,
    judge_run: Path | str | None = None,
    cutoff: int = 10,
    page: Path | str | None = None,
) -> Audit:
    """Audits files, as `trecexam audit` does.

    Args:
        qrels: one or two sets of judgments; the first is the reference.
        runs: run files, or folders that have some.
        teams: a file of `run<TAB>team` lines.
        judge_run: the judge's own ranking, a run file.
        cutoff: k of nDCG@k, 1 to 20.
        page: where to write the audit as one HTML page.

    Raises:
        ConversionError: what is needed cannot be read; runs that cannot are `rejected` and left out.
        TrecexamError: no run, or no query, is left to audit.
    """
    found = audit(
        read_inputs(
            [Path(path) for path in qrels],
            [Path(path) for path in runs],
            teams=None if teams is None else Path(teams),
            judge_run=None if judge_run is None else Path(judge_run),
            cutoff=cutoff,
        )
    )
    if page is not None:
        # Behind it is jinja2.
        from trecexam.extensions.audit.page import write_page

        write_page(found, Path(page))
        found = found.noted(f"{page}: written, {plural(len(found.findings), 'finding')}")
    return found
