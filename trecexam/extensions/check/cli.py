"""`trecexam check`."""

from __future__ import annotations

import io
import textwrap
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from converters import lines
from trecexam.cli.reading import reading
from trecexam.errors import TrecexamError
from trecexam.files import atomic as files
from trecexam.results.result import Tables
from trecexam.results.table import Layout, Table, Value

if TYPE_CHECKING:
    from trecexam.extensions.check.trec_eval_rules import Finding

HEADER = ("line", "severity", "trec_eval", "reason")
#: Kinds of findings on scores that trec_eval reads otherwise than they are written.
_MISREAD = ("decimal comma", "score not a number")
#: Characters of a reason's line on a terminal.
_WIDTH = 50


@click.command(epilog="Example: trecexam check my.run --trec-eval 9 --fix mended.run")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE")
@click.option(
    "--as",
    "kind",
    type=click.Choice(["run", "qrels"]),
    help="Read FILE as a run or as qrels [default: detected].",
)
@click.option(
    "--trec-eval",
    "version",
    type=click.Choice(["9", "10"]),
    help="Check for this version of trec_eval only [default: both].",
)
@click.option(
    "--fix",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="OUT",
    help="Write a mended file that both versions accept and that scores the same. An existing OUT must "
    "have this content.",
)
@click.option(
    "--track",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="TRACK",
    help="Report topics and docnos that this track lacks, and judged topics that a run lacks.",
)
@reading
def check(file: Path, kind: str | None, version: str | None, fix: Path | None, track: Path | None) -> Tables:
    """Check whether trec_eval accepts FILE, a run or qrels, and reads it as intended.

    fatal: trec_eval stops; silent: it reads something else than the file says; warning: probably a mistake.
    One line for each kind of finding, with the first place and the count. Exit status: 0 if trec_eval accepts
    FILE and reads all scores as written, else 1 (with --fix, too).
    """
    # These import numpy, which --help must not load.
    from trecexam.extensions.check import preflight
    from trecexam.extensions.check.mending import to_points
    from trecexam.extensions.check.trec_eval_rules import VERSIONS, takes

    versions = VERSIONS if version is None else (int(version),)
    kind = kind or preflight.kind_of(file)
    if fix is not None:
        _refuse(file, fix)
        if other := preflight.not_in_columns(file):
            raise TrecexamError(other, path=file)
    known_ids: dict[str, Any] = {}
    if track is not None:
        # Imports pydantic, which --help and checks of single files must not load.
        from trecexam.extensions.check.track_ids import track_ids
        from trecexam.folder import TrackFolder

        known_ids = track_ids(TrackFolder.open(track))
    if kind == "run":
        findings = preflight.check_run(file, **known_ids)
    else:
        known_ids.pop("judged", None)
        findings = preflight.check_qrels(file, **known_ids)
    findings = tuple(finding for finding in findings if set(finding.versions) & set(versions))
    accepting = {number: takes(findings, number) for number in versions}
    notes = [
        f"{file}: trec_eval {number} {'accepts' if good else 'rejects'} this {kind} file"
        for number, good in accepting.items()
    ]
    misread = {kind: sum(each.count for each in findings if each.kind == kind) for kind in _MISREAD}
    if any(misread.values()):
        accepted = "accepted, but " if any(accepting.values()) else ""
        remedy = f"; {to_points(file)}" if misread["decimal comma"] else ""
        notes.append(
            f"{file}: {accepted}{preflight.are(sum(misread.values()), 'score')} read wrongly{remedy}"
        )
    if fix is not None:
        findings += _fix(file, kind, versions[-1], fix)
        notes.append(f"{fix}: written; both versions accept it")
    rows = tuple(
        (each.line, each.severity, ", ".join(map(str, each.versions)), each.reason) for each in findings
    )
    return _Findings(
        {"findings": Table(HEADER, rows, layout=Layout(HEADER[:3]))},
        tuple(notes),
        about={
            "file": str(file),
            "kind": kind,
            "takes": {str(number): good for number, good in accepting.items()},
        },
        rejected=tuple(number for number, good in accepting.items() if not good or any(misread.values())),
    )


class _Findings(Tables):
    """Findings whose reasons are broken into lines on a terminal."""

    def _for_people(self, *, wide: bool = False) -> tuple[Table, ...]:
        """The findings, their reasons over several lines and never cut; `wide` in one line each."""
        if wide:
            return (self.table,)
        rows: list[tuple[Value, ...]] = []
        for *keys, reason in self.table.rows:
            first, *rest = textwrap.wrap(str(reason), _WIDTH)
            rows += [(*keys, first), *((None, "", "", text) for text in rest)]
        return (replace(self.table, rows=tuple(rows)),)


def _refuse(file: Path, output: Path) -> None:
    """Raise a TrecexamError if the mended file must not be written."""
    if output.suffix == ".gz":
        raise TrecexamError("trec_eval reads no gzip: give a name without .gz", path=output)
    if output.exists() and file.exists() and output.samefile(file):
        raise TrecexamError(
            "is the checked file itself, which is never overwritten: give another", path=output
        )


def _fix(file: Path, kind: str, version: int, output: Path) -> tuple[Finding, ...]:
    from trecexam.extensions.check.mending import fix_qrels, fix_run

    buffer = io.BytesIO()
    changes = fix_qrels(file, buffer) if kind == "qrels" else fix_run(file, buffer, version)
    with lines.reading(output, None):
        other = output.exists() and output.read_bytes() != buffer.getvalue()
    if other:
        raise TrecexamError(
            "is there already, with other content: remove it or give another name", path=output
        )
    files.replace(output, buffer.getvalue())
    return changes
