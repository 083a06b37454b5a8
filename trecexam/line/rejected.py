"""What of a loaded track was not taken, or has no grade though the grader was asked: rows for people."""

from __future__ import annotations

from collections.abc import Iterator

from converters.fields import taken_for_comments
from trecexam.config import CONFIG_NAME
from trecexam.files.stamps import Rejected
from trecexam.line.assessment import Assessment
from trecexam.line.cell_order import missing_rows
from trecexam.scores.evaluate import OfficialJudgments


def rejected_rows(track: Assessment, ungraded: tuple[Rejected, ...] = ()) -> tuple[Rejected, ...]:
    """Inputs that were not taken, and items that cannot be graded.

    Args:
        ungraded: what the grader left out, see `left_out`.
    """
    files = track.folder.bank(optional=True)
    file = track.folder.shown(files[0]) if len(files) == 1 else "the bank"
    items = (
        Rejected(file, None, f"item '{item.item_id}' {reason} ({cells:,} passages not graded on it)", "cell")
        for item, reason, cells in track.grades.failed_items(track.sheets)
    )
    reason = not_computable(track)
    measures = (
        (Rejected(CONFIG_NAME, None, f"[scores] official_measures: {reason}", "line"),) if reason else ()
    )
    comments = taken_for_comments(track.bank.query_ids)
    ids = (Rejected(file, None, comments, "line"),) if comments else ()
    return (*track.not_taken, *ids, *measures, *ungraded, *items)


def all_rejected(track: Assessment) -> tuple[Rejected, ...]:
    """What of the track's inputs was not taken, and what has no grade, each with file, line and reason."""
    return rejected_rows(track, tuple(left_out(track)))


def not_computable(track: Assessment) -> str | None:
    """Why the track's own official measures cannot be computed on its judgments; None where they can."""
    return track.derived("official measures", ("official", "settings"), lambda: _not_computable(track))


def _not_computable(track: Assessment) -> str | None:
    try:
        OfficialJudgments(track.official or ()).evaluator(track.config.official_measures(), ())
    except ValueError as error:
        return None if track.official is None else str(error)
    return None


def left_out(track: Assessment) -> Iterator[Rejected]:
    """A row where the grader gave no grade to cells that it was asked about."""
    counts, folder = track.counts, track.folder
    if counts.missing:
        row = next(missing_rows(track))
        cell = row.cell(track, int(row.columns[0]))
        yield Rejected(
            folder.shown(folder.recorded() or folder.config_path),
            None,
            f"the grader left {counts.missing:,} of {counts.cells:,} cells without a grade, which count as "
            f"not relevant: query '{cell.query_id}', passage '{cell.doc_id}', item '{cell.item.item_id}' "
            "among them",
            "cell",
        )
