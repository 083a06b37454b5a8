"""What the pages show of a loaded track, computed in the process that reads it."""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import compress
from pathlib import Path
from typing import NamedTuple

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from converters.records import HumanRating, Item
from trecexam.errors import TrecexamError
from trecexam.extension import extensions, named
from trecexam.extensions.page.view import QueryView, RunHead, View, ViewSettings
from trecexam.features.agreement.agreement import own_agreement
from trecexam.features.holes.holes import HOLES, holes_of_runs, is_among
from trecexam.features.leaderboard.board import leaderboard, own_leaderboard
from trecexam.features.leaderboard.differences import own_differences
from trecexam.files.cache import memoized
from trecexam.files.stamps import Stamp
from trecexam.graders.base import identity_digest
from trecexam.grades.diagnostics import rejected_rows
from trecexam.grades.evaluation import official_values, values_of_runs, why_no_scores
from trecexam.grades.graded_track import GradedTrack
from trecexam.grades.official import official_judgments, relevance_thresholds, track_judgments
from trecexam.grades.sheets import MISSING
from trecexam.inputs.kinds.support import statements_of
from trecexam.inputs.official import Official, no_overlap
from trecexam.results.page.page import Page, Section
from trecexam.scores.labels import labels
from trecexam.scores.leaderboard import Leaderboard
from trecexam.scores.ratings import QueryRatings
from trecexam.scores.values import MeasureValues

#: Hits of a kind that a search shows, and passages after which no more are counted.
MOST, COUNTED = 25, 1000


class QueryCounts(NamedTuple):
    """What is counted of a query.

    Attributes:
        judged: pooled passages with an official judgment; None where the track has none at all.
        missing: cells that could have a grade and have none; `unread` have an answer without a rating.
        human: cells and passages that a person rated.
    """

    items: int
    passages: int
    judged: int | None
    missing: int
    unread: int
    human: int


class JudgedPassages(NamedTuple):
    """All pooled passages with a label and an official judgment, as columns.

    Attributes:
        query: the query's place among the bank's; `doc` the passage's among the query's.
        runs: how many runs have it in their first ranks.
        kappa: Cohen's, with the ends of its 95% interval, of the grader's own labels; NaN ends where there
            are too few queries, None where undefined.
        comparison: which side is whose, and from where on either counts as relevant.
    """

    query: NDArray[np.int32]
    doc: NDArray[np.int32]
    label: NDArray[np.int32]
    judgment: NDArray[np.int32]
    runs: NDArray[np.int32]
    kappa: tuple[float, float, float] | None
    comparison: tuple[str, ...]


class PassageHit(NamedTuple):
    """A passage whose id or text matches, with the surrounding text."""

    query_id: str
    doc_id: str
    around: str


class Found(NamedTuple):
    """What contains a text: items, the first passages, and how many passages there are, `COUNTED` at most."""

    items: tuple[Item, ...]
    passages: tuple[PassageHit, ...]
    total: int


def query_view(track: GradedTrack, query_id: str) -> QueryView | None:
    """Return a query with its pooled passages; None if the bank lacks it."""
    if query_id not in track.sheets:
        return None
    (q,), (judgments, _) = track.ratings((query_id,)), _official(track)
    sheet, label = track.sheets[query_id], _labels(track, q)
    row_by_doc = {doc_id: row_index for row_index, doc_id in enumerate(q.doc_ids)}
    rankings = {
        # What a grader of support looks at is no ranked passage, but what responses cite.
        name: tuple(
            row_by_doc[doc_id]
            for doc_id in run.ranking(query_id, track.config.track.depth)
            if doc_id in row_by_doc
        )
        for name, run in track.runs.items()
        if query_id in run
    }
    return QueryView(
        query_id,
        track.query_texts.get(query_id, ""),
        track.bank.items[query_id],
        track.bank.retired.get(query_id, ()),
        q.doc_ids,
        tuple(track.texts.get(doc_id) for doc_id in q.doc_ids),
        sheet.texts,
        q.ratings,
        sheet.matrix(),
        tuple(label.get(doc_id) for doc_id in q.doc_ids),
        {} if judgments is None else dict(judgments.judged.get(query_id, {})),
        _human(track, query_id),
        rankings,
        {name: track.runs[name].count(query_id) for name in rankings},
        {} if track.asked.citing is None else dict(_around(track, query_id)),
    )


def query_counts(track: GradedTrack) -> dict[str, QueryCounts]:
    """Return what is counted of each query."""
    judgments, _ = _official(track)
    counts = {}
    for query_id, sheet in track.sheets.items():
        judged = None
        if judgments is not None:
            of_query = judgments.judged.get(query_id, {})
            judged = sum(doc_id in of_query for doc_id in sheet.doc_ids)
        codes, n_human = sheet.flat(), len(_human(track, query_id))
        missing = int(((codes == MISSING) & sheet.gradable).sum())
        unread = int((codes < MISSING).sum())
        n_passages = len(sheet.doc_ids)
        counts[query_id] = QueryCounts(len(sheet.items), n_passages, judged, missing, unread, n_human)
    return counts


