"""Exports a campaign as qrels, six-column qrels and a table of judgments, and imports such a table."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

import converters
from converters.errors import ConversionError
from converters.fields import column
from converters.ir_dataset import dataset_qrels
from converters.overrides import ADJUDICATED, with_override
from converters.records import HumanRating, Qrel
from converters.trec_qrels import write_qrels
from trecexam.errors import TrecexamError
from trecexam.extensions.campaign.assessments import CellKey, opinions_of
from trecexam.extensions.campaign.tables import TableRow, judgment_table, read_judgment_table
from trecexam.features.override.overriding import add_rows
from trecexam.files import atomic
from trecexam.files.stamps import Rejected
from trecexam.folder import TrackFolder
from trecexam.grades.graded_track import GradedTrack
from trecexam.grades.rejected import rejected_rows
from trecexam.inputs.inputs import read_overrides_file
from trecexam.inputs.overrides import UNDECIDED, JudgingScale, Overrides, judging_scale
from trecexam.inputs.protected import refuse_folder
from trecexam.inputs.typed_text import MAX_WHO, refuse_controls, typed
from trecexam.scores.labels import labels
from trecexam.scores.ratings import MISSING, QueryRatings

QRELS, SIX_COLUMNS, TABLE = "qrels.txt", "qrels-6.txt", "judgments.tsv"


@dataclass(frozen=True)
class ExportedJudgments:
    """Result of an export.

    Attributes:
        n_judged: passages with a label.
        n_lines: of the table.
        refused: lines of people's files that count nowhere, with reasons.
        undecided: query_id -> pooled passages on which people differ and nobody decided, by the rule
            "adjudicated"; copies of a passage are one. Their ratings are in the table alone.
    """

    paths: tuple[Path, ...]
    n_judged: int
    n_lines: int
    refused: tuple[Rejected, ...] = ()
    undecided: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class ImportedJudgments:
    """Result of an import: new lines, lines that the track had, and rejected lines."""

    n_new: int
    n_known: int
    refused: tuple[Rejected, ...]


def export_judgments(track: GradedTrack, folder: Path | str) -> ExportedJudgments:
    """Writes what people judged into a folder: qrels.txt, qrels-6.txt and judgments.tsv."""
    folder = Path(folder)
    refuse_folder(folder, (track.folder.root,), (QRELS, SIX_COLUMNS, TABLE))
    sources = (track.folder.overrides(), track.folder.judgments())
    for source in filter(Path.exists, sources):
        try:
            read_overrides_file(source)
        except ConversionError as error:
            reason = f"{error.reason}; nothing was exported: correct it, then export again"
            raise TrecexamError(reason, path=source, line=error.line) from None
    label_of = peoples_labels(track)
    people = _labels_by_person(track)
    for key, names in _deciders(track).items():
        people.setdefault(key, {}).update(dict.fromkeys(names, label_of[key]))
    rows = [Qrel(q, doc_id, label) for (q, doc_id), label in label_of.items()]
    plain = io.BytesIO()
    try:
        write_qrels(rows, plain)
        six = "".join(_six_columns(row, people[row[:2]]) for row in sorted(rows))
    except ValueError as error:
        raise TrecexamError(str(error), path=track.folder.root) from None
    lines = [
        TableRow(decision.row, own_scale)
        for own_scale, source in ((False, track.overrides), (True, track.judgments))
        for decision in source.decisions
    ]
    contents = {
        folder / QRELS: plain.getvalue(),
        folder / SIX_COLUMNS: six.encode(),
        folder / TABLE: judgment_table(lines),
    }
    atomic.make_folder(folder)
    atomic.replace_together(contents)
    file_names = {track.folder.shown(path) for path in sources}
    refused = tuple(row for row in rejected_rows(track) if row.file in file_names)
    return ExportedJudgments(tuple(contents), len(rows), len(lines), refused, _undecided(track))


def import_judgments(folder: TrackFolder, path: Path | str) -> ImportedJudgments:
    """Adds the judgments of a table, as `export_judgments` writes it; existing ones are skipped."""
    refused: list[ConversionError] = []
    path = Path(path)
    rows: list[TableRow] = []
    for number, row in read_judgment_table(path, refused.append):
        try:
            _check(row.rating)
            rows.append(row)
        except (ValueError, TrecexamError) as error:
            refused.append(ConversionError(path, number, str(error)))
    scale = _scale_of(folder)
    if scale is not None:
        rows = [
            TableRow(row.rating._replace(scale=str(scale)), True)
            if row.own_scale is None and not row.rating.item_id
            else row
            for row in rows
        ]
    n_new = 0
    for own_scale, target in ((False, folder.overrides()), (True, folder.judgments())):
        lines = [row.rating for row in rows if own_scale == bool(row.own_scale)]
        n_new += add_rows(folder, target, lines) if lines else 0
    reasons = tuple(Rejected(str(path), error.line, error.reason, error.lost) for error in refused)
    return ImportedJudgments(n_new, len(rows) - n_new, reasons)


def _scale_of(folder: TrackFolder) -> JudgingScale | None:
    """Return the track's scale of judgments, by its files as they are now."""
    path, dataset = folder.qrels(), folder.config.track.dataset
    try:
        official = tuple(
            converters.read(path, "qrels") if path else dataset_qrels(dataset) if dataset else ()
        )
    except ConversionError:
        # Such a file counts nowhere: the update names what is wrong with it.
        official = ()
    return judging_scale(folder.config, official)


