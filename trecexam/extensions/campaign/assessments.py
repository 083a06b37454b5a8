"""Reading and writing of an assessor's judgments without loading the track."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from converters.errors import ConversionError
from converters.overrides import ADJUDICATED, CANNOT, read_overrides
from converters.records import HumanRating
from trecexam.bank.model import QUERY
from trecexam.features.override.overriding import QueryToRate, take
from trecexam.folder import TrackFolder
from trecexam.grades.graded_track import GradedTrack
from trecexam.inputs.overrides import REFUSED, JudgingScale, takes_back

#: Default reasons in the file.
JUDGED, WITHDRAWN = "judged", "withdrawn"


class CellKey(NamedTuple):
    """A cell to judge: an item and a passage; item_id "" is the whole passage."""

    query_id: str
    doc_id: str
    item_id: str


def items_to_judge(track: GradedTrack, query_id: str) -> tuple[str, ...]:
    """Return the item_ids to judge on each passage of a query; "" is the whole passage.

    With a scale of judgments, people judge the whole passage or, with `whole_passage = false`, its items.
    Without a scale, people judge its items and, with `whole_passage = true`, the whole passage last. Without
    items, people judge the whole passage.
    """
    items, whole = track.bank.items.get(query_id, ()), track.config.judging.whole_passage
    of_items = tuple(item.item_id for item in items if item.kind != QUERY)
    if not of_items:
        return ("",)
    if track.judging_scale is not None:
        return of_items if whole is False else ("",)
    return (*of_items, "") if whole else of_items


def is_done(
    opinions: Mapping[CellKey, HumanRating], query_id: str, doc_id: str, item_ids: Sequence[str]
) -> bool:
    """Return True if a person's opinions cover all items of a passage, or say "cannot judge"."""
    whole = opinions.get(CellKey(query_id, doc_id, ""))
    return (whole is not None and whole.cannot) or all(
        CellKey(query_id, doc_id, item_id) in opinions for item_id in item_ids
    )


def own_assessments(folder: TrackFolder, who: str, scale: JudgingScale | None) -> dict[CellKey, HumanRating]:
    """Return a person's current judgment of each cell; read the files again.

    Withdrawn judgments and adjudications are left out. Judgments of an earlier text of a passage are
    included, since only the two files are read.
    """
    return _standing(folder, scale, who).get(who, {})


def ratings_by_assessor(folder: TrackFolder, cell: CellKey, scale: JudgingScale | None) -> dict[str, int]:
    """Return assessor -> rating of a cell, without adjudications; read the files again."""
    opinions = _standing(folder, scale, cell.query_id, cell.doc_id)
    rows = ((name, of_person.get(cell)) for name, of_person in opinions.items())
    return {name: row.rating for name, row in rows if row is not None and row.rating is not None}


def _standing(
    folder: TrackFolder, scale: JudgingScale | None, *naming: str
) -> dict[str, dict[CellKey, HumanRating]]:
    """Return `standing_opinions` of the lines of both files that have these texts."""
    rated = (row for row in _lines(folder.overrides(), naming) if _counts_beside(row, scale))
    judged = () if scale is None else _lines(folder.judgments(), naming)
    return standing_opinions((*rated, *(row for row in judged if row.scale in ("", str(scale)))))


def _counts_beside(row: HumanRating, scale: JudgingScale | None) -> bool:
    """Return True if a line of overrides.tsv counts beside judgments of whole passages on `scale`."""
    return scale is None or bool(row.item_id) or row.rating is None


def _lines(path: Path, naming: Sequence[str]) -> list[HumanRating]:
    try:
        return [row for _, row in read_overrides(path, lambda refused: None, naming=naming)]
    except ConversionError:
        # No file yet; or an unreadable file, which updates report.
        return []


def standing_opinions(rows: Iterable[HumanRating]) -> dict[str, dict[CellKey, HumanRating]]:
    """Return assessor -> her latest judgment of each cell, without withdrawn ones and adjudications."""
    opinions: dict[str, dict[CellKey, HumanRating]] = {}
    for row in rows:
        if row.kind == ADJUDICATED:
            continue
        of_person = opinions.setdefault(row.who, {})
        of_person.pop(CellKey(*row[:3]), None)
        if not takes_back(row):
            of_person[CellKey(*row[:3])] = row
    return opinions


def opinions_of(track: GradedTrack) -> dict[str, dict[CellKey, HumanRating]]:
    """Return `standing_opinions` of all accepted lines of the track.

    With a scale of judgments, ratings of whole passages on the grader's scale are left out.
    """
    return standing_opinions(
        decision.row
        for people in (track.overrides, track.judgments)
        for decision in people.decisions
        if decision.state != REFUSED
        and (people is track.judgments or _counts_beside(decision.row, track.judging_scale))
    )


def counting(track: GradedTrack) -> dict[tuple[str, str, str], HumanRating]:
    """Return (query_id, doc_id, item_id) -> the rating that counts, on one scale as in `opinions_of`."""
    rated = {k: row for k, row in track.overrides.ratings.items() if _counts_beside(row, track.judging_scale)}
    return {**rated, **track.judgments.ratings}


def record_assessment(
    folder: TrackFolder,
    query: QueryToRate,
    doc_id: str,
    item_id: str,
    rating: int | Literal["cannot"] | None,
    *,
    who: str,
    why: str = "",
    note: str = "",
    seconds: float | None = None,
    seen: str | None = None,
) -> HumanRating:
    """Store a person's judgment of a cell or whole passage (item_id ""); return the stored line.

    Args:
        rating: "cannot" if the cell cannot be judged; None withdraws the last judgment and restores the one
            before, if any.
        seconds, note, seen: as for `take` with `own_only`.

    Raises:
        RatingConflictError: the person changed the judgment meanwhile, in another window; nothing was
            written.
        TrecexamError: as `take`; or there is no judgment to withdraw.
    """
    why = why if why.strip() else WITHDRAWN if rating is None else JUDGED
    value = rating if isinstance(rating, int) else None
    return take(
        folder, query, doc_id, item_id, value, who, why, seen,
        cannot=rating == CANNOT, seconds=seconds, note=note, own_only=True,
    ).row  # fmt: skip