def run_holes(track: GradedTrack, run: str) -> dict[str, tuple[int, int | None, int]]:
    """Return query_id -> retrieved, unjudged and ungraded passages in a run's first ranks."""
    if run not in track.runs:
        raise TrecexamError(f"there is no run '{run}' any more")
    (judgments, _), at = _official(track), list(track.runs).index(run)
    holes = {}
    for q in track.ratings():
        pooled = track.pool[q.query_id]
        rated = is_among(pooled.doc_ids, frozenset(compress(q.doc_ids, q.rated.tolist())))
        of_query = {} if judgments is None else judgments.judged.get(q.query_id, {})
        judged = None if judgments is None else is_among(pooled.doc_ids, of_query)
        (found,) = holes_of_runs(pooled.ranks[at : at + 1, : track.config.track.depth], judged, rated)
        retrieved, unjudged, ungraded = found.tolist()
        holes[q.query_id] = retrieved, None if judgments is None else unjudged, ungraded
    return holes


@memoized
def judged_passages(track: GradedTrack) -> JudgedPassages | None:
    """Return the passages with a label and a judgment; None if there are none."""
    judgments, _ = _official(track)
    rows: list[tuple[int, int, int, int, int]] = []
    for number, q in enumerate(track.ratings() if judgments is not None else ()):
        judged = judgments.judged.get(q.query_id, {}) if judgments is not None else {}
        ranks = track.pool[q.query_id].ranks[:, : track.config.track.depth]
        runs = np.bincount(ranks[ranks >= 0], minlength=len(q.doc_ids)).tolist()
        label = _labels(track, q)
        rows += [
            (number, row, label[doc_id], judged[doc_id], runs[row])
            for row, doc_id in enumerate(q.doc_ids)
            if doc_id in judged and doc_id in label
        ]
    if not rows:
        return None
    kappa, comparison = None, tuple[str, ...]()
    try:
        agreed = own_agreement(track)
    except (TrecexamError, ValueError):
        agreed = None
    if agreed is not None:
        of_labels, comparison = agreed.found[0].binary.kappa, tuple(agreed.notes)
        if not math.isnan(of_labels.value):
            kappa = of_labels.value, of_labels.low, of_labels.high
    query, doc, label_column, judgment, n_runs = np.array(rows, np.int32).T
    return JudgedPassages(query, doc, label_column, judgment, n_runs, kappa, comparison)


def find(track: GradedTrack, text: str) -> Found:
    """Return the items and pooled passages that contain a case-folded text."""
    items = (item for of_query in track.bank.items.values() for item in of_query)
    hits: list[PassageHit] = []
    total = 0
    for query_id, doc_id, folded in _folded(track):
        if text in folded:
            total += 1
            if len(hits) < MOST:
                hits.append(PassageHit(query_id, doc_id, _around_hit(track.texts.get(doc_id) or "", text)))
            if total == COUNTED:
                break
    found = (item for item in items if text in f"{item.item_id}\t{item.text}".casefold())
    return Found(tuple(found), tuple(hits), total)


@memoized
def _folded(track: GradedTrack) -> list[tuple[str, str, str]]:
    """Query, passage, and id and text in one case-folded line, of each pooled passage."""
    lines = {doc_id: f"{doc_id}\t{' '.join(text.split())}".casefold() for doc_id, text in track.texts.items()}
    return [
        (query_id, doc_id, lines.get(doc_id, doc_id.casefold()))
        for query_id, sheet in track.sheets.items()
        for doc_id in sheet.doc_ids
    ]


def _around_hit(passage: str, text: str) -> str:
    passage = " ".join(passage.split())
    # Case folding may change lengths; then it is the neighbourhood.
    at = max(0, passage.casefold().find(text))
    start = max(0, at - 60)
    return ("…" if start else "") + passage[start : at + 140] + ("…" if at + 140 < len(passage) else "")


def _labels(track: GradedTrack, q: QueryRatings) -> dict[str, int]:
    scores = track.config.scores
    return labels(q, scores.label, scores.min_rating, scores.min_answers)