def _check(row: HumanRating) -> None:
    """Raises a ValueError or TrecexamError if a line is not a possible judgment on this track."""
    for what, text in (("an id", row.query_id + row.doc_id + row.item_id), ("a reason", row.why)):
        refuse_controls(what, text)
    refuse_controls("a note", row.note)
    typed("an assessor's name", row.who, MAX_WHO)
    with_override(b"", row)


def peoples_labels(track: GradedTrack) -> dict[tuple[str, str], int]:
    """(query_id, doc_id) -> the label from people's ratings; see `export_judgments`."""
    if _is_on_scale(track):
        return {
            (query_id, doc_id): rating
            for query_id, of_query in track.judgments.queries.items()
            for doc_id, rating in of_query.passages.items()
        }
    return {
        (query_id, doc_id): label
        for query_id, of_query in track.overrides.queries.items()
        for doc_id, label in _labels(
            track, query_id, of_query.cells, of_query.passages if track.judging_scale is None else {}
        ).items()
    }


def _is_on_scale(track: GradedTrack) -> bool:
    """Whether labels are people's judgments of whole passages, not made of their ratings of items."""
    return track.config.judging.scale is not None or bool(track.judgments.decisions)


def _source(track: GradedTrack) -> Overrides:
    """The ratings from which labels are computed."""
    return track.judgments if _is_on_scale(track) else track.overrides


def _deciders(track: GradedTrack) -> dict[tuple[str, str], list[str]]:
    """(query_id, doc_id) -> who adjudicated the ratings of a passage."""
    deciders: dict[tuple[str, str], list[str]] = {}
    for (query_id, doc_id, _), row in _source(track).ratings.items():
        if row.kind == ADJUDICATED:
            deciders.setdefault((query_id, doc_id), []).append(row.who)
    return deciders


def _undecided(track: GradedTrack) -> dict[str, int]:
    """See `ExportedJudgments.undecided`."""
    waiting: dict[str, set[str]] = {}
    for decision in _source(track).decisions:
        row = decision.row
        sheet = track.sheets.get(row.query_id)
        items = {"", *(item.item_id for item in track.bank.items.get(row.query_id, ()))}
        if decision.state == UNDECIDED and sheet and row.doc_id in sheet.row_of and row.item_id in items:
            text = sheet.text_of(row.doc_id)
            waiting.setdefault(row.query_id, set()).add(row.doc_id if text is None else f"\0{text}")
    return {query_id: len(passages) for query_id, passages in sorted(waiting.items())}


def _labels(
    track: GradedTrack, query_id: str, cells: Mapping[tuple[str, str], int], passages: Mapping[str, int]
) -> dict[str, int]:
    """doc_id -> label, from these ratings only."""
    scores, items = track.config.scores, track.bank.items.get(query_id, ())
    column_of = {item.item_id: column for column, item in enumerate(items)}
    doc_ids = tuple(dict.fromkeys((*(doc_id for doc_id, _ in cells), *passages)))
    ratings = np.full((len(doc_ids), len(items)), MISSING, np.int8)
    row_of = {doc_id: row for row, doc_id in enumerate(doc_ids)}
    for (doc_id, item_id), rating in cells.items():
        if item_id in column_of:
            ratings[row_of[doc_id], column_of[item_id]] = rating
    query = QueryRatings(query_id, doc_ids, len(items), ratings, human=passages)
    return labels(query, scores.label, scores.min_rating, scores.min_answers)


def _labels_by_person(track: GradedTrack) -> dict[tuple[str, str], dict[str, int]]:
    """(query_id, doc_id) -> assessor -> the label from her ratings only; also for copies of the passage."""
    alike: dict[tuple[str, str], list[str]] = {}
    for query_id, sheet in track.sheets.items():
        by_text: dict[str, list[str]] = {}
        for doc_id, text in zip(sheet.doc_ids, sheet.texts, strict=True):
            by_text.setdefault(doc_id if text is None else f"\0{text}", []).append(doc_id)
        alike.update({(query_id, doc_id): same for same in by_text.values() for doc_id in same})
    people: dict[tuple[str, str], dict[str, int]] = {}
    for name, opinions in opinions_of(track).items():
        for query_id, doc_id, label in _labels_of(track, opinions):
            for same in alike.get((query_id, doc_id), ()):
                people.setdefault((query_id, same), {})[name] = label
    return people


def _labels_of(track: GradedTrack, opinions: Mapping[CellKey, HumanRating]) -> Iterable[tuple[str, str, int]]:
    cells: dict[str, dict[tuple[str, str], int]] = {}
    passages: dict[str, dict[str, int]] = {}
    for key, row in opinions.items():
        if row.rating is not None and key.item_id:
            cells.setdefault(key.query_id, {})[key.doc_id, key.item_id] = row.rating
        elif row.rating is not None:
            passages.setdefault(key.query_id, {})[key.doc_id] = row.rating
    for query_id in dict.fromkeys((*cells, *passages)):
        whole = passages.get(query_id, {})
        of_items = {} if _is_on_scale(track) else _labels(track, query_id, cells.get(query_id, {}), whole)
        for doc_id, label in (of_items or whole).items():
            yield query_id, doc_id, label


def _six_columns(row: Qrel, people: Mapping[str, int]) -> str:
    """A line of qrels-6.txt."""
    names = "+".join("_".join(name.split()) for name in sorted(people))
    share = sum(label == row.relevance for label in people.values()) / len(people)
    ids = f"{column(row.query_id, 'query id')} Q0 {column(row.doc_id, 'document id')}"
    return f"{ids} {row.relevance} {share:.4g} {names}\n"
