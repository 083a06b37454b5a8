"""Reads what a track folder holds, each file once until it changes, and says what it could not take."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from converters.bank import read_bank_queries
from converters.errors import ConversionError
from converters.ir_dataset import dataset_qrels, dataset_queries
from converters.ragval import AnswerRow
from converters.records import HumanRating, Item, Qrel, Response
from converters.run import Run
from trecexam.bank import Bank
from trecexam.bank.asked import QUERY
from trecexam.bank.facets import item_by_query
from trecexam.files.cache import FileCache
from trecexam.files.stamps import Rejected, Stamp, dangling_link, stamp
from trecexam.line.asked_bank import asked_bank
from trecexam.line.dropped_runs import DroppedRuns, RunContent
from trecexam.line.input_files import (
    read_bank_file,
    read_overrides_file,
    read_qrels_file,
    read_queries_file,
    read_ranks_file,
    sha256_of,
)
from trecexam.line.judged_answers import JUDGED
from trecexam.line.sources import sources_beside
from trecexam.track import TrackFolder

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class TrackInputs:
    """All inputs of a track at one moment, but the passages' texts.

    Attributes:
        bank_files: of the bank.
        runs: display name -> run, sorted by name; without queries that the bank does not have.
        run_files: display name -> file.
        run_contents: display name -> a token that changes when the run's content does.
        answers: of runs that are whole answers, the answers to questions of the bank, by display name.
        generated: display names of the runs that are generated responses, whatever of these is pooled.
        responses: of these runs, their responses to queries of the bank, by display name.
        own_texts: doc_id -> text of the passages that generated responses amount to.
        official: the official judgments, None where there are none.
        official_ranks: run name -> official rank (1 is best), None where there are none.
        own_queries: those that the track's file or dataset names, as far as it can be read.
        human: the lines of overrides.tsv and their numbers; whether they count is not decided here.
        judged: those of judgments.tsv, where there is a scale for them.
        notes: what is odd of inputs that were taken, a line each: queries of runs that the bank does not
            have, a run that is there twice.
    """

    bank: Bank
    bank_files: tuple[Path, ...]
    query_texts: Mapping[str, str]
    runs: Mapping[str, Run]
    run_files: Mapping[str, Path]
    run_contents: Mapping[str, RunContent]
    generated: frozenset[str]
    responses: Mapping[str, tuple[Response, ...]]
    own_texts: Mapping[str, str]
    answers: Mapping[str, tuple[AnswerRow, ...]]
    official: tuple[Qrel, ...] | None
    official_ranks: Mapping[str, float] | None
    own_queries: frozenset[str]
    human: tuple[tuple[int, HumanRating], ...]
    judged: tuple[tuple[int, HumanRating], ...]
    rejected: tuple[Rejected, ...]
    notes: tuple[str, ...]

    @cached_property
    def judged_queries(self) -> frozenset[str]:
        """Those with official judgments."""
        return frozenset(row.query_id for row in self.official or ())


class InputReader:
    """The files of one track, cached by stamp."""

    def __init__(
        self,
        folder: TrackFolder,
        kinds: Collection[str] = ("question", "nugget"),
        *,
        with_query: bool = False,
        known: Collection[str] | None = None,
    ) -> None:
        """Inputs of a track whose grader asks about items of these kinds; see `trecexam.bank.asked`."""
        self.folder = folder
        self.kinds = kinds
        self.with_query = with_query
        self.known = known
        self._files = FileCache()
        self._dropped = DroppedRuns(folder, self._files, whole_answers=frozenset(kinds) >= JUDGED)
        self._dataset_queries: dict[str, str] | None = None
        self._dataset_qrels: tuple[Qrel, ...] | None = None

    def stamps(self, bank_files: Sequence[Path] | None = None) -> dict[Path, Stamp]:
        """The stamp of every input file that is there now; `bank_files` are in place of the track's own."""
        paths = self._paths(bank_files)
        return {path: current for path in paths if (current := stamp(path)) is not None}

    def state(self) -> list[tuple[Path, Stamp | None]]:
        """Equal at two moments exactly when reading gives the same: links to what is not there count, too."""
        official = self.folder.qrels()
        sources = [sources_beside(official)] if official else []
        return [(path, stamp(path)) for path in (*self._paths(), *sources)]

    def _paths(self, bank_files: Sequence[Path] | None = None) -> list[Path]:
        """Every file that is looked for, but the passages of a dataset."""
        folder = self.folder
        optional = (
            folder.queries(),
            folder.passages(),
            folder.qrels(),
            folder.official_leaderboard(),
            folder.recorded(),
            folder.prompt(),
            folder.metric(),
            folder.overrides(),
            folder.judgments() if folder.config.judging.scale else None,
        )
        return [
            *(folder.bank(optional=self._bankless) if bank_files is None else bank_files),
            *(p for p in optional if p is not None),
            *folder.run_files(),
            folder.config_path,
        ]

    def counting(self, hold: Collection[Path]) -> dict[Path, Stamp]:
        """The stamps of what counts of each input file.

        Args:
            hold: files that are being written now: of these it is the earlier content, if there is any.
        """
        stamps = self.stamps()
        for path in hold:
            stamps.pop(path, None)
            earlier = self._files.stamp_of("run", path) if self._files.has("run", path) else None
            if earlier is not None:
                stamps[path] = earlier
        official = self.folder.qrels()
        merged = official and stamp(sources_beside(official))
        if official and merged:
            stamps[sources_beside(official)] = merged
        return stamps

    def read(self, hold: Collection[Path] = (), bank_files: Sequence[Path] | None = None) -> TrackInputs:
        """Reads what changed.

        Args:
            hold: run files that are being written now; their earlier content, if any, still counts.
            bank_files: in place of the track's own.

        Raises:
            ConversionError: the bank cannot be read; without it there is nothing to grade.
            TrackError: there is no bank.
        """
        rejected: list[Rejected] = []
        files = self.folder.bank(optional=self._bankless) if bank_files is None else bank_files
        whole, bank_queries = self._bank(files, rejected)
        texts = dict(bank_queries)
        texts.update(self._optional(self.folder.queries(), "queries", read_queries_file, rejected) or {})
        official = self._optional(self.folder.qrels(), "qrels", read_qrels_file, rejected)
        if self.folder.config.track.dataset is not None:
            texts, official = self._dataset(texts, official, rejected)
        bank, not_asked = asked_bank(
            self.folder, whole, texts, files, self.kinds, with_query=self.with_query, known=self.known
        )
        rejected += not_asked
        ranks = self._optional(self.folder.official_leaderboard(), "ranks", read_ranks_file, rejected)
        dropped = self._dropped.read(bank, texts, hold, rejected)
        human = self._human(self.folder.overrides(), rejected)
        judged = self._human(self.folder.judgments(), rejected) if self.folder.config.judging.scale else ()
        return TrackInputs(
            bank,
            tuple(files),
            texts,
            dropped.runs,
            dropped.files,
            dropped.contents,
            dropped.generated,
            dropped.responses,
            dropped.own_texts,
            dropped.answers,
            official,
            ranks,
            self._own_queries(),
            human,
            judged,
            tuple(sorted(rejected, key=_row_key)),
            dropped.notes,
        )

    def whole_bank(self, files: Sequence[Path]) -> Bank:
        """All items of these files, those of kinds that the grader does not ask about too.

        Raises:
            ConversionError: they cannot be read.
        """
        return self._bank(files, [])[0]

    def _own_queries(self) -> frozenset[str]:
        texts = self._optional(self.folder.queries(), "queries", read_queries_file, []) or {}
        if self.folder.queries() is None and self.folder.config.track.dataset is not None:
            texts = self._dataset({}, (), [])[0]
        return frozenset(texts)

    def query_texts(self) -> dict[str, str]:
        """query_id -> text of every query of the track, whether it has a bank or not.

        Raises:
            ConversionError: the queries cannot be read.
        """
        path, dataset = self.folder.queries(), self.folder.config.track.dataset
        texts: dict[str, str] = {}
        if path is not None:
            texts = read_queries_file(path)
        elif dataset is not None:
            texts = {query.query_id: query.text for query in dataset_queries(dataset)}
        for bank in self.folder.bank(optional=True):
            with contextlib.suppress(ConversionError):
                for query in read_bank_queries(bank):
                    texts.setdefault(*query)
        return texts

    def _bank(self, files: Sequence[Path], rejected: list[Rejected]) -> tuple[Bank, dict[str, str]]:
        items: list[Item] = []
        first: dict[str, str] = {}
        queries: dict[str, str] = {}
        for path in files:
            here, texts, blank = self._files.get("bank", path, read_bank_file)
            shown = self.folder.shown(path)
            for item in here:
                if first.setdefault(item.item_id, shown) != shown:
                    other = first[item.item_id]
                    raise ConversionError(
                        path,
                        None,
                        f"item id '{item.item_id}' stands in {other} too; "
                        "ids must differ over all bank files",
                    )
            items += here
            queries.update(texts)
            rejected += (Rejected(shown, error.line, error.reason) for error in blank)
        if self.folder.config.track.facets:
            items = [item_by_query(item) for item in items]
            # The text of a facet is none of its query.
            queries = {item.query_id: queries[item.query_id] for item in items if item.query_id in queries}
        return Bank.from_items(items), queries

    def _human(self, path: Path, rejected: list[Rejected]) -> tuple[tuple[int, HumanRating], ...]:
        read = self._optional(
            path if path.exists() or path.is_symlink() else None, "overrides", read_overrides_file, rejected
        )
        if read is None:
            return ()
        rows, refused = read
        rejected += (Rejected(self.folder.shown(path), error.line, error.reason) for error in refused)
        return rows

    @property
    def _bankless(self) -> bool:
        return QUERY in self.kinds

    def keep_columns(self) -> None:
        """From now on the columns of large runs are kept beside the store."""
        self._dropped.columns.write = True

    @property
    def whole_answers(self) -> bool:
        """Whether the grader judges whole answers, which come with their texts."""
        return self._dropped.whole_answers

    def _dataset(
        self, texts: dict[str, str], official: tuple[Qrel, ...] | None, rejected: list[Rejected]
    ) -> tuple[dict[str, str], tuple[Qrel, ...] | None]:
        dataset = self.folder.config.track.dataset
        assert dataset is not None
        try:
            if self.folder.queries() is None:
                if self._dataset_queries is None:
                    self._dataset_queries = {query.query_id: query.text for query in dataset_queries(dataset)}
                texts = {**texts, **self._dataset_queries}
            if self.folder.qrels() is None:
                if self._dataset_qrels is None:
                    self._dataset_qrels = tuple(dataset_qrels(dataset))
                official = self._dataset_qrels or None
        except ConversionError as error:
            rejected.append(Rejected(error.path, error.line, error.reason))
        return texts, official

    def _optional(
        self, path: Path | None, kind: str, read: Callable[[Path], T], rejected: list[Rejected]
    ) -> T | None:
        if path is None:
            return None
        dangling = dangling_link(path)
        if dangling:
            rejected.append(Rejected(self.folder.shown(path), None, dangling))
            return None
        try:
            return self._files.get(kind, path, read)
        except ConversionError as error:
            rejected.append(Rejected(self.folder.shown(path), error.line, error.reason))
            return None

    def digests(
        self, hold: Collection[Path] = (), bank_files: Sequence[Path] | None = None
    ) -> dict[str, str]:
        """sha256 (hex) of every input file, by its shown path; computed once until the file changes.

        Of files that are being written it is that of the content that counts, none where none counts yet.
        """
        digests = {}
        for path in self.stamps(bank_files):
            if path in hold and not self._files.has("sha256", path):
                continue
            # A file may be removed at any moment; what is none has no content.
            with contextlib.suppress(OSError, ConversionError):
                digests[self.folder.shown(path)] = self._files.get(
                    "sha256", path, sha256_of, frozen=path in hold
                )
        return dict(sorted(digests.items()))

    def forget_missing(self) -> None:
        """Drops what is cached of files that are gone."""
        self._files.forget_missing()
        self._dropped.forget_missing()


def _row_key(row: Rejected) -> tuple[str, int, str]:
    return row.file, row.line or 0, row.reason
