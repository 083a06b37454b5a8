"""Makes the view of a loaded track: computes everything that the pages show."""

from __future__ import annotations

import base64
import math
import pickle
import re
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace
from itertools import compress
from typing import NamedTuple

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from converters.records import HumanRating
from trecexam.errors import TrecexamError
from trecexam.extension import extensions, named
from trecexam.extensions.page.view import (
    HoleCounts,
    ItemHead,
    JudgedTable,
    Part,
    QueryHead,
    QueryView,
    RunHead,
    View,
    ViewSettings,
)
from trecexam.features.agreement.agreement import Agreements, own_agreement
from trecexam.features.holes.holes import HOLES, holes_of_runs, is_among
from trecexam.features.leaderboard.differences import own_differences
from trecexam.files.stamps import stamp
from trecexam.graders.base import identity_digest
from trecexam.grades.cited import responses_by_query
from trecexam.grades.evaluation import (
    leaderboard,
    official_values,
    own_leaderboard,
    values_of_runs,
    why_no_scores,
)
from trecexam.grades.graded_track import GradedTrack
from trecexam.grades.official import Official, no_overlap, official_judgments, track_judgments
from trecexam.grades.rejected import rejected_rows
from trecexam.grades.relevance import relevance_thresholds
from trecexam.grades.sheets import MISSING, NOT_ASKED
from trecexam.inputs.kinds.support import statements_of
from trecexam.results.page.page import Page, Section
from trecexam.scores.labels import labels
from trecexam.scores.leaderboard import Leaderboard
from trecexam.scores.ratings import QueryRatings
from trecexam.scores.values import MeasureValues


class _GatheredQuery(NamedTuple):
    """What a query adds to the view.

    Attributes:
        judged: rows of doc, label, judgment, runs; shape (n, 4).
        holes: retrieved, unjudged, ungraded of each of the track's runs; shape (3, n_runs).
    """

    token: Hashable
    head: QueryHead
    part: Part
    judged: NDArray[np.int32]
    holes: NDArray[np.int32]


class Gatherer:
    """Gathers views repeatedly, and only what changed since the last time."""

    def __init__(self) -> None:
        self._kept: dict[str, _GatheredQuery] = {}

    def gather(self, track: GradedTrack) -> tuple[View, dict[str, Part]]:
        """The view of a loaded track without parts, and its new parts.

        Raises:
            TrecexamError, ConversionError: something of it cannot be computed.
        """
        judgments, notes = _official(track)
        earlier, self._kept = self._kept, {}
        common = self._common(track)
        for q in track.ratings():
            token = (common, *_token(track, q))
            gathered_query = earlier.get(q.query_id)
            if gathered_query is None or gathered_query.token != token:
                gathered_query = _gathered(track, q, judgments, token)
            self._kept[q.query_id] = gathered_query
        gathered = self._kept
        new = {
            q: query.part
            for q, query in gathered.items()
            if q not in earlier or earlier[q].part is not query.part
        }
        view = _view(track, judgments, notes, list(gathered.values()))
        return view, new

    def _common(self, track: GradedTrack) -> Hashable:
        """A token that changes if all queries must be gathered again."""
        folder = track.folder
        passages, qrels = folder.passages(), folder.qrels()
        return (
            passages and stamp(passages),
            qrels and stamp(qrels),
            tuple(track.inputs.dropped.run_contents.items()),
            identity_digest(track.grader.identity),
            track.judging_scale,
        )


def _token(track: GradedTrack, q: QueryRatings) -> tuple[Hashable, ...]:
    """A token that changes if something of this query changed."""
    query_id = q.query_id
    return (
        track.sheets[query_id],
        tuple(_human(track, query_id).items()),
        track.bank.items[query_id],
        track.bank.retired.get(query_id, ()),
        track.query_texts.get(query_id),
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


def _official(track: GradedTrack) -> tuple[Official | None, tuple[str, ...]]:
    """The track's judgments and notes on them; None without official ones of what the grader rates."""
    if not track.kind.ranks or (track.official is None and track.folder.qrels() is None):
        return None, ()
    try:
        judgments = track_judgments(track)
    except TrecexamError as error:
        return None, (str(error),)
    apart = no_overlap(track, judgments, {q.query_id: q.doc_ids for q in track.ratings()})
    return judgments, (*judgments.warnings(), *judgments.people_notes, *((apart,) if apart else ()))


def _gathered(
    track: GradedTrack, q: QueryRatings, judgments: Official | None, token: Hashable
) -> _GatheredQuery:
    state = _state(track, q, judgments)
    pairs = zip(state.doc_ids, state.texts, strict=True)
    folded = "\n".join(f"{doc_id}\t{' '.join((text or '').split())}" for doc_id, text in pairs)
    gradable = state.codes[np.array(state.gradable, bool)]
    head = QueryHead(
        state.query_id,
        state.text,
        len(state.items),
        len(state.doc_ids),
        None if judgments is None else sum(doc_id in state.judgments for doc_id in state.doc_ids),
        int((gradable == MISSING).sum()),
        int(((state.codes < MISSING) & (state.codes != NOT_ASKED)).sum()),
        len(state.human),
    )
    return _GatheredQuery(
        token,
        head,
        Part(pickle.dumps(state, protocol=5), folded.casefold().encode(errors="replace")),
        _judged_rows(state, judgments),
        _holes(track, q, state, judgments),
    )


def _state(track: GradedTrack, q: QueryRatings, judgments: Official | None) -> QueryView:
    scores = track.config.scores
    query_id = q.query_id
    texts = track.texts
    label = labels(q, scores.label, scores.min_rating, scores.min_answers)
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
        tuple(texts.get(doc_id) for doc_id in q.doc_ids),
        track.sheets[query_id].texts,
        q.ratings,
        track.sheets[query_id].matrix(),
        tuple(label.get(doc_id) for doc_id in q.doc_ids),
        {} if judgments is None else dict(judgments.judged.get(query_id, {})),
        _human(track, query_id),
        rankings,
        {name: track.runs[name].count(query_id) for name in rankings},
        {} if track.asked.citing is None else dict(_around(track, query_id)),
    )


