"""The report's section on the leaderboard by learned labels, where that is of the track as it is."""

from __future__ import annotations

from pathlib import Path

from trecexam.extensions.learn.learn import BOARD, IDENTITY, PARTS
from trecexam.files.atomic import sha256
from trecexam.files.kept import read_object, read_regular
from trecexam.line.assessment import Assessment
from trecexam.line.output_files import Feature
from trecexam.tables.excerpt import excerpt
from trecexam.tables.section import FeatureReport, ReportPart
from trecexam.tables.table import Table, Value

#: Rows that the page shows; the file has the rest.
_ROWS = 50


def learned_report(track: Assessment) -> FeatureReport:
    """The section "learned"; none where nothing was learned, or of other runs, grades or judgments."""
    board = _up_to_date(track)
    if board is None:
        return FeatureReport(())
    columns = {name: _heading(name) for name in board.header}
    values = {"board": excerpt(board, _ROWS, BOARD, columns)}
    html = Path(__file__).with_name("section.html")
    return FeatureReport((ReportPart("learned", html, values, "Leaderboard by learned labels", "Learned"),))


def _up_to_date(track: Assessment) -> Table | None:
    """What `learn` wrote of the runs; None where it is not there, or of another state of the track."""
    learned = read_object(track.folder.out / IDENTITY)
    try:
        content = read_regular(track.folder.out / BOARD)
        known = learned["outputs"][BOARD], learned["track"]
    except (OSError, KeyError, TypeError):
        return None
    if known != (sha256(content), {part: track.part_digests[part] for part in PARTS}):
        return None
    header, *lines = content.decode().splitlines()
    rows: list[tuple[Value, ...]] = []
    for line in lines:
        run, *figures = line.split("\t")
        rows.append((run, *(float(figure) if figure else None for figure in figures)))
    return Table(tuple(header.split("\t")), tuple(rows))


def _heading(column: str) -> str:
    return column.rpartition(".")[2] if column.endswith((".low", ".high")) else column


LEARNING = Feature(report=learned_report)
