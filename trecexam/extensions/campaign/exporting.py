"""Export a campaign as qrels, six-column qrels and a table of judgments, and import such a table."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from converters.errors import ConversionError
from converters.fields import column
from converters.overrides import ADJUDICATED, with_override
from converters.records import HumanRating, Qrel
from converters.trec_qrels import write_qrels
from trecexam.errors import TrecexamError, quoted, rejected_notes
from trecexam.extensions.campaign.tables import GRADER, TRACK, judgment_table, read_judgment_table
from trecexam.features.override.overriding import add_rows
from trecexam.files import atomic
from trecexam.files.stamps import Rejected
from trecexam.grades.diagnostics import rejected_rows
from trecexam.grades.graded_track import GradedTrack
from trecexam.inputs.inputs import read_overrides_file
from trecexam.inputs.overrides import (
    NOT_CITED,
    NOT_POOLED,
    UNDECIDED,
    Decision,
    Overrides,
    QueryOverrides,
    resolve,
)
from trecexam.inputs.protected import refuse_folder
from trecexam.inputs.typed_text import MAX_WHO, refuse_controls, typed
from trecexam.results.result import Tables
from trecexam.results.table import Table
from trecexam.results.text import plural, shorten_list
from trecexam.scores.labels import labels
from trecexam.scores.ratings import MISSING, QueryRatings

QRELS, SIX_COLUMNS, TABLE = "qrels.txt", "qrels-6.txt", "judgments.tsv"


def export_judgments(track: GradedTrack, folder: Path | str) -> Tables:
    """Write people's judgments into a folder: qrels.txt, qrels-6.txt and judgments.tsv."""
    folder = Path(folder)
    refuse_folder(folder, (track.folder.root,), (QRELS, SIX_COLUMNS, TABLE))
    sources = (track.folder.overrides(), track.folder.judgments())
    for source in filter(Path.exists, sources):
        try:
            read_overrides_file(source)
        except ConversionError as error:
            reason = f"{error.reason}; nothing was exported: correct it, then export again"
            raise TrecexamError(reason, path=source, line=error.line) from None
    source_of_labels = track.judgments if _is_on_scale(track) else track.overrides
    label_of = {
        (query_id, doc_id): label
        for query_id, of_query in source_of_labels.queries.items()
        for doc_id, label in _labels(track, query_id, of_query).items()
    }
    people = _labels_by_person(track, source_of_labels)
    for (query_id, doc_id, _), row in source_of_labels.ratings.items():
        if row.kind == ADJUDICATED:
            people.setdefault((query_id, doc_id), {})[row.who] = label_of[query_id, doc_id]
    rows = [Qrel(q, doc_id, label) for (q, doc_id), label in label_of.items()]
    plain = io.BytesIO()
    try:
        write_qrels(rows, plain)
        six = "".join(_six_columns(row, people[row[:2]]) for row in sorted(rows))
    except ValueError as error:
        raise TrecexamError(str(error), path=track.folder.root) from None
    lines = [
        *(row._replace(scale=GRADER) for _, row, _ in track.overrides.decisions),
        *(row._replace(scale=row.scale or TRACK) for _, row, _ in track.judgments.decisions),
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
    undecided = _undecided(track, source_of_labels)
    written = ", ".join(map(str, contents))
    notes = [
        *(f"not exported: {row}" for row in refused),
        f"{plural(len(rows), 'judged passage')}, {plural(len(lines), 'judgment')}: {written}",
    ]
    if undecided:
        topics = shorten_list([f"{topic}: {n}" for topic, n in undecided.items()], 10, "")
        passages = plural(undecided.total(), "passage")
        notes.append(
            f"waiting for a decision between assessors: {passages} (topic {topics}). "
            f"`trecexam judge agreement {quoted(track.folder.root)}` lists them; decide on the page /campaign"
        )
    counts = Table(("passages", "judgments", "undecided"), ((len(rows), len(lines), undecided.total()),))
    return Tables({"exported": counts}, tuple(notes), rejected=refused)


def import_judgments(track: GradedTrack, path: Path | str) -> Tables:
    """Add the judgments of a table in the form of `export_judgments`; skip existing judgments."""
    errors: list[ConversionError] = []
    targets: dict[bool, list[tuple[int, HumanRating]]] = {False: [], True: []}
    scale = track.judging_scale
    for line, row in read_judgment_table(path, errors.append):
        own_scale = row.scale not in ("", GRADER)
        if row.scale in (TRACK, GRADER):
            row = row._replace(scale="")
        elif not own_scale and scale is not None and not row.item_id:
            row, own_scale = row._replace(scale=str(scale)), True
        try:
            _check(row)
            if own_scale and scale is None:
                raise TrecexamError(
                    f"{row.who}'s rating of '{row.doc_id}' is not on the grader's scale, and the track "
                    "has no other: set `scale` in [judging]"
                )
            targets[own_scale].append((line, row))
        except (ValueError, TrecexamError) as error:
            errors.append(ConversionError(path, line, str(error)))
    present = {decision.row for people in (track.overrides, track.judgments) for decision in people.decisions}
    refused = [Rejected(str(path), error.line, error.reason, error.lost) for error in errors]
    outside: list[Decision] = []
    n_new = n_known = 0
    for own_scale, rows in targets.items():
        resolved = _resolved(track, str(path), rows, own_scale=own_scale)
        wrong = {each.line: each for each in resolved.rejected}
        refused += [wrong[line] for line, row in rows if line in wrong and row not in present]
        outside += [
            decision
            for decision in resolved.decisions
            if decision.state in (NOT_POOLED, NOT_CITED) and decision.row not in present
        ]
        accepted = [row for line, row in rows if line not in wrong or row in present]
        target = track.folder.judgments() if own_scale else track.folder.overrides()
        n_added = add_rows(track.folder, target, accepted) if accepted else 0
        n_new, n_known = n_new + n_added, n_known + len(accepted) - n_added
    refused.sort(key=lambda row: row.line or 0)
    note = f"{plural(n_new, 'new judgment')}, {n_known:,} already in the track"
    notes = [
        *rejected_notes(refused),
        note + (f", {plural(len(refused), 'line')} rejected" if refused else ""),
    ]
    if outside:
        line, row, _ = min(outside)
        first = f"the first is line {line}: '{row.doc_id}' of query '{row.query_id}'"
        notes.append(f"not counted: {plural(len(outside), 'new judgment')} outside the pool; {first}")
    counts = Table(("new", "known", "rejected"), ((n_new, n_known, len(refused)),))
    return Tables({"imported": counts}, tuple(notes), rejected=tuple(refused))


def _resolved(
    track: GradedTrack, file: str, rows: Sequence[tuple[int, HumanRating]], *, own_scale: bool
) -> Overrides:
    """Return the ratings that would count if these lines were the track's only ones."""
    pool = {query_id: pooled.doc_ids for query_id, pooled in track.pool.items()}
    best, scale = track.grader.scale.max_rating, track.judging_scale if own_scale else None
    cited = None if own_scale else track.asked.cited_by({row.query_id for _, row in rows})
    return resolve(rows, file, track.bank, pool, track.texts, best, own_scale=scale, cited=cited)


def _check(row: HumanRating) -> None:
    """Raise a ValueError or TrecexamError if a line is not a possible judgment on this track."""
    ids = row.query_id + row.doc_id + row.item_id
    for what, text in (("an id", ids), ("a reason", row.why), ("a note", row.note)):
        refuse_controls(what, text)
    typed("an assessor's name", row.who, MAX_WHO)
    with_override(b"", row)


def _is_on_scale(track: GradedTrack) -> bool:
    """Return True if labels are people's judgments of whole passages, not made of their ratings of items."""
    return track.config.judging.scale is not None or bool(track.judgments.decisions)


def _undecided(track: GradedTrack, people: Overrides) -> Counter[str]:
    """Return query_id -> number of pooled passages with undecided differences between people."""
    waiting: set[tuple[str, str]] = set()
    for decision in people.decisions:
        row = decision.row
        sheet = track.sheets.get(row.query_id)
        items = {"", *(item.item_id for item in track.bank.items.get(row.query_id, ()))}
        if decision.state == UNDECIDED and sheet and row.doc_id in sheet.row_of and row.item_id in items:
            waiting.add(row[:2])
    return Counter(query_id for query_id, _ in sorted(waiting))


def _labels(track: GradedTrack, query_id: str, rated: QueryOverrides) -> dict[str, int]:
    """Return doc_id -> label from these ratings only."""
    if _is_on_scale(track):
        return rated.passages
    # Judgments have another scale than ratings of whole passages here.
    passages = rated.passages if track.judging_scale is None else {}
    scores, items = track.config.scores, track.bank.items.get(query_id, ())
    column_of = {item.item_id: column for column, item in enumerate(items)}
    doc_ids = tuple(dict.fromkeys((*(doc_id for doc_id, _ in rated.cells), *passages)))
    ratings = np.full((len(doc_ids), len(items)), MISSING, np.int8)
    row_of = {doc_id: row for row, doc_id in enumerate(doc_ids)}
    for (doc_id, item_id), rating in rated.cells.items():
        if item_id in column_of:
            ratings[row_of[doc_id], column_of[item_id]] = rating
    query = QueryRatings(query_id, doc_ids, len(items), ratings, human=passages)
    return labels(query, scores.label, scores.min_rating, scores.min_answers)


def _labels_by_person(track: GradedTrack, judged: Overrides) -> dict[tuple[str, str], dict[str, int]]:
    """Return (query_id, doc_id) -> assessor -> the label from her ratings; also for copies of a passage."""
    lines: dict[str, list[tuple[int, HumanRating]]] = {}
    for line, row, _ in judged.decisions:
        if row.kind != ADJUDICATED:
            lines.setdefault(row.who, []).append((line, row))
    people: dict[tuple[str, str], dict[str, int]] = {}
    for name, rows in lines.items():
        of_person = _resolved(track, "", rows, own_scale=judged is track.judgments)
        for query_id, of_query in of_person.queries.items():
            for doc_id, label in _labels(track, query_id, of_query).items():
                people.setdefault((query_id, doc_id), {})[name] = label
    return people


def _six_columns(row: Qrel, people: Mapping[str, int]) -> str:
    """Return a line of qrels-6.txt."""
    names = "+".join("_".join(name.split()) for name in sorted(people))
    share = sum(label == row.relevance for label in people.values()) / len(people)
    ids = f"{column(row.query_id, 'query id')} Q0 {column(row.doc_id, 'document id')}"
    return f"{ids} {row.relevance} {share:.4g} {names}\n"
