"""Which conclusions survive: all sections of the audit, of arrays or of files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from trecexam.extensions.audit.judge import judge
from trecexam.extensions.audit.page import write_page
from trecexam.extensions.audit.pool import pool
from trecexam.extensions.audit.ranking import ranking
from trecexam.extensions.audit.reading import read_inputs
from trecexam.extensions.audit.records import AuditInputs, Part
from trecexam.extensions.audit.result import Audit
from trecexam.extensions.audit.scales import scales
from trecexam.extensions.audit.sensitivity import sensitivity

#: Section -> what makes it, in the order of the page.
SECTIONS: Mapping[str, Callable[[AuditInputs], Part]] = {
    "scales": scales,
    "pool": pool,
    "ranking": ranking,
    "judge": judge,
    "sensitivity": sensitivity,
}
_ONE_SIDE = (
    "one set of judgments: agreement, thresholds, correlation, swaps and the judge's bias need a second "
    "--qrels, and are left out"
)


def audit(inputs: AuditInputs) -> Audit:
    """Which conclusions survive?"""
    notes = [*inputs.notes, *inputs.rejected]
    if len(inputs.sides) == 1:
        notes.append(_ONE_SIDE)
    elif inputs.teams == inputs.runs:
        notes.append("no teams: bias and tau by team are left out; name them with --teams")
    if len(inputs.sides) == 2 and inputs.judge_run is None:
        notes.append("no --judge-run: how far likeness to the judge explains its bias is left out")
    about: dict[str, Any] = {"n_runs": len(inputs.runs), "n_queries": len(inputs.query_ids)}
    about |= {"judgments": [side.name for side in inputs.sides], "cutoff": inputs.cutoff}
    parts = {name: make(inputs) for name, make in SECTIONS.items()}
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
        TrecexamError: no run, or no query, is left to audit; the page cannot be written.
    """
    team_file, own = (None if path is None else Path(path) for path in (teams, judge_run))
    found = audit(read_inputs([*map(Path, qrels)], [*map(Path, runs)], team_file, own, cutoff))
    if page is not None:
        write_page(found, Path(page))
    return found
