"""What of a loaded track was rejected, or has no grade though the grader was asked: rows for people."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType

from converters.fields import taken_for_comments
from trecexam.config import CONFIG_NAME
from trecexam.files.cache import memoized
from trecexam.files.stamps import Rejected
from trecexam.grades.cell_order import missing_rows
from trecexam.grades.diagnostics import without_label
from trecexam.grades.graded_track import GradedTrack
from trecexam.grades.loaded_track import LoadedTrack
from trecexam.inputs.inputs import merge_rejected
from trecexam.scores.measures import measures_on_qrels


def rejected_rows(track: GradedTrack, ungraded: Iterable[Rejected] = ()) -> tuple[Rejected, ...]:
    """Return inputs that were rejected, items that cannot be graded, and `ungraded`, see `left_out`."""
    files = track.folder.bank(optional=True)
    file = track.folder.shown(files[0]) if len(files) == 1 else "the bank"
    lines = [(file, taken_for_comments(track.bank.query_ids))]
    if reason := not_computable(track):
        lines.append((CONFIG_NAME, f"[scores] official_measures: {reason}"))
    return (
        *track.not_taken,
        *(Rejected(where, None, why, "line") for where, why in lines if why),
        *ungraded,
        *(
            Rejected(file, None, f"item '{item.item_id}' {why} ({cells:,} passages not graded on it)", "cell")
            for item, why, cells in track.grades.failed_items(track.sheets)
        ),
    )


def all_rejected(
    track: LoadedTrack, rejected: Mapping[str, Sequence[Rejected]] = MappingProxyType({})
) -> tuple[Rejected, ...]:
    """Return what was rejected of the inputs, and what has no grade, each with file, line and reason.

    Args:
        rejected: what graders did not take, where that is known; else it is looked up.
    """
    if track.is_single:
        return rejected_rows(track.first, left_out(track.first))
    rows = {
        name: rejected[name] if name in rejected else rejected_rows(each, left_out(each))
        for name, each in track.graded_tracks.items()
    }
    return merge_rejected(track.folder, rows)


@memoized
def not_computable(track: GradedTrack) -> str | None:
    """Why the track's own official measures cannot be computed on its judgments; None where they can."""
    try:
        measures_on_qrels(track.config.official_measures(), track.official or ())
    except ValueError as error:
        return None if track.official is None else str(error)
    return None


def left_out(track: GradedTrack) -> Iterator[Rejected]:
    """A row where the grader gave no grade to cells that it was asked about.

    None of qrels: a passage without a label is no fault of theirs, and the notes on all results say so.
    """
    counts, folder = track.counts, track.folder
    if counts.missing and not without_label(track):
        row = next(missing_rows(track))
        cell = row.cell(track, int(row.columns[0]))
        # Where all are, nothing has a score.
        meaning = ", which count as not relevant" if track.counts.is_graded else ""
        yield Rejected(
            folder.shown(folder.recorded() or folder.config_path),
            None,
            f"the grader left {counts.missing:,} of {counts.cells:,} cells without a grade{meaning}: query "
            f"'{cell.query_id}', passage '{cell.doc_id}', item '{cell.item.item_id}' among them",
            "cell",
        )
