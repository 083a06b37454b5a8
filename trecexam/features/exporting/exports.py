"""Exports for other tools: labels as qrels, subtopics, and every grade."""

from __future__ import annotations

import io
import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from converters import trec_qrels
from converters.lines import iter_filled, parse_object
from converters.measure_values import ALL
from converters.rag_responses import numbered_responses
from converters.records import MeasureValue
from converters.run import Run
from trecexam.errors import TrecexamError
from trecexam.grades.evaluation import board_of, check_runs, probable_ratings, values_of_runs, why_no_scores
from trecexam.grades.graded_track import GradedTrack, LoadedTrack, graded_by
from trecexam.grades.run_grades import runs_without_score
from trecexam.inputs.protected import refuse_protected
from trecexam.inputs.sources import refuse_foreign, write_with_provenance
from trecexam.inputs.track_graders import Measures
from trecexam.results.frames import Library, data_frame, texts
from trecexam.scores.labels import LabelRule, RubricQrel, label_qrels
from trecexam.scores.ratings import QueryRatings


def qrels(
    track: GradedTrack,
    *,
    label: LabelRule | None = None,
    min_rating: int | None = None,
    min_answers: int | None = None,
    binary: bool = False,
    by: Literal["query", "facet"] = "query",
    probabilities: bool = False,
    human: bool = True,
) -> Iterator[RubricQrel]:
    """Yield the Rubric-Qrels as `ir_measures.Qrel`s, which carry the item ratings that Cover needs."""
    scores = track.config.scores
    if by == "facet":
        of_queries: Iterable[QueryRatings] = _facet_ratings(track, human=human)
    else:
        of_queries = probable_ratings(track) if probabilities else track.ratings(human=human)
    return label_qrels(
        of_queries,
        label or scores.label,
        scores.min_rating if min_rating is None else min_rating,
        scores.min_answers if min_answers is None else min_answers,
        binary=binary,
    )


def write_qrels(track: GradedTrack, output: Path | str, **options: Any) -> Path:
    """Write the Rubric-Qrels as a file, and `OUTPUT.json` with the source of the labels.

    Args:
        options: options of `qrels`.
    """
    output = Path(output)
    refuse_protected(output, track.folder.root)
    refuse_foreign(output, track.folder.root)
    rows = list(qrels(track, **options))
    buffer = io.BytesIO()
    trec_qrels.write_qrels(rows, buffer)
    machine = qrels(track, **options, human=False)
    graders_own = {(row.query_id, row.doc_id): row.relevance for row in machine}
    whole = {(query_id, doc_id) for query_id, doc_id, item_id in track.overrides.ratings if not item_id}
    # A person's rating counts as a source only if it changes the label.
    sources = Counter(
        "override" if key in whole or graders_own.get(key) != row.relevance else "model"
        for row in rows
        for key in [(row.query_id, row.doc_id)]
    )
    write_with_provenance(output, {output: buffer.getvalue()}, "export qrels", graded_by(track), sources)
    return output


def runs(track: GradedTrack, runs: Collection[str] | None = None) -> dict[str, Run]:
    """Return the runs by name, in trec_eval's order; for generated responses, their evaluated passages."""
    check_runs(track, runs)
    return {name: run for name, run in track.runs.items() if runs is None or name in runs}


def responses(track: GradedTrack, run: str, measures: Measures | None = None) -> Iterator[dict[str, Any]]:
    """Yield each line of a file of generated responses, with values by measure added."""
    values = values_of_runs(track, measures, runs=[run])
    path = track.inputs.dropped.run_files[run]
    if run not in track.responses:
        raise TrecexamError(f"run '{run}' has no generated responses", path=path)
    columns = [values.matrix(name, [run], track.bank.query_ids)[0].tolist() for name in values.measures]
    scores = {
        query_id: [None if math.isnan(value) else value for value in of_query]
        for query_id, of_query in zip(track.bank.query_ids, zip(*columns, strict=True), strict=True)
    }
    by_text = {text.strip(): query_id for query_id, text in track.query_texts.items()}
    accepted = {
        number: response.query_id or by_text.get(response.query_text.strip(), "")
        for number, response in numbered_responses(path, lambda _: None, lambda *_: None)
    }
    for number, line in iter_filled(path):
        if number in accepted:
            row = scores.get(accepted[number], ())
            yield parse_object(path, number, line) | dict(zip(values.measures, row, strict=False))


