"""Data of the pages from a loaded track, computed in the reading process."""

from __future__ import annotations

import base64
import re
from collections.abc import Collection, Iterator
from dataclasses import replace

import numpy as np
from markupsafe import Markup

from converters.records import HumanRating
from trecexam.errors import TrecexamError
from trecexam.extension import extensions, named
from trecexam.extensions.page.view import QueryView, View
from trecexam.features.agreement.agreement import disagreements as disagreements_of
from trecexam.features.agreement.agreement import own_agreement
from trecexam.features.holes.holes import HOLES, own_holes
from trecexam.features.leaderboard.board import leaderboard, own_leaderboard
from trecexam.features.leaderboard.differences import differences, own_differences
from trecexam.files.cache import memoized
from trecexam.files.stamps import Rejected
from trecexam.graders.base import identity_digest
from trecexam.grades.diagnostics import rejected_rows
from trecexam.grades.evaluation import values_of_runs, why_no_scores
from trecexam.grades.graded_track import GradedTrack, has_bank
from trecexam.grades.official import relevance_thresholds, track_judgments
from trecexam.grades.sheets import MISSING
from trecexam.inputs.kinds.support import statements_of
from trecexam.inputs.official import Official, no_overlap
from trecexam.results.page.page import Page, Section
from trecexam.results.result import Tables
from trecexam.results.table import Layout, Table
from trecexam.results.text import plural
from trecexam.scores.labels import labels
from trecexam.scores.values import MeasureValues


def query_view(track: GradedTrack, query_id: str) -> QueryView | None:
    """Return a query with its pooled passages; None if the bank lacks it."""
    if query_id not in track.sheets:
        return None
    (q,), (judgments, _) = track.ratings((query_id,)), _official(track)
    sheet, scores = track.sheets[query_id], track.config.scores
    label = labels(q, scores.label, scores.min_rating, scores.min_answers)
    row_by_doc = {doc_id: row_index for row_index, doc_id in enumerate(q.doc_ids)}
    rankings = {
        # Graders of support rate cited passages, not ranked ones.
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
        human_ratings(track, query_id),
        rankings,
        {name: track.runs[name].count(query_id) for name in rankings},
        {} if track.asked.citing is None else dict(_around(track, query_id)),
    )


def _values(track: GradedTrack, runs: Collection[str] | None = None) -> MeasureValues:
    """Return the runs' values; NaN for a track without a bank, where nothing is graded."""
    values = values_of_runs(track, runs=runs)
    return values if has_bank(track) else replace(values, array=np.full_like(values.array, np.nan))


@memoized
def queries(track: GradedTrack) -> Tables:
    """Return a row for each query, with the runs' mean by the first measure."""
    values, (judgments, _) = _values(track), _official(track)
    means: list[float | None] = [None] * len(values.query_ids)
    if values.measures and values.runs:
        means = values.array[:, :, 0].mean(axis=0).tolist()
    mean = dict(zip(values.query_ids, means, strict=True))
    rows = []
    for query_id, sheet in track.sheets.items():
        of_query = {} if judgments is None else judgments.judged.get(query_id, {})
        missing = int(((sheet.flat() == MISSING) & sheet.gradable).sum())
        rows.append(
            (
                *(query_id, track.query_texts.get(query_id, ""), len(sheet.items), len(sheet.doc_ids)),
                None if judgments is None else sum(doc_id in of_query for doc_id in sheet.doc_ids),
                *(mean.get(query_id), missing, len(human_ratings(track, query_id))),
            )
        )
    header = ("query_id", "text", "items", "passages", "judged", "mean", "missing", "human")
    short = {"missing": "ungraded cells", "human": "rated by people"}
    caption = f"Queries, with the runs' mean {values.measures[0]}" if mean else "Queries"
    return Tables(
        {"queries": Table(header, tuple(rows), layout=Layout(("query_id",), short=short), caption=caption)}
    )


def runs_on_query(track: GradedTrack, query_id: str) -> Table:
    """Return each run's values on a query, and how many passages it retrieves."""
    values = _values(track)
    on_query = values.array[:, values.query_ids.index(query_id)].tolist()
    rows = (
        (run, *row, track.runs[run].count(query_id)) for run, row in zip(values.runs, on_query, strict=True)
    )
    return Table(("run", *values.measures, "retrieved"), tuple(rows), layout=Layout(("run",)))


def run_values(track: GradedTrack, run: str) -> Tables:
    """Return a run's values and holes, a row for each query."""
    values, holes = _values(track, [run]), own_holes(track)
    of_query = {row.query_id: row[3:6] for row in holes.rows if row.run == run}
    rows = (
        (query_id, track.query_texts.get(query_id, ""), *means, *of_query.get(query_id, (None, None, None)))
        for query_id, means in zip(values.query_ids, values.array[0].tolist(), strict=True)
    )
    header = ("query_id", "text", *values.measures, "retrieved", "unjudged", "ungraded")
    caption = f"The run on each query; holes are in its first {track.config.track.depth} ranks"
    return Tables({"queries": Table(header, tuple(rows), layout=Layout(("query_id",)), caption=caption)})