def _around(track: GradedTrack, query_id: str) -> Iterator[tuple[str, tuple[str, str]]]:
    """item_id of a sentence -> its neighbouring sentences, at its first occurrence."""
    ((_, responses),) = responses_by_query(track, track.responses, [query_id])
    for run, response in reversed(responses):
        sentences = statements_of(run, response, track.config.grader.citations)
        texts = ["", *(sentence.text for sentence in sentences), ""]
        for number in range(len(sentences), 0, -1):
            yield sentences[number - 1].item_id, (texts[number - 1], texts[number + 1])


def _judged_rows(state: QueryView, judgments: Official | None) -> NDArray[np.int32]:
    runs = np.zeros(len(state.doc_ids), np.int32)
    for ranking in state.rankings.values():
        runs[list(ranking)] += 1
    judged = {} if judgments is None else judgments.judged.get(state.query_id, {})
    rows = [
        (row_index, label, judged[doc_id], int(runs[row_index]))
        for row_index, (doc_id, label) in enumerate(zip(state.doc_ids, state.labels, strict=True))
        if label is not None and doc_id in judged
    ]
    return np.array(rows, np.int32).reshape(-1, 4)


def _holes(
    track: GradedTrack, q: QueryRatings, state: QueryView, judgments: Official | None
) -> NDArray[np.int32]:
    pooled = track.pool[q.query_id]
    rated = is_among(pooled.doc_ids, frozenset(compress(q.doc_ids, q.rated.tolist())))
    judged = None if judgments is None else is_among(pooled.doc_ids, state.judgments)
    found = holes_of_runs(pooled.ranks[:, : track.config.track.depth], judged, rated)
    counts = [(each.retrieved, each.unjudged or 0, each.ungraded) for each in found]
    return np.array(counts, np.int32).reshape(-1, 3).T


def _view(
    track: GradedTrack, judgments: Official | None, notes: tuple[str, ...], gathered: Sequence[_GatheredQuery]
) -> View:
    config, folder = track.config, track.folder
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
    judged = _judged(gathered)
    agreed = None if judged is None else _agreement(track)
    thresholds = relevance_thresholds(track)
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
        heads={query.head.query_id: query.head for query in gathered},
        parts={},
        bank=tuple(
            ItemHead(query_id, item.item_id, item.text)
            for query_id, items in track.bank.items.items()
            for item in items
        ),
        counts=track.counts,
        holes=_hole_counts(gathered, len(track.runs), judgments, config.track.depth),
        judged=judged,
        kappa=None if agreed is None else _kappa(agreed),
        comparison=None if agreed is None else agreed.notes,
        rejected=rejected_rows(track),
        notes=notes,
        input_notes=track.notes,
        words=track.kind.words,
        scale=track.judging_scale,
        is_cited=track.asked.citing is not None,
        sections=tuple(map(_without_links, _added(track))),
        own=track.name,
    )


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


def _hole_counts(
    gathered: Sequence[_GatheredQuery], n_runs: int, judgments: Official | None, depth: int
) -> HoleCounts:
    stacked = np.zeros((3, n_runs, len(gathered)), np.int32)
    for column, query in enumerate(gathered):
        stacked[:, :, column] = query.holes
    return HoleCounts(depth, stacked[0], None if judgments is None else stacked[1], stacked[2])


def _judged(gathered: Sequence[_GatheredQuery]) -> JudgedTable | None:
    judged = [query.judged for query in gathered]
    if not any(map(len, judged)):
        return None
    query = np.repeat(np.arange(len(judged), dtype=np.int32), [len(rows) for rows in judged])
    return JudgedTable(query, *np.concatenate(judged).T)


def _agreement(track: GradedTrack) -> Agreements | None:
    """Agreement of the grader's labels with the judgments; None without common passages."""
    try:
        return own_agreement(track)
    except (TrecexamError, ValueError):
        return None


def _kappa(agreements: Agreements) -> tuple[float, float, float] | None:
    """Kappa of binary labels with its interval; None if undefined."""
    kappa = agreements.found[0].binary.kappa
    return None if math.isnan(kappa.value) else (kappa.value, kappa.low, kappa.high)
