"""What learning adds to out/: the report's section, the manifest's entry, and learning with each update."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from trecexam.errors import TrecexamError
from trecexam.extensions.learn.learn import BOARD, IDENTITY, PARTS, learn
from trecexam.files.atomic import sha256
from trecexam.files.kept import read_object, read_regular
from trecexam.line.assessment import Assessment
from trecexam.line.output_files import AfterUpdate, Feature
from trecexam.tables.excerpt import excerpt
from trecexam.tables.section import FeatureReport, ReportPart
from trecexam.tables.table import Table, Value
from trecexam.track import TrackFolder

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
    return FeatureReport(
        (
            ReportPart(
                "learned", html, values, "Leaderboard by learned labels", "Learned", after="leaderboard"
            ),
        )
    )


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


def in_manifest(folder: TrackFolder) -> dict[str, Any]:
    """What learned.json says, of the judgments as they were then."""
    learned = read_object(folder.out / IDENTITY)
    return {"learned": learned} if learned else {}


def learn_after(track: Assessment) -> AfterUpdate:
    """Learns, where the settings say so and there are judgments."""
    if not track.config.learn.update or track.official is None:
        return AfterUpdate()
    try:
        labels = learn(track)
        written = labels.write(track.folder.out)
    except TrecexamError as error:
        # Grades and leaderboard do not hang on it.
        return AfterUpdate((), (f"nothing learned, out/learned.tsv is as it was: {error}",))
    return AfterUpdate(written, tuple(f"learn: {line}" for line in labels.notes))


LEARNING = Feature(report=learned_report, manifest=in_manifest, updated=learn_after)
