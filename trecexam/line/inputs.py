"""Reads what a track folder holds, each file once until it changes, and says what it could not take."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from converters.bank import read_bank_queries
from converters.errors import ConversionError
from converters.gold import KIND as GOLD
from converters.ir_dataset import dataset_queries
from converters.records import HumanRating, Item, Qrel
from trecexam.bank import Bank
from trecexam.bank.model import QUERY, asked, item_by_query
from trecexam.errors import LackingError, TrackError
from trecexam.files.stamps import Rejected, Stamp, dangling_link, stamp
from trecexam.folder import TrackFolder
from trecexam.line.dropped_files import judges_answers
from trecexam.line.dropped_runs import DroppedRuns
from trecexam.line.input_files import (
    read_bank_file,
    read_overrides_file,
    read_qrels_file,
    read_queries_file,
    sha256_of,
)
from trecexam.line.kind import Asked, ItemSources, Kind
from trecexam.line.official_leaderboard import read_leaderboard_file
from trecexam.line.shared_inputs import SharedInputs
from trecexam.line.sources import provenance_beside, sources_beside
from trecexam.line.track_inputs import TrackInputs
from trecexam.tables.text import shorten_list

T = TypeVar("T")


class InputReader:
    """The files of one track, cached by stamp."""

    def __init__(
        self,
        folder: TrackFolder,
        kinds: Collection[str] = ("question", "nugget"),
        *,
        with_query: bool = False,
        known_query_ids: Collection[str] | None = None,
        shared: SharedInputs | None = None,
        kind: Kind | None = None,
    ) -> None:
        """Inputs of a track whose grader asks about items of these kinds; see `trecexam.bank.model`.

        Args:
            kind: what is graded; it makes the items where these are not in the bank.
            shared: what others read of the same track.
        """
        self.folder = folder
        self.kinds = kinds
        self.with_query = with_query
        self.known = known_query_ids
        self._items = None if kind is None else kind.items
        self._queries = None if kind is None else kind.queries
        self._shared = shared or SharedInputs(folder)
        self._files = self._shared.files
        whole_answers = judges_answers(kinds)
        self._dropped = DroppedRuns(folder, self._files, self._shared.columns, whole_answers=whole_answers)

    def stamps(self, bank_files: Sequence[Path] | None = None) -> dict[Path, Stamp]:
        """The stamp of every input file that is there now; `bank_files` are in place of the track's own."""
        paths = self._paths(bank_files)
        return {path: current for path in paths if (current := stamp(path)) is not None}

    def state(self) -> list[tuple[Path, Stamp | None]]:
        """Equal at two moments exactly when reading gives the same: links to what is not there count, too."""
        official = self.folder.qrels()
        sources = [sources_beside(official), provenance_beside(official)] if official else []
        return [(path, stamp(path)) for path in (*self._paths(), *sources)]

    def _paths(self, bank_files: Sequence[Path] | None = None) -> list[Path]:
        """Every file that is looked for, but the passages of a dataset."""
        folder = self.folder
        other_paths = (
            folder.recorded(),
            folder.prompt(),
            folder.metric(),
            folder.overrides(),
            folder.judgments() if self._has_judgments else None,
        )
        return [*self._read_paths(bank_files), *(p for p in other_paths if p is not None), folder.config_path]

    @property
    def _has_judgments(self) -> bool:
        """Whether people may judge whole passages on another scale than the grader's."""
        track = self.folder.config.track
        return bool(self.folder.config.judging.scale or self.folder.qrels() or track.dataset)

    def _read_paths(self, bank_files: Sequence[Path] | None = None) -> list[Path]:
        """Every file that is read here, but those of people."""
        folder = self.folder
        optional = (
            folder.queries(),
            folder.passages(),
            folder.qrels(),
            folder.official_leaderboard(),
        )
        return [
            *(folder.bank(optional=True) if bank_files is None else bank_files),
            *(p for p in optional if p is not None),
            *folder.run_files(),
        ]

    def _reading(
        self, hold: Collection[Path], bank_files: Sequence[Path] | None
    ) -> tuple[Hashable, Hashable]:
        """How files are read, and their state: `_read` gives the same exactly when both are equal."""
        folder, paths = self.folder, self._read_paths(bank_files)
        recording_key = None if self.known is None else (folder.recorded(), frozenset(self.known))
        settings = folder.config.track.model_dump_json(exclude={"depth", "pool_judged", "min_text"})
        return (
            (
                *(frozenset(self.kinds), self.with_query, recording_key, folder.recorded() is None, settings),
                self._items and folder.config.grader.citations,
            ),
            tuple((path, stamp(path), path in hold and self._dropped.stamp_of(path)) for path in paths),
        )

    def check_bank(self) -> None:
        """Refuses a track that lacks the bank that its grader needs.

        Raises:
            TrackError: there is none, or a named one is missing.
        """
        if not self._bankless:
            self.folder.bank()

    def counting(self, hold: Collection[Path]) -> dict[Path, Stamp]:
        """The stamps of what counts of each input file.

        Args:
            hold: files that are being written now: of these it is the earlier content, if there is any.
        """
        stamps = self.stamps()
        for path in hold:
            stamps.pop(path, None)
            earlier = self._dropped.stamp_of(path)
            if earlier is not None:
                stamps[path] = earlier
        official = self.folder.qrels()
        for beside in (sources_beside(official), provenance_beside(official)) if official else ():
            if current := stamp(beside):
                stamps[beside] = current
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
        if not self._shared.several:
            inputs = self._read(hold, bank_files)
        else:
            how, files = self._reading(hold, bank_files)
            known = self._shared.inputs
            if how not in known or known[how][0] != files:
                # Before others are read, so that no two are in memory.
                known.pop(how, None)
                known[how] = files, self._read(hold, bank_files)
            inputs = known[how][1]
        rejected: list[Rejected] = []
        human = self._human(self.folder.overrides(), rejected)
        judged = self._human(self.folder.judgments(), rejected) if self._has_judgments else ()
        if not (human or judged or rejected):
            return inputs
        rejected = sorted((*inputs.rejected, *rejected), key=_row_key)
        return replace(inputs, human=human, judged=judged, rejected=tuple(rejected))

    def _read(self, hold: Collection[Path], bank_files: Sequence[Path] | None) -> TrackInputs:
        rejected: list[Rejected] = []
        files = self.folder.bank(optional=True) if bank_files is None else bank_files
        whole, bank_queries = self._bank(files, rejected)
        if self._bankless:
            whole = self._of_the_track(whole)
        texts = dict(bank_queries)
        texts.update(self._optional(self.folder.queries(), "queries", read_queries_file, rejected) or {})
        official = self._optional(self.folder.qrels(), "qrels", read_qrels_file, rejected)
        if self.folder.config.track.dataset is not None:
            texts, official = self._dataset(texts, official, rejected)
        if not files and not self._bankless:
            # Runs, texts and judgments can be worked with all the same.
            bank = Bank(dict.fromkeys(sorted({*texts, *(row.query_id for row in official or ())}), ()))
        elif self._queries is None:
            bank = self._asked(whole, texts, files, rejected)
        else:
            bank = Bank(dict.fromkeys(self._known_queries(whole, texts), ()), whole.retired)
        board = self._optional(self.folder.official_leaderboard(), "ranks", read_leaderboard_file, rejected)
        dropped = self._dropped.read(bank, texts, hold, rejected)
        asked_about = Asked(bank)
        if self._items is not None:
            sources = ItemSources(whole, texts, dropped.responses, self.folder.config)
            asked_about = self._items(sources)
        return TrackInputs(
            runs=dropped.runs,
            run_files=dropped.run_files,
            run_contents=dropped.run_contents,
            own_texts=dropped.own_texts,
            documents=dropped.documents,
            answers=dropped.answers,
            generated=dropped.generated,
            responses=dropped.responses,
            notes=dropped.notes,
            bank_files=tuple(files),
            query_texts=texts,
            official=official,
            official_leaderboard=board,
            own_queries=self._own_queries(),
            rejected=tuple(sorted(rejected, key=_row_key)),
            pools={},
            asked=asked_about,
            human=(),
            judged=(),
        )

    def _of_the_track(self, bank: Bank) -> Bank:
        """The bank without queries that the track's file of queries does not have, where there is one.

        Of a grader without own items: else its means would be over queries that nobody was asked.
        """
        own_queries = self._own_queries()
        items = {query_id: of_query for query_id, of_query in bank.items.items() if query_id in own_queries}
        return replace(bank, items=items) if items else bank

    def _known_queries(self, bank: Bank, texts: Mapping[str, str]) -> tuple[str, ...]:
        """The queries that means are over, where the items are not those of the bank.

        Raises:
            TrackError: there are none.
        """
        assert self._queries is not None
        query_ids = self._queries(bank, texts)
        if not query_ids:
            raise TrackError(
                "no queries: put queries.tsv here, `query_id<TAB>text` lines", path=self.folder.root
            )
        return query_ids

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
            file_items, texts, blank = self._files.get("bank", path, read_bank_file)
            file_name = self.folder.shown(path)
            for item in file_items:
                if first.setdefault(item.item_id, file_name) != file_name:
                    other = first[item.item_id]
                    raise ConversionError(
                        path,
                        None,
                        f"item id '{item.item_id}' is in {other} too; ids must differ over all bank files",
                    )
            items += file_items
            queries.update(texts)
            rejected += (Rejected(file_name, error.line, error.reason, error.lost) for error in blank)
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
        file_name = self.folder.shown(path)
        rejected += (Rejected(file_name, error.line, error.reason, error.lost) for error in refused)
        return rows

    @property
    def _bankless(self) -> bool:
        return QUERY in self.kinds or self._queries is not None

    @property
    def whole_answers(self) -> bool:
        """Whether the grader judges whole answers, which come with their texts."""
        return self._dropped.whole_answers

    def _asked(
        self, bank: Bank, texts: Mapping[str, str], files: Sequence[Path], rejected: list[Rejected]
    ) -> Bank:
        """What of the bank is graded.

        Raises:
            TrackError: nothing is.
        """
        part = asked(bank, self.kinds, texts, with_query=self.with_query, known_query_ids=self.known)
        if part.query_ids:
            needs_text = self.known is None and (self._bankless or self.with_query)
            queries_without_text = [
                query_id for query_id in bank.query_ids if needs_text and query_id not in part.items
            ]
            rejected += (
                Rejected(self.folder.shown(self.folder.root), None, f"query '{query_id}' has no text", "cell")
                for query_id in queries_without_text
            )
            unknown = [] if self.known is None else [q for q in bank.query_ids if q not in part.items]
            if unknown:
                reason = (
                    f"no grades of {len(unknown):,} of the bank's {len(bank.query_ids):,} queries, which "
                )
                reason += f"are not evaluated: {shorten_list(unknown)}"
                recorded = self.folder.recorded() or self.folder.config_path
                rejected.append(Rejected(self.folder.shown(recorded), None, reason, "cell"))
            where = self.folder.shown(files[0]) if len(files) == 1 else "the bank"
            rejected += (
                Rejected(
                    where, None, f"all items of query '{query_id}' are retired: it is not evaluated", "cell"
                )
                for query_id in part.retired
                if query_id not in part.items and query_id not in queries_without_text
            )
            return part
        if part.retired and not asked(bank, self.kinds, texts).query_ids:
            raise TrackError(
                'every item that could be asked about is retired: take "retired" off some', path=files[0]
            )
        if self.known is not None:
            raise TrackError(
                "the recording has grades of none of the bank's queries, but of "
                f"{shorten_list(list(self.known))}",
                path=self.folder.root,
            )
        if self._bankless:
            raise TrackError(
                "this prompt asks about the queries, and there are none: put queries.tsv here",
                path=self.folder.root,
            )
        if not bank.query_ids:
            return part
        if self.with_query and asked(bank, self.kinds, texts).query_ids:
            raise TrackError(
                "this prompt names {query}, but no query of the bank has a text: put queries.tsv here",
                path=self.folder.root,
            )
        if GOLD in self.kinds:
            raise TrackError(
                'no gold outputs in it: a line is {"query_id": ..., "outputs": [...]}, or KILT\'s',
                path=files[0],
            )
        if self.whole_answers:
            raise TrackError(
                "the bank has no questions with their knowledge blocks: `trecexam ragval questions` writes "
                "them",
                path=self.folder.root,
            )
        if self.folder.write_bank is not None:
            raise self.folder.no_bank_yet()
        raise LackingError(
            f"this prompt asks about {' and '.join(f'{kind}s' for kind in sorted(self.kinds))}, but the "
            f"bank has none: change `prompt` in [grader], or the bank",
            path=self.folder.config_path,
        )

    def _dataset(
        self, texts: dict[str, str], official: tuple[Qrel, ...] | None, rejected: list[Rejected]
    ) -> tuple[dict[str, str], tuple[Qrel, ...] | None]:
        dataset = self.folder.config.track.dataset
        assert dataset is not None
        try:
            if self.folder.queries() is None:
                queries = self._shared.dataset_queries(dataset)
                texts = {**texts, **{query.query_id: query.text for query in queries}}
            if self.folder.qrels() is None:
                official = self._shared.dataset_qrels(dataset) or None
        except ConversionError as error:
            rejected.append(Rejected(error.path, error.line, error.reason, "file"))
        return texts, official

    def _optional(
        self, path: Path | None, kind: str, read: Callable[[Path], T], rejected: list[Rejected]
    ) -> T | None:
        if path is None:
            return None
        dangling = dangling_link(path)
        if dangling:
            rejected.append(Rejected(self.folder.shown(path), None, dangling, "file"))
            return None
        try:
            return self._files.get(kind, path, read)
        except ConversionError as error:
            rejected.append(Rejected(self.folder.shown(path), error.line, error.reason, "file"))
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
