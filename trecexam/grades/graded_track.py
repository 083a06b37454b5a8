"""A graded track at a moment: one finished value, never changed, on which every feature stands."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from converters.errors import ConversionError
from converters.records import Qrel, Response
from converters.run import Run
from trecexam.bank import Bank
from trecexam.config import TrackConfig
from trecexam.errors import LackingError, TrecexamError, cannot_go_on
from trecexam.files.stamps import Rejected
from trecexam.folder import TrackFolder
from trecexam.graders import Grader
from trecexam.grades.sheets import Counts, Sheet, count_cells
from trecexam.grades.stored_grades import StoredGrades
from trecexam.inputs.inputs import TrackInputs
from trecexam.inputs.kind import Asked, Kind, MeasureFacts
from trecexam.inputs.overrides import JudgingScale, Overrides
from trecexam.inputs.pool import PooledQuery
from trecexam.inputs.track_graders import Measures, folder_of, names_of, split_measure
from trecexam.results.table import Table
from trecexam.results.text import LOST, Note
from trecexam.scores.ratings import QueryRatings
from trecexam.scores.value_cache import ValueCache

_IDS = ("query_id", "doc_id", "item_id")
#: The column with the query; the report shows item and passage below the query.
_TEXTS = "query and passage"


@dataclass(frozen=True, eq=False)
class GradedTrack:
    """Inputs, pool and grades of one grader of a track.

    Attributes:
        inputs: what was read; the properties `runs` to `responses` are parts of it.
        name: name of the grader in the track.
        kind: what the grader grades.
        folder: paths of the track and of the grader's own files.
        config: settings, on the scale of the grader.
        grader: who answers; nothing here runs it.
        depth: the number of pooled ranks of each run.
        pool: query_id -> its first passages in the runs and, with `pool_judged`, its judged ones; every query
            of the bank is there.
        texts: doc_id -> text of the pooled passages, as far as there are texts.
        notes: warnings about accepted inputs.
        sheets: query_id -> its cells and their grades; every query of the bank is there.
        overrides: people's ratings, and whether each counts.
        judgments: people's judgments of whole passages on `judging_scale`; they change no rating.
        judging_scale: None where people rate whole passages on the grader's scale.
        digests: sha256 (hex) of every input file by its displayed path.
        rejected: inputs that were rejected, sorted.
        not_taken: `rejected`, people's ratings that do not count, and documents without a text.
        grades: the grader's answers, as stored.
        run_values: the runs' values by labels ("rubric", "official" ...); the next loaded track shares them.
        memo: results by the function that computed them, see `memoized`.
    """

    inputs: TrackInputs
    name: str
    kind: Kind
    folder: TrackFolder
    config: TrackConfig
    grader: Grader
    depth: int
    pool: Mapping[str, PooledQuery]
    texts: Mapping[str, str]
    notes: tuple[str, ...]
    sheets: Mapping[str, Sheet]
    overrides: Overrides
    judgments: Overrides
    judging_scale: JudgingScale | None
    digests: Mapping[str, str]
    rejected: tuple[Rejected, ...]
    not_taken: tuple[Rejected, ...]
    grades: StoredGrades
    run_values: Mapping[str, ValueCache]
    memo: dict[Any, Any] = field(default_factory=dict, init=False, repr=False)

    @property
    def runs(self) -> Mapping[str, Run]:
        """Runs by display name, sorted by name."""
        return self.inputs.dropped.runs

    @property
    def asked(self) -> Asked:
        """The items to grade, and with which texts."""
        return self.inputs.asked

    @property
    def bank(self) -> Bank:
        """The items to grade."""
        return self.inputs.asked.bank

    @property
    def query_texts(self) -> Mapping[str, str]:
        """query_id -> text, as far as it is known."""
        return self.inputs.query_texts

    @property
    def official(self) -> tuple[Qrel, ...] | None:
        """Official judgments, None where there are none."""
        return self.inputs.official

    @property
    def responses(self) -> Mapping[str, tuple[Response, ...]]:
        """Accepted responses of generated runs, by display name."""
        return self.inputs.dropped.responses

    @cached_property
    def measures(self) -> tuple[str, ...]:
        """The track's own measures, in leaderboard order; see `Kind.measures`."""
        return self.kind.measures(self._facts)

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The measures on the leaderboard of several graders: `Kind.columns` that are among `measures`."""
        columns = self.kind.columns(self._facts)
        if self.config.scores.measures is None:
            return columns
        return tuple(name for name in columns if name in self.measures) or self.measures[:1]

    @property
    def _facts(self) -> MeasureFacts:
        only = bool(self.runs) and self.inputs.dropped.generated.issuperset(self.runs)
        return MeasureFacts(self.config, self.bank, only, self.grader.scale.max_rating)

    @cached_property
    def of_documents(self) -> bool:
        """True where labels are of documents that runs rank, as official judgments are."""
        own_texts = self.inputs.dropped.own_texts
        pooled = (doc_id for of_query in self.pool.values() for doc_id in of_query.doc_ids)
        return self.kind.ranks and any(doc_id not in own_texts for doc_id in pooled)

    @cached_property
    def counts(self) -> Counts:
        """Cells of the pool by status."""
        return count_cells(self.sheets.values())

    @property
    def n_judged_only(self) -> int:
        """The number of passages that are pooled only because they are judged."""
        return sum(of_query.n_judged_only for of_query in self.pool.values())

    def ranked_passages(self) -> dict[str, tuple[str, ...]]:
        """Return query_id -> pooled passages that runs have in their first ranks."""
        return {query_id: of_query.ranked for query_id, of_query in self.pool.items()}

    def ratings(
        self, query_ids: Sequence[str] | None = None, *, human: bool = True
    ) -> Sequence[QueryRatings]:
        """Return the ratings of these queries, or of all.

        Args:
            human: False for the grader's ratings alone.
        """
        unparsed, ratings = self.config.scores.unparsed, list[QueryRatings]()
        for query_id in self.bank.query_ids if query_ids is None else query_ids:
            sheet = self.sheets[query_id]
            key = "ratings", unparsed, human and sheet.overrides is not None
            rated = sheet.memo.get(key) or sheet.ratings(unparsed, human=human)
            # A matrix of citations is mostly empty, and all of them are too much to keep.
            if self.asked.citing is None:
                sheet.memo[key] = rated
            ratings.append(rated)
        return ratings

    def grade_rows(self, query_ids: Collection[str] | None = None) -> Iterator[dict[str, Any]]:
        """Yield every grade of the pool, or of these queries; see `StoredGrades.rows`."""
        return self.grades.rows(self.sheets, self.overrides.ratings, query_ids)

    def override_summary(self) -> dict[str, Any]:
        """Count the cells and whole passages that people rated, and name these people."""
        return {
            "cells": self.counts.human_cells,
            "passages": self.counts.human_passages,
            "who": sorted({row.who for row in self.overrides.ratings.values()}),
        }


def graded_by(track: GradedTrack) -> tuple[str, str, str]:
    """Return the grader of a track, its model, and its prompts; "" where there is none."""
    items = [item for sheet in track.sheets.values() for item in sheet.items]
    return str(track.grader.identity["grader"]), *track.grades.model_and_prompt(items)


def with_texts(track: GradedTrack, table: Table) -> Table:
    """Replace the ids in the rows of a table by the texts of query, item and passage."""
    others = [name for name in table.header if name not in _IDS]
    rows = []
    for row in table:
        query_id, doc_id, item_id = (str(row.get(name) or "") for name in _IDS)
        query = track.query_texts.get(query_id)
        items = (*track.bank.items.get(query_id, ()), *track.bank.retired.get(query_id, ()))
        item = next((each.text for each in items if each.item_id == item_id), None)
        texts = (
            _line(query_id, query),
            _line(item_id, item) if item != query else "",
            _line(doc_id, track.texts.get(doc_id)),
        )
        rows.append((*texts, *(row[name] for name in others)))
    header = (_TEXTS, f"{_TEXTS}.item", f"{_TEXTS}.passage", *others)
    return replace(table, header=header, rows=tuple(rows), layout=replace(table.layout, keys=(_TEXTS,)))


def _line(name: str, text: str | None) -> str:
    return f"{name}: {text}" if text else name


def has_bank(track: GradedTrack) -> bool:
    """Return True for a track with a bank: graders with one answer first where none is needed."""
    return len(track.bank) > 0


@dataclass(frozen=True, eq=False)
class LoadedTrack:
    """The graded tracks of one grader or of several; never changed.

    Attributes:
        folder: of the track as a whole.
        graded_tracks: graded tracks by the graders' names, in the order of trecexam.toml; without `unable`.
        unable: name -> why a grader cannot go on (no bank, no model); the others do.
    """

    folder: TrackFolder
    graded_tracks: Mapping[str, GradedTrack]
    unable: Mapping[str, TrecexamError | ConversionError]

    def __getitem__(self, name: str) -> GradedTrack:
        """Return the graded track of one grader, or raise why the grader cannot go on."""
        if name in self.unable:
            raise self.unable[name]
        folder_of(self.folder, name)
        return self.graded_tracks[name]

    @property
    def failed(self) -> tuple[str, ...]:
        """Graders that cannot go on, without those that wait for a bank or a model."""
        return tuple(name for name, error in self.unable.items() if not isinstance(error, LackingError))

    @property
    def is_single(self) -> bool:
        """True for one grader: results then have no grader's name."""
        return len(self.graded_tracks) + len(self.unable) == 1

    @property
    def first(self) -> GradedTrack:
        """The first graded track; where there is none, raises why the first grader cannot go on."""
        if not self.graded_tracks:
            raise next(iter(self.unable.values()))
        return next(iter(self.graded_tracks.values()))

    @property
    def unable_notes(self) -> tuple[Note, ...]:
        """Why graders cannot go on, one per line."""
        return tuple(Note(cannot_go_on(name, error), LOST) for name, error in self.unable.items())

    @property
    def of_documents(self) -> GradedTrack:
        """The first graded track with labels of documents that runs rank, else the first of all."""
        return next((each for each in self.graded_tracks.values() if each.of_documents), self.first)

    def by_grader(self, measures: Measures) -> dict[str, list[str]]:
        """Return the measures of each grader, without its name; see `named`."""
        measures_of_grader: dict[str, list[str]] = {}
        for measure in names_of(measures) or ():
            name, measure_name = self.named(measure)
            measures_of_grader.setdefault(name, []).append(measure_name)
        return measures_of_grader

    def named(self, measure: str) -> tuple[str, str]:
        """Return the grader and the measure of `NAME:MEASURE`; without a name see `whose`, else the first."""
        name, rest = split_measure(self.folder, measure)
        return name or self.whose(measure) or self.first.name, rest

    def whose(self, measure: str) -> str | None:
        """Return the grader of `NAME:MEASURE`; without a name the first with such a column, None for none."""
        name, _ = split_measure(self.folder, measure)
        columns = ((grader, each.columns) for grader, each in self.graded_tracks.items())
        return name or next((grader for grader, names in columns if measure in names), None)