def _facet_ratings(track: GradedTrack, *, human: bool) -> list[QueryRatings]:
    """Return the ratings of each facet of the bank, in the bank's order; the query id is `query/facet`.

    All pooled passages of the query are included. People's ratings of whole passages and items without a
    facet are left out. After the Rubric workbench's `--qrel-query-facets`.
    """
    facets = []
    for q in track.ratings(human=human):
        columns: dict[str, list[int]] = {}
        for column, item in enumerate(track.sheets[q.query_id].items):
            if item.facet_id:
                columns.setdefault(item.facet_id, []).append(column)
        for facet_id, chosen in columns.items():
            if facet_id.split() != [facet_id]:
                raise TrecexamError(
                    f"the facet {facet_id!r} of query '{q.query_id}' has white space in it, which no query "
                    "id of qrels can have; give it a `facet_id` without",
                    path=track.folder.root,
                )
            facets.append(
                replace(
                    q,
                    query_id=f"{q.query_id}/{facet_id}",
                    n_items=len(chosen),
                    ratings=q.ratings[:, chosen],
                    human={},
                    importances=q.importances and tuple(q.importances[column] for column in chosen),
                    weights=q.weights and tuple(q.weights[column] for column in chosen),
                )
            )
    if not facets:
        raise TrecexamError(
            "no item of the bank has a facet: give items a `facet_id`, or set facets = true in [track] where "
            "its query ids are query/facet",
            path=track.folder.root,
        )
    return facets


def per_query(
    track: GradedTrack,
    measures: Measures | None = None,
    *,
    official: bool = False,
    runs: Collection[str] | None = None,
    library: Library = "pandas",
) -> Any:
    """Return every run's value by query and measure as a data frame: the values that means are over."""
    values = values_of_runs(track, measures, official=official, runs=runs)
    names, query_ids = sorted(values.runs), sorted(values.query_ids)
    stacked = [values.matrix(name, names, query_ids) for name in values.measures]
    keys = np.indices((len(names), len(query_ids), len(stacked))).reshape(3, -1)
    labels = {"run": names, "query_id": query_ids, "measure": values.measures}
    columns: dict[str, Any] = {
        name: texts(distinct_texts).take(key)
        for (name, distinct_texts), key in zip(labels.items(), keys, strict=True)
    }
    columns["value"] = np.stack(stacked, axis=2).ravel() if stacked else np.zeros(0)
    return data_frame(columns, library)


def leaderboard_values(track: LoadedTrack, first: Sequence[str] = ()) -> Iterator[MeasureValue]:
    """Return the values of graders with grades; of several graders the leaderboard's measures first."""
    if track.is_single:
        return _leaderboard_values(track.first, first)
    graded = {name: each for name, each in track.graded_tracks.items() if each.counts.is_graded}
    return (
        row._replace(measure=f"{name}:{row.measure}")
        for name, each in (graded or {track.first.name: track.first}).items()
        for row in _leaderboard_values(each, first or each.columns)
    )


def _leaderboard_values(track: GradedTrack, first: Sequence[str]) -> Iterator[MeasureValue]:
    """Yield every run's value by query and measure, and its means as query "all"."""
    why = why_no_scores(track)
    if why is not None:
        raise TrecexamError(why, path=track.folder.root)
    all_measures = list(dict.fromkeys((*first, *track.measures))) if first else None
    values = values_of_runs(track, all_measures)
    board = board_of(track, values)
    query_ids, unscored = sorted(values.query_ids), runs_without_score(track)
    rows = [row for row in board.rows if row.run not in unscored]
    matrices = [values.matrix(name, [row.run for row in rows], query_ids) for name in board.measures]
    for row, *of_measures in zip(rows, *(matrix.tolist() for matrix in matrices), strict=True):
        for measure, score, of_queries in zip(board.measures, row.scores, of_measures, strict=True):
            for query_id, value in zip(query_ids, of_queries, strict=True):
                if board.average == "all" or query_id in track.runs[row.run]:
                    yield MeasureValue(row.run, query_id, measure, value)
            yield MeasureValue(row.run, ALL, measure, float(score.mean))
