"""The line: inputs -> pool -> cells -> grades -> scores -> out/. The daemon calls it again and again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import trecexam
from converters.errors import ConversionError
from trecexam.config import CONFIG_NAME, TrackConfig
from trecexam.errors import TrecexamError
from trecexam.features.correlation.paired_scores import not_computable
from trecexam.files.stamps import Rejected, fingerprint, stamp
from trecexam.graders import Grader, create
from trecexam.graders.base import Estimate, asks_of, identity_json, scale_of, scores_of, told_query
from trecexam.line.diagnostics import left_out, without_text
from trecexam.line.gradebook import Gradebook
from trecexam.line.grading import Grading
from trecexam.line.inputs import Inputs, Snapshot
from trecexam.line.measures import check_importance, check_measures
from trecexam.line.official import official as official_of
from trecexam.line.overrides import Overrides, resolve
from trecexam.line.pool import pool
from trecexam.line.store import GradeStore
from trecexam.line.texts import Texts
from trecexam.line.updates import Graded, Progress, Update
from trecexam.line.value_cache import ValueCache, Values
from trecexam.track import TrackFolder

if TYPE_CHECKING:
    from trecexam.scores.leaderboard import Leaderboard
    from trecexam.scores.ratings import QueryRatings

#: Sets of measures beside the track's own whose values are kept from one update to the next.
_OTHERS = 4


class Pipeline:
    """One track's line, with what it has read and computed kept for the next update.

    Use it as a context manager: it holds the store open.
    """

    def __init__(self, folder: TrackFolder, grader: Grader | None = None) -> None:
        self.folder = folder
        self._given_grader = grader
        self._store: GradeStore | None = None
        self._book: Gradebook | None = None
        self._rubric = ValueCache()
        self._official = ValueCache()
        self._others: dict[Hashable, ValueCache] = {}
        self._official_all = ValueCache()
        self.snapshot: Snapshot | None = None
        self.overrides = Overrides()
        self.digests: dict[str, str] = {}
        self._not_taken: tuple[Rejected, ...] = ()
        self._left_out: tuple[Rejected, ...] = ()

    def __enter__(self) -> Pipeline:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the store."""
        if self._store is not None:
            self._store.close()
        self._store, self._book = None, None

    @cached_property
    def config(self) -> TrackConfig:
        """The track's settings, on the scale of its grader.

        Raises:
            ConfigError: they do not go with that scale.
        """
        config = self.folder.config.suited(scores_of(self.grader))
        return config.on_scale(*scale_of(self.grader), self.folder.config_path)

    @cached_property
    def grader(self) -> Grader:
        config = self.folder.config
        return self._given_grader or create(config.grader, self.folder.root, config.ray)

    @cached_property
    def texts(self) -> Texts:
        return Texts(self.folder)

    @cached_property
    def inputs(self) -> Inputs:
        return Inputs(self.folder, asks_of(self.grader), with_query=told_query(self.grader))

    @property
    def gradebook(self) -> Gradebook:
        """The grades; the store is opened for reading only until `update` needs to write."""
        return self._book or self._open(write=False)

    @property
    def store(self) -> GradeStore:
        _ = self.gradebook
        assert self._store is not None
        return self._store

    def _open(self, *, write: bool) -> Gradebook:
        self.close()
        self._store = GradeStore(self.folder.store_path, write=write)
        # What a model wrote stays; what it means follows the prompt's parser as it is now.
        read = getattr(self.grader, "read", None) if getattr(self.grader, "free_text", False) else None
        self._book = Gradebook(
            self._store,
            self.grader.identity,
            self.config.track.min_text,
            read,
            self._said_by,
        )
        return self._book

    def _said_by(self) -> tuple[str | None, str | None]:
        try:
            return getattr(self.grader, "said_by", (None, None))
        except (ConversionError, TrecexamError):
            # A recording that is gone names nobody; what was taken from it is stored.
            return None, None

    @property
    def not_taken(self) -> tuple[Rejected, ...]:
        """Inputs that were not taken, and documents without a text."""
        return self._not_taken

    @property
    def rejected(self) -> tuple[Rejected, ...]:
        """Inputs that were not taken, and items that cannot be graded."""
        where = self.folder.bank(optional=True)
        file = self.folder.shown(where[0]) if len(where) == 1 else "the bank"
        items = (
            Rejected(file, None, f"item '{item.item_id}' {reason} ({cells:,} passages not graded on it)")
            for item, reason, cells in self.gradebook.failed_items()
        )
        reason = None if self.snapshot is None else not_computable(self)
        measures = (Rejected(CONFIG_NAME, None, f"[scores] official_measures: {reason}"),) if reason else ()
        return (*self._not_taken, *measures, *self._left_out, *items)

    def load(
        self,
        hold: Collection[Path] = (),
        depth: int | None = None,
        bank_files: Sequence[Path] | None = None,
        choose: Callable[[Snapshot], Snapshot] | None = None,
    ) -> Snapshot:
        """Reads what changed and builds the pool; grades nothing.

        Args:
            hold: run files that are being written now.
            depth: ranks of each run that are pooled; None for the track's.
            bank_files: None for the track's. What the track's measures need is asked of its own bank alone.
            choose: gives the inputs with the runs that are meant, in place of all of the track.

        Raises:
            TrecexamError, ConversionError: the bank or the passages are missing or unreadable.
        """
        check_measures(self.config, self.folder.config_path)
        snapshot = self.inputs.read(hold, bank_files)
        if choose is not None:
            snapshot = choose(snapshot)
        if bank_files is None:
            check_importance(self.config.measures(), snapshot.bank, snapshot.bank_files)
        depth = depth or self.config.track.depth
        pooled = pool(snapshot.runs.values(), snapshot.bank.query_ids, depth)
        wanted = {doc_id for docs in pooled.values() for doc_id in docs}
        texts, bad_passages = self.texts_of(wanted, snapshot)
        lost = wanted - texts.keys()
        untold = tuple(without_text(self.folder, snapshot, texts, depth)) if lost else ()
        self.gradebook.set_pool(snapshot.bank, pooled, texts)
        where, best = self.folder.shown(self.folder.overrides()), scale_of(self.grader).max_rating
        self.overrides = resolve(snapshot.human, where, snapshot.bank, pooled, texts, best)
        self.gradebook.set_overrides(self.overrides)
        self.snapshot = snapshot
        self.digests = self.inputs.digests(hold, bank_files)
        self._not_taken = (*snapshot.rejected, *bad_passages, *self.overrides.rejected, *untold)
        self._left_out = ()
        return snapshot

    def texts_of(
        self, wanted: Collection[str], snapshot: Snapshot
    ) -> tuple[Mapping[str, str], tuple[Rejected, ...]]:
        """The texts of these documents, as far as there are, and the passage lines not taken.

        Raises:
            TrackError: some are not those of generated responses, and the track has no passages at all.
        """
        own = snapshot.own_texts
        others = set(wanted) - own.keys()
        # Where all that was dropped was refused, that is the news, and not the missing passages.
        if not others and (wanted or snapshot.rejected or self.inputs.whole_answers):
            return own, ()
        found, rejected = self.texts.of(others)
        return {**found, **own}, rejected

    def said(self) -> dict[str, Any]:
        """How many cells and passages people rated, and who did."""
        counts = self.gradebook.counts()
        who = sorted({row.who for row in self.overrides.said.values()})
        return {"cells": counts.human_cells, "passages": counts.human_passages, "who": who}

    def open_to_write(self) -> None:
        """Opens the store for writing, where it is not; `load` must follow.

        Raises:
            StoreError: it cannot be written.
        """
        if self._store is None or not self._store.write:
            self._open(write=True)

    def grade(
        self,
        progress: Callable[[Progress], None] | None = None,
        stop: Callable[[], bool] | None = None,
        only: Mapping[str, Collection[str]] | None = None,
    ) -> Graded:
        """Grades the cells that have no grade yet: see `Grading.run`. `load` must come before."""
        assert self.snapshot is not None
        cells = None if only is None else self.count_missing(only)
        return self._grading.run(self.gradebook, self.snapshot.query_texts, progress, stop, only, cells)

    @cached_property
    def _grading(self) -> Grading:
        return Grading(self.grader)

    def usage(self) -> dict[str, Any] | None:
        """What the grader used in the last grading and in all; None where that is not counted."""
        return self._grading.usage(self.gradebook)

    def estimate(self) -> Estimate:
        """What it would take to grade all cells without a grade; asks nobody. `load` must come before."""
        assert self.snapshot is not None
        return self._grading.estimate(self.gradebook, self.snapshot.query_texts)

    def count_missing(self, only: Mapping[str, Collection[str]]) -> int:
        """How many cells of these passages the grader would be asked about: equal ones once."""
        return sum(1 for _ in self.gradebook.missing({}, only))

    def ratings(self, query_ids: Sequence[str] | None = None, *, human: bool = True) -> list[QueryRatings]:
        """The ratings of these queries, or of all of the bank.

        Args:
            human: False for the grader's alone, without what people said in their place.
        """
        assert self.snapshot is not None
        policy = self.config.scores.unparsed
        queries = self.snapshot.bank.query_ids if query_ids is None else query_ids
        return [self.gradebook.ratings(query_id, policy, human=human) for query_id in queries]

    def rubric_values(
        self, measures: Sequence[str] | None = None, *, min_rating: int | None = None
    ) -> Values:
        """run -> query -> measure -> value on the rubric labels, over all queries of the bank.

        Args:
            min_rating: in place of the track's setting.
        """
        from trecexam.scores.evaluate import RubricJudgments

        assert self.snapshot is not None
        scores = self.config.scores

        def judgments(query_ids: Sequence[str]) -> RubricJudgments:
            return RubricJudgments(
                self.ratings(query_ids),
                rule=scores.label,
                min_rating=scores.min_rating if min_rating is None else min_rating,
                min_answers=scores.min_answers,
            )

        names = self.config.measures() if measures is None else list(measures)
        check_importance(names, self.snapshot.bank, self.snapshot.bank_files)
        own = measures is None and min_rating is None
        cache = self._rubric if own else self._other(tuple(names), min_rating)
        versions = {q: self.gradebook.version(q) for q in self.snapshot.bank.query_ids}
        return cache.values(self.snapshot.runs, self.snapshot.run_contents, names, versions, judgments)

    def _other(self, *key: Hashable) -> ValueCache:
        """Values of measures that are not the track's own, kept while they are asked for again and again."""
        self._others[key] = self._others.pop(key) if key in self._others else ValueCache()
        while len(self._others) > _OTHERS:
            del self._others[next(iter(self._others))]
        return self._others[key]

    def official_values(
        self, measures: Sequence[str] | None = None, query_ids: Collection[str] | None = None
    ) -> Values:
        """run -> query -> measure -> value on the official judgments.

        Args:
            query_ids: only those of these queries that are judged; None for all judged queries.

        Raises:
            TrecexamError: the track has no official judgments.
        """
        from trecexam.scores.evaluate import OfficialJudgments

        assert self.snapshot is not None
        official = official_of(self).rows
        token = self.folder.qrels() and stamp(self.folder.qrels() or Path())
        judged = sorted({qrel.query_id for qrel in official})
        queries = [q for q in judged if query_ids is None or q in query_ids]
        names = self.config.official_measures() if measures is None else list(measures)
        own = self._official_all if query_ids is None else self._official
        cache = own if measures is None else ValueCache()

        def judgments(wanted: Sequence[str]) -> OfficialJudgments:
            kept = set(wanted)
            return OfficialJudgments(qrel for qrel in official if qrel.query_id in kept)

        return cache.values(
            self.snapshot.runs, self.snapshot.run_contents, names, dict.fromkeys(queries, token), judgments
        )

    def leaderboard(self, measures: Sequence[str] | None = None, *, official: bool = False) -> Leaderboard:
        """The leaderboard on the rubric labels, or on the official judgments.

        Means are over all queries of the bank (official: of the judgments), as trec_eval -c.
        """
        from trecexam.scores.evaluate import measure
        from trecexam.scores.leaderboard import leaderboard

        assert self.snapshot is not None
        values = self.official_values(measures) if official else self.rubric_values(measures)
        default = self.config.official_measures() if official else self.config.measures()
        names = [str(measure(name)) for name in (default if measures is None else measures)]
        if official:
            assert self.snapshot.official is not None
            query_ids: Sequence[str] = sorted({qrel.query_id for qrel in self.snapshot.official})
        else:
            query_ids = self.snapshot.bank.query_ids
        answered = {name: [q for q in query_ids if q in run] for name, run in self.snapshot.runs.items()}
        return leaderboard(values, names, query_ids, answered, average=self.config.scores.average)

    def update(
        self,
        progress: Callable[[Progress], None] | None = None,
        stop: Callable[[], bool] | None = None,
        hold: Collection[Path] = (),
    ) -> Update:
        """Brings grades and outputs up to date with the folder. Nothing new: nothing is done.

        Raises:
            TrecexamError, ConversionError: what stands in the way; outputs are as they were.
        """
        from trecexam.outputs.outputs import Outputs

        outputs = Outputs(self.folder)
        seen = self._fingerprint(hold)
        last = outputs.last(seen)
        if last is not None:
            return Update(False, 0, *last, complete=True, written=())
        self.inputs.forget_missing()
        self.open_to_write()
        runs = len(self.load(hold).runs)
        graded, complete, why, cut = self.grade(progress, stop)
        counts = self.gradebook.counts()
        self._left_out = tuple(left_out(self.folder, self.gradebook, counts)) if complete else ()
        written = outputs.write(self, counts, complete=complete)
        if complete:
            outputs.remember(seen, runs, counts, self.rejected)
        return Update(
            True, graded, runs, counts, self.rejected, complete, tuple(written.files), written.entry, why, cut
        )

    def _fingerprint(self, hold: Collection[Path]) -> str:
        """Equal for two updates exactly when the second has nothing to do."""
        # A file that is being written changes at every look; what counts of it does not.
        inputs = {path: value for path, value in self.inputs.stamps().items() if path not in hold}
        state = [
            trecexam.__version__,
            self.config.model_dump(mode="json", exclude={"generator", "exam"}),
            fingerprint(inputs),
            sorted(map(str, hold)),
            identity_json(self.grader.identity),
        ]
        return hashlib.sha256(json.dumps(state).encode()).hexdigest()


@contextmanager
def opened(root: Path | str, grader: Grader | None = None) -> Iterator[Pipeline]:
    """The pipeline of the track in `root`, closed again at the end."""
    with Pipeline(TrackFolder.open(root), grader) as pipeline:
        yield pipeline
