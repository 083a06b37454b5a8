"""What a track is at a moment: one finished value, never changed, on which every feature stands."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from trecexam.config import TrackConfig
from trecexam.files.stamps import Rejected
from trecexam.folder import TrackFolder
from trecexam.graders import Grader
from trecexam.line.judging_scale import JudgingScale
from trecexam.line.kind import Kind, MeasureFacts
from trecexam.line.overrides import Overrides
from trecexam.line.pool import PooledQuery
from trecexam.line.sheets import Counts, Sheet, count_cells
from trecexam.line.stored_grades import StoredGrades
from trecexam.line.track_inputs import TrackInputs
from trecexam.line.value_cache import ValueCache
from trecexam.scores.ratings import QueryRatings


@dataclass(frozen=True, eq=False)
class Assessment(TrackInputs):
    """A track's inputs, its pool, and the grades of the pool's cells.

    A later one shares every part that did not change with those before it.

    Attributes:
        name: of the grader in the track.
        kind: what it grades.
        folder: where the track is, and its own files are.
        config: its settings, on the scale of its grader.
        grader: who answers; nothing here runs it.
        depth: how many ranks of each run are pooled.
        pool: query_id -> its first passages in the runs and, with `pool_judged`, its judged ones; every query
            of the bank is there.
        texts: doc_id -> text of the pooled passages, as far as there are texts.
        sheets: query_id -> its cells and their grades; every query of the bank is there.
        overrides: people's ratings, and what became of each line of them.
        judgments: people's judgments of whole passages on `judging_scale`; they change no rating.
        judging_scale: None where people rate whole passages on the grader's scale.
        digests: sha256 (hex) of every input file, by its shown path.
        not_taken: inputs that were rejected, and documents without a text.
        grades: the grader's answers, as stored.
        run_values: by labels ("rubric", "official" ...), the runs' values; the next loaded track shares them.
        left_out_runs: the number of runs in the drop folder that are neither graded nor ranked, since the
            setting `unit` has whole responses alone, or `runs` of one of several graders others.
        memo: results by the function that computed them, see `memoized`.
    """

    name: str
    kind: Kind
    folder: TrackFolder
    config: TrackConfig
    grader: Grader
    depth: int
    pool: Mapping[str, PooledQuery]
    texts: Mapping[str, str]
    sheets: Mapping[str, Sheet]
    overrides: Overrides
    judgments: Overrides
    judging_scale: JudgingScale | None
    digests: Mapping[str, str]
    not_taken: tuple[Rejected, ...]
    grades: StoredGrades
    run_values: Mapping[str, ValueCache]
    left_out_runs: int = 0
    memo: dict[Any, Any] = field(default_factory=dict, init=False, repr=False)

    @cached_property
    def measures(self) -> tuple[str, ...]:
        """The measures on rubric ratings that hold where none are named, see `Kind.measures`."""
        return self.kind.measures(self._facts)

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """Those of them that stand on the leaderboard of several graders, see `Kind.columns`.

        Where the settings name measures, those of the kind's columns that are among them, else the first.
        """
        columns = self.kind.columns(self._facts)
        if self.config.scores.measures is None:
            return columns
        return tuple(name for name in columns if name in self.measures) or self.measures[:1]

    @property
    def _facts(self) -> MeasureFacts:
        only = bool(self.runs) and self.generated.issuperset(self.runs)
        return MeasureFacts(self.config, self.bank, only, self.grader.scale.max_rating)

    @cached_property
    def of_documents(self) -> bool:
        """Whether its labels are of documents that runs rank: official judgments can be set against them."""
        pooled = (doc_id for of_query in self.pool.values() for doc_id in of_query.doc_ids)
        return self.kind.ranks and any(doc_id not in self.own_texts for doc_id in pooled)

    @cached_property
    def counts(self) -> Counts:
        """The cells of the pool by what became of them."""
        return count_cells(self.sheets.values())

    @property
    def n_judged_only(self) -> int:
        """How many pooled passages no run has in its first ranks: they are pooled since they are judged."""
        return sum(of_query.n_judged_only for of_query in self.pool.values())

    @property
    def pooled_of_runs_alone(self) -> tuple[str, ...]:
        """The queries whose pool is of runs alone: all, or with `pool_judged` those that nobody judged.

        None where the grader knows passages by id, as qrels that are grades do: all that it knows are pooled.
        """
        if self.grader.known_passages is not None:
            return ()
        judged = self.judged_queries if self.config.track.pool_judged else ()
        return tuple(query_id for query_id in self.bank.query_ids if query_id not in judged)

    def ranked_passages(self) -> dict[str, tuple[str, ...]]:
        """query_id -> the pooled passages that runs have in their first ranks."""
        return {query_id: of_query.ranked for query_id, of_query in self.pool.items()}

    def ratings(
        self, query_ids: Sequence[str] | None = None, *, human: bool = True
    ) -> Sequence[QueryRatings]:
        """The ratings of these queries, or of all of the bank.

        Args:
            human: False for the grader's alone, without what people said in their place.
        """
        if self.asked.citing is not None:
            # A matrix of these is mostly empty, and all of them are too much to keep.
            return tuple(
                self.sheets[q].ratings(self.config.scores.unparsed, human=human)
                for q in (self.bank.query_ids if query_ids is None else query_ids)
            )
        of_query = self._ratings if human else self._machine_ratings
        return tuple(of_query[q] for q in (self.bank.query_ids if query_ids is None else query_ids))

    @cached_property
    def _ratings(self) -> Mapping[str, QueryRatings]:
        unparsed = self.config.scores.unparsed
        return {query_id: sheet.ratings(unparsed) for query_id, sheet in self.sheets.items()}

    @cached_property
    def _machine_ratings(self) -> Mapping[str, QueryRatings]:
        rated = {query_id: sheet for query_id, sheet in self.sheets.items() if sheet.overrides is not None}
        unparsed = self.config.scores.unparsed
        return {
            **self._ratings,
            **{query_id: sheet.ratings(unparsed, human=False) for query_id, sheet in rated.items()},
        }

    def grade_rows(self, query_ids: Collection[str] | None = None) -> Iterator[dict[str, Any]]:
        """Every grade of the pool, or of these queries, with its raw answer: see `StoredGrades.rows`."""
        return self.grades.rows(self.sheets, self.overrides.ratings, query_ids)

    def override_summary(self) -> dict[str, Any]:
        """How many cells, and passages as a whole, people rated, and who did."""
        return {
            "cells": self.counts.human_cells,
            "passages": self.counts.human_passages,
            "who": sorted({row.who for row in self.overrides.ratings.values()}),
        }