@memoized
def disagreements(track: GradedTrack) -> Tables:
    """Return the passages that the grader and the official judgments disagree on, furthest apart first."""
    agreed = own_agreement(track)
    if agreed is None:
        return Tables({}, ("no passage has both a label and an official judgment",))
    apart = disagreements_of(track)
    rows = tuple((*row, track.texts.get(str(row[1]), "")) for row in apart.rows)
    caption = "Passages that one side alone finds relevant, those furthest apart first"
    table = Table((*apart.header, "text"), rows, layout=Layout(("query_id", "doc_id")), caption=caption)
    crosstabs = {str(number): each for number, each in enumerate(agreed._for_people())}
    return Tables({"disagreements": table, **crosstabs}, agreed.notes)


def rejected(track: GradedTrack) -> Tables:
    """Return the rejected files and lines, with warnings about accepted ones as notes."""
    caption = "What was rejected, why, and how much is lost: the file, the line, the response, or cells"
    table = Table(Rejected._fields, rejected_rows(track), layout=Layout(("file",)), caption=caption)
    return Tables({"rejected": table}, track.notes)


def grading(track: GradedTrack) -> Tables:
    """Return the number of cells by outcome."""
    counts = track.counts
    outcomes = {
        "graded": counts.ok,
        "answers that name no rating": counts.unparsed,
        "refused by the model": counts.refused,
        "failed": counts.error,
        "not graded yet": counts.missing,
        "without a text": counts.no_text_cells,
    }
    caption = "Cells (a passage and an item) by outcome"
    return Tables({"cells": Table(("cells", "number"), tuple(outcomes.items()), caption=caption)})


@memoized
def board(track: GradedTrack) -> Tables:
    """Return the leaderboard with its groups, then that on the official judgments."""
    board, compared, judgments = own_leaderboard(track), own_differences(track), _official(track)[0]
    table, notes = compared.joined_to(board.table), [*board.notes, *_official(track)[1]]
    # Show the first score on a phone.
    layout = replace(table.layout, keys=("run",), first=(*board.measures[:1], "group"))
    tables = {"leaderboard": replace(table, layout=layout, caption="Runs by their means, best first")}
    if track.asked.citing is None and not len(track.bank):
        # Zeros would look like bad runs.
        tables = {}
        notes = ["no test bank: put bank.<name>.jsonl there to score runs; people can judge whole passages"]
    elif track.runs and (why := why_no_scores(track)):
        notes.insert(0, why)
    if any(compared.groups.values()):
        notes.append(f"runs that share a letter do not differ significantly: {compared.words}")
    if judgments is not None and track.config.official_measures():
        try:
            official = leaderboard(track, official=True)
            notes += official.notes
            if official.has_scores:
                caption = f"Means on the official judgments, {plural(official.n_queries, 'judged query')}"
                tables["official"] = replace(official.table, caption=caption)
        except ValueError as error:
            notes.append(f"official measures cannot be computed: {error}")
    return Tables(tables, tuple(dict.fromkeys(notes)))


def compared_with(track: GradedTrack, baseline: str) -> Tables:
    """Return the leaderboard with each run's differences from a baseline."""
    compared, tables = differences(track, baseline=baseline), {}
    for of, table in zip(compared.measures, compared._for_people(), strict=False):
        layout = replace(table.layout, keys=("run",), first=(of.measure,))
        tables[of.measure] = replace(table, layout=layout, caption=f"Compared with {baseline}")
    return Tables(tables, compared.notes)


def view_of_track(track: GradedTrack) -> View:
    """Return what the pages show of a track beside its queries.

    Raises:
        TrecexamError, ConversionError: something of it cannot be computed.
    """
    config, folder, thresholds = track.config, track.folder, relevance_thresholds(track)
    identity = track.grader.identity
    return View(
        version=0,
        root=str(folder.root),
        name=folder.root.resolve().name,
        grader=" ".join(str(identity[key]) for key in ("grader", "model") if identity.get(key)),
        grader_digest=identity_digest(identity),
        store=str(folder.store_path),
        depth=config.track.depth,
        pool_judged=config.track.pool_judged,
        min_rating=config.scores.min_rating,
        max_rating=track.grader.scale.max_rating,
        least=config.scores.min_answers if config.scores.label == "count" else thresholds.min_rating,
        min_relevant=thresholds.min_relevant,
        board=board(track),
        runs={name: folder.shown(track.inputs.dropped.run_files[name]) for name in track.runs},
        queries={query_id: track.query_texts.get(query_id, "") for query_id in track.bank.query_ids},
        counts=track.counts,
        is_judged=_official(track)[0] is not None,
        n_rejected=len(rejected_rows(track)),
        input_notes=track.notes,
        words=track.kind.words,
        scale=track.judging_scale,
        is_cited=track.asked.citing is not None,
        sections=tuple(map(_without_links, _added(track))),
        grader_name=track.name,
    )


def human_ratings(track: GradedTrack, query_id: str) -> dict[tuple[str, str], HumanRating]:
    """Return (doc_id, item_id or "" for the passage as a whole) -> the rating that counts."""
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
    """Return the track's judgments and notes on them; None without official ones of what the grader rates."""
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
    """Return the section for the live page, without links to out/ and styles in SVG."""
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
