"""The audit as a result: findings, most important first, and the tables behind them."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trecexam.extensions.audit.records import Finding, Part
from trecexam.tables.result import Result
from trecexam.tables.table import Layout, Table

#: Letters in a line of a finding, as a terminal shows it.
_WIDTH = 66


@dataclass(frozen=True, eq=False)
class Audit(Result):
    """What survives of these runs and judgments.

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
        """Those after which a conclusion may be wrong, or needs a word in a paper."""
        return tuple(finding for finding in self.findings if finding.weight > 1)

    def declare(self) -> dict[str, Table]:
        """The findings, and then the tables of all sections."""
        header = ("weight", "section", "kind", "about", "finding", "number", "why", "do")
        rows = tuple(
            (f.weight, f.section, f.kind, f.about, f.sentence, f.number, f.reason, f.action)
            for f in self.findings
        )
        behind = {name: made for part in self.parts.values() for name, made in part.tables.items()}
        return {"findings": Table(header, rows), **behind}

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
        """What it is about."""
        return self.about
