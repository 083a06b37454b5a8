"""`trecexam check`."""

from __future__ import annotations

import textwrap
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from converters import lines
from trecexam.cli.options import refuse_inputs
from trecexam.cli.reading import reading
from trecexam.errors import TrecexamError
from trecexam.files import atomic
from trecexam.results.result import Tables
from trecexam.results.table import Layout, Table, Value
from trecexam.results.text import LOST, Note, plural

if TYPE_CHECKING:
    from trecexam.extensions.check.preflight import Kind

HEADER = ("line", "severity", "trec_eval", "reason")
#: Maximum characters of a reason's line on a terminal.
_WIDTH = 50


@click.command(epilog="Example: trecexam check my.run --trec-eval 9 --fix mended.run")
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False), metavar="FILE")
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
def check(file: Path, kind: Kind | None, version: str | None, fix: Path | None, track: Path | None) -> Tables:
    """Check whether trec_eval accepts FILE, a run or qrels, and reads it as intended.

    fatal: trec_eval stops; silent: it reads something else than the file says; warning: probably a mistake.
    One line for each kind of finding, with the first place and the count. Exit status: 0 if trec_eval accepts
    FILE and reads all scores as written, else 1 (with --fix, too).
    """
    # These import numpy, which --help must not load.
    from trecexam.extensions.check.mending import changes, mended, to_points
    from trecexam.extensions.check.preflight import check_file, kind_of, track_ids
    from trecexam.extensions.check.trec_eval_rules import VERSIONS, takes

    versions = VERSIONS if version is None else (int(version),)
    kind = kind or kind_of(file)
    checked = check_file(file, kind, *(() if track is None else track_ids(track)))
    findings = [row for row in checked.findings if set(row.versions) & set(versions)]
    accepting = {str(number): takes(findings, number) for number in versions}
    notes = [
        f"{file}: trec_eval {number} {'accepts' if good else 'rejects'} this {kind} file"
        for number, good in accepting.items()
    ]
    misread = sum(row.count for row in findings if row.kind in ("decimal comma", "score not a number"))
    if misread:
        accepted = "accepted, but " if any(accepting.values()) else ""
        remedy = f"; {to_points(file)}" if any(row.kind == "decimal comma" for row in findings) else ""
        notes.append(f"{file}: {accepted}trec_eval reads {plural(misread, 'score')} wrongly{remedy}")
    if fix is not None:
        content = mended(checked, versions[-1])
        _write_new(fix, content, file)
        count = plural(content.count(b"\n"), "line")
        notes.insert(0, Note(f"{fix}: written, {count}; both versions accept it; {changes(checked)}", LOST))
    rows = [(row.line, row.severity, ", ".join(map(str, row.versions)), row.text) for row in findings]
    return _Findings(
        {"findings": Table(HEADER, tuple(rows), layout=Layout(HEADER[:3]))},
        tuple(notes),
        about={"file": str(file), "kind": kind, "takes": accepting},
        rejected=tuple(number for number, good in accepting.items() if not good or misread),
    )


class _Findings(Tables):
    """Findings whose reasons are broken into lines on a terminal."""

    def _for_people(self, *, wide: bool = False) -> tuple[Table, ...]:
        """Return the findings with reasons over several lines, or with `wide` in one line."""
        if wide:
            return (self.table,)
        rows: list[tuple[Value, ...]] = []
        for *keys, reason in self.table.rows:
            first, *rest = textwrap.wrap(str(reason), _WIDTH)
            rows += [(*keys, first), *((None, "", "", text) for text in rest)]
        return (replace(self.table, rows=tuple(rows)),)


def _write_new(path: Path, content: bytes, checked_file: Path) -> None:
    """Write a file; refuse to replace the checked file, or a file with other content."""
    refuse_inputs(path, [checked_file])
    if path.suffix == ".gz":
        raise TrecexamError("trec_eval reads no gzip: give a name without .gz", path=path)
    with lines.reading(path, None):
        differs = path.exists() and path.read_bytes() != content
    if differs:
        raise TrecexamError("is there already, with other content: remove it or give another name", path=path)
    atomic.replace(path, content)