def view_of_track(track: GradedTrack, stamps: Mapping[Path, Stamp]) -> View:
    """Return what the pages show of a track beside its queries.

    Args:
        stamps: of the input files, from before they were read.

    Raises:
        TrecexamError, ConversionError: something of it cannot be computed.
    """
    config, folder, (judgments, notes) = track.config, track.folder, _official(track)
    scores = config.scores
    board, compared = own_leaderboard(track), own_differences(track)
    why = why_no_scores(track) if track.runs else None
    notes = notes if why is None else (why, *notes)
    official_board = values_on_official = None
    if judgments is not None and config.official_measures():
        try:
            official_board = leaderboard(track, official=True)
            if official_board.has_scores:
                values_on_official = _per_query(
                    official_values(track), official_board, sorted(official_judgments(track).judged)
                )
            else:
                notes, official_board = (*notes, *official_board.notes), None
        except ValueError as error:
            notes = (*notes, f"official measures cannot be computed: {error}")
    thresholds = relevance_thresholds(track)
    people_files = folder.overrides(), folder.judgments()
    return View(
        version=0,
        root=str(folder.root),
        name=folder.root.resolve().name,
        grader=" ".join(
            str(track.grader.identity[key]) for key in ("grader", "model") if track.grader.identity.get(key)
        ),
        grader_digest=identity_digest(track.grader.identity),
        store=str(folder.store_path),
        settings=ViewSettings(
            config.track.depth,
            config.track.pool_judged,
            scores.label,
            scores.min_rating,
            scores.min_answers,
            scores.min_answers if scores.label == "count" else thresholds.min_rating,
            thresholds.min_relevant,
            scores.unparsed,
            track.grader.scale.max_rating,
        ),
        board=board,
        groups=compared.groups,
        compared=compared.words,
        official_board=official_board,
        values=_per_query(values_of_runs(track), board, track.bank.query_ids),
        official_values=values_on_official,
        runs={
            name: RunHead(folder.shown(track.inputs.dropped.run_files[name]), len(run.query_ids))
            for name, run in track.runs.items()
        },
        queries={query_id: track.query_texts.get(query_id, "") for query_id in track.bank.query_ids},
        counts=track.counts,
        is_judged=judgments is not None,
        people_files=people_files,
        people=(stamps.get(people_files[0]), stamps.get(people_files[1])),
        rejected=rejected_rows(track),
        notes=notes,
        input_notes=track.notes,
        words=track.kind.words,
        scale=track.judging_scale,
        is_cited=track.asked.citing is not None,
        sections=tuple(map(_without_links, _added(track))),
        own=track.name,
    )


def _human(track: GradedTrack, query_id: str) -> dict[tuple[str, str], HumanRating]:
    human = {}
    # With a scale of judgments, whole passages that were rated on the grader's scale are on another one.
    for people, whole in ((track.overrides, track.judging_scale is None), (track.judgments, True)):
        of_query = people.queries.get(query_id)
        if of_query is not None:
            keys = (*of_query.cells, *((doc_id, "") for doc_id in of_query.passages if whole))
            human.update({key: people.ratings[query_id, *key] for key in keys})
    return human


@memoized
def _official(track: GradedTrack) -> tuple[Official | None, tuple[str, ...]]:
    """The track's judgments and notes on them; None without official ones of what the grader rates."""
    if not track.kind.ranks or (track.official is None and track.folder.qrels() is None):
        return None, ()
    try:
        judgments = track_judgments(track)
    except TrecexamError as error:
        return None, (str(error),)
    apart = no_overlap(judgments, {q.query_id: q.doc_ids for q in track.ratings()}, track.config.track.unit)
    return judgments, (*judgments.warnings(), *judgments.people_notes, *((apart,) if apart else ()))


def _around(track: GradedTrack, query_id: str) -> Iterator[tuple[str, tuple[str, str]]]:
    """item_id of a sentence -> its neighbouring sentences, at its first occurrence."""
    responses = ((run, each) for run, of_run in track.responses.items() for each in of_run)
    for run, response in reversed([(run, each) for run, each in responses if each.query_id == query_id]):
        sentences = statements_of(run, response, track.config.grader.citations)
        texts = ["", *(sentence.text for sentence in sentences), ""]
        for number in range(len(sentences), 0, -1):
            yield sentences[number - 1].item_id, (texts[number - 1], texts[number + 1])


def _without_links(section: Section) -> Section:
    """The section for the live page, without links to out/ and styles in SVG."""
    plain = re.sub(r'<a href="[^"#]*">(.*?)</a>', r"\1", str(section.content))
    pictured = re.sub(r"<svg .*?<title[^>]*>(.*?)</title>.*?</svg>", _as_image, plain, flags=re.DOTALL)
    return section._replace(content=Markup(pictured))


def _as_image(svg: re.Match[str]) -> str:
    content = base64.b64encode(svg[0].encode()).decode()
    return f'<img src="data:image/svg+xml;base64,{content}" alt="{svg[1].replace(chr(34), "&quot;")}">'


def _added(track: GradedTrack) -> list[Section]:
    """Return the sections of the report on holes and of extensions."""
    page = Page()
    for feature in (*(named(at) for extension in extensions() for at in extension.features), HOLES):
        if feature.page is not None and feature.applies(track):
            feature.page(track, page)
    return page.sections


def _per_query(values: MeasureValues, board: Leaderboard, query_ids: Sequence[str]) -> MeasureValues:
    """The values of these queries, with the measures in the leaderboard's order."""
    matrices = [values.matrix(name, None, query_ids) for name in board.measures]
    return replace(
        values, query_ids=tuple(query_ids), measures=board.measures, array=np.stack(matrices, axis=2)
    )
