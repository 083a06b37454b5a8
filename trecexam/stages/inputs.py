"""Reads what a track folder holds, each file once until it changes, and says what it could not take."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import converters
from converters.bank import read_bank, read_bank_queries
from converters.errors import ConversionError
from converters.lines import iter_lines
from converters.records import Item, Passage, Qrel
from converters.run import Run
from trecexam.bank import Bank
from trecexam.errors import TrackError
from trecexam.stages.run_names import name_runs
from trecexam.track import TrackFolder

T = TypeVar("T")


class Stamp(NamedTuple):
    """What tells a changed file from an unchanged one without reading it."""

    size: int
    mtime_ns: int
    inode: int


class Rejected(NamedTuple):
    """An input, or a line of one, that was not taken. `line` is None where the whole file is meant."""

    file: str
    line: int | None
    reason: str

    def __str__(self) -> str:
        where = self.file if self.line is None else f"{self.file}:{self.line}"
        return f"{where}: {self.reason}"


@dataclass(frozen=True)
class Snapshot:
    """All inputs of a track at one moment, but the passages' texts.

    Attributes:
        runs: display name -> run, sorted by name; without queries that the bank does not have.
        run_files: display name -> file.
        run_contents: display name -> a token that changes when the run's content does.
        official: the official judgments, None where there are none.
        official_ranks: run name -> official rank (1 is best), None where there are none.
    """

    bank: Bank
    query_texts: Mapping[str, str]
    runs: Mapping[str, Run]
    run_files: Mapping[str, Path]
    run_contents: Mapping[str, tuple[Path, Stamp | None]]
    official: tuple[Qrel, ...] | None
    official_ranks: Mapping[str, float] | None
    rejected: tuple[Rejected, ...]


def stamp(path: Path) -> Stamp | None:
    """The stamp of a file, or None where there is none (any more)."""
    try:
        status = path.stat()
    except OSError:
        return None
    return Stamp(status.st_size, status.st_mtime_ns, status.st_ino)


class Inputs:
    """The files of one track, cached by stamp."""

    def __init__(self, folder: TrackFolder) -> None:
        self.folder = folder
        self._cache: dict[tuple[str, Path], tuple[Stamp | None, Any]] = {}
        self._dataset_queries: dict[str, str] | None = None
        self._dataset_qrels: tuple[Qrel, ...] | None = None
        self._texts: dict[str, str] = {}
        self._sought: set[str] = set()
        self._texts_stamp: object = None
        self._texts_rejected: tuple[Rejected, ...] = ()

    def stamps(self) -> dict[Path, Stamp]:
        """The stamp of every input file that is there now."""
        folder = self.folder
        optional = (
            folder.queries(),
            folder.passages(),
            folder.qrels(),
            folder.official_leaderboard(),
            folder.recorded(),
        )
        paths = [
            *folder.bank(),
            *(p for p in optional if p is not None),
            *folder.run_files(),
            folder.config_path,
        ]
        return {path: found for path in paths if (found := stamp(path)) is not None}

    def read(self, hold: Collection[Path] = ()) -> Snapshot:
        """Reads what changed.

        Args:
            hold: run files that are being written now; their earlier content, if any, still counts.

        Raises:
            ConversionError: the bank cannot be read; without it there is nothing to grade.
            TrackError: there is no bank.
        """
        rejected: list[Rejected] = []
        bank, bank_queries = self._bank(rejected)
        texts = dict(bank_queries)
        texts.update(self._optional(self.folder.queries(), "queries", _read_queries, rejected) or {})
        official = self._optional(self.folder.qrels(), "qrels", _read_qrels, rejected)
        if self.folder.config.track.dataset is not None:
            texts, official = self._dataset(texts, official, rejected)
        ranks = self._optional(self.folder.official_leaderboard(), "ranks", _read_ranks, rejected)
        runs, files = self._runs(bank, hold, rejected)
        contents = {name: (path, self._cache["run", path][0]) for name, path in files.items()}
        return Snapshot(
            bank, texts, runs, files, contents, official, ranks, tuple(sorted(rejected, key=_row_key))
        )

    def texts(self, doc_ids: Iterable[str]) -> tuple[Mapping[str, str], tuple[Rejected, ...]]:
        """The texts of these documents, as far as the track has them, and the passage lines not taken.

        Raises:
            TrackError: the track has no passages at all.
        """
        path = self.folder.passages()
        recorded = self.folder.recorded()
        dataset = self.folder.config.track.dataset
        source: Path | None = path
        if path is None and dataset is None:
            if recorded is None:
                raise TrackError(
                    'no passages: put passages.jsonl here, one {"docid", "text"} a line, '
                    "or set `dataset` in [track]",
                    path=self.folder.root,
                )
            source = recorded
        current = dataset if source is None else (source, stamp(source))
        if current != self._texts_stamp:
            self._texts, self._sought, self._texts_stamp = {}, set(), current
        wanted = set(doc_ids) - self._sought
        if wanted:
            if source is None:
                assert dataset is not None
                self._texts.update(_dataset_texts(dataset, wanted))
            else:
                found, self._texts_rejected = _passages(
                    source, wanted | self._texts.keys(), self.folder.shown(source)
                )
                self._texts.update(found)
            self._sought |= wanted
        return self._texts, self._texts_rejected

    def _bank(self, rejected: list[Rejected]) -> tuple[Bank, dict[str, str]]:
        items: list[Item] = []
        first: dict[str, str] = {}
        queries: dict[str, str] = {}
        for path in self.folder.bank():
            here, texts, blank = self._cached("bank", path, _read_bank)
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
        return Bank.from_items(items), queries

    def _runs(
        self, bank: Bank, hold: Collection[Path], rejected: list[Rejected]
    ) -> tuple[dict[str, Run], dict[str, Path]]:
        taken: dict[Path, Run] = {}
        for path in self.folder.run_files():
            if path in hold and ("run", path) not in self._cache:
                continue
            try:
                run = self._cached("run", path, _read_run, frozen=path in hold)
            except ConversionError as error:
                rejected.append(Rejected(self.folder.shown(path), error.line, error.reason))
                continue
            unknown = [query_id for query_id in run.query_ids if query_id not in bank.items]
            if unknown:
                line = self._cached("line " + unknown[0], path, partial(_first_line, query_id=unknown[0]))
                shown = ", ".join(f"'{query_id}'" for query_id in unknown[:5]) + (
                    ", ..." if len(unknown) > 5 else ""
                )
                some = f"{len(unknown)} of its {len(run.query_ids)} queries"
                if len(unknown) == len(run.query_ids):
                    rejected.append(
                        Rejected(
                            self.folder.shown(path), line, f"none of its queries is in the bank: {shown}"
                        )
                    )
                    continue
                rejected.append(
                    Rejected(
                        self.folder.shown(path),
                        line,
                        f"{some} are not in the bank, and were left out: {shown}",
                    )
                )
            taken[path] = run
        names = name_runs({path: run.name for path, run in taken.items()}, self.folder.runs)
        files = {names[path]: path for path in sorted(taken, key=names.__getitem__)}
        return {name: taken[path].renamed(name) for name, path in files.items()}, files

    def _dataset(
        self, texts: dict[str, str], official: tuple[Qrel, ...] | None, rejected: list[Rejected]
    ) -> tuple[dict[str, str], tuple[Qrel, ...] | None]:
        from converters.ir_dataset import dataset_qrels, dataset_queries

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
        try:
            return self._cached(kind, path, read)
        except ConversionError as error:
            rejected.append(Rejected(self.folder.shown(path), error.line, error.reason))
            return None

    def _cached(self, kind: str, path: Path, read: Callable[[Path], T], *, frozen: bool = False) -> T:
        """What `read` made of the file, or the error it raised, until the file's stamp changes."""
        now = stamp(path)
        known = self._cache.get((kind, path))
        if known is None or (known[0] != now and not frozen):
            try:
                value: Any = read(path)
            except ConversionError as error:
                value = error
            known = self._cache[(kind, path)] = (now, value)
        if isinstance(known[1], ConversionError):
            raise known[1]
        result: T = known[1]
        return result

    def digests(self, hold: Collection[Path] = ()) -> dict[str, str]:
        """sha256 (hex) of every input file, by its shown path; computed once until the file changes.

        Of files that are being written it is that of the content that counts, none where none counts yet.
        """
        found = {}
        for path in self.stamps():
            if path in hold and ("sha256", path) not in self._cache:
                continue
            # A file may be removed at any moment.
            with contextlib.suppress(OSError):
                found[self.folder.shown(path)] = self._cached("sha256", path, _sha256, frozen=path in hold)
        return dict(sorted(found.items()))

    def forget_missing(self) -> None:
        """Drops what is cached of files that are gone."""
        for key in [key for key in self._cache if not key[1].exists()]:
            del self._cache[key]


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _read_bank(path: Path) -> tuple[tuple[Item, ...], dict[str, str], list[ConversionError]]:
    blank: list[ConversionError] = []
    items = tuple(read_bank(path, blank.append))
    return items, {query.query_id: query.text for query in read_bank_queries(path)}, blank


def _read_queries(path: Path) -> dict[str, str]:
    return {query.query_id: query.text for query in converters.read(path, "queries")}


def _read_ranks(path: Path) -> dict[str, float]:
    return {entry.run: entry.rank for entry in converters.read(path, "leaderboard")}


def _read_qrels(path: Path) -> tuple[Qrel, ...]:
    return tuple(converters.read(path, "qrels"))


def _sniffed(path: Path) -> str | None:
    """The format, or None where it looks like none: then reading it as what it should be names the line."""
    try:
        return converters.sniff(path)
    except ConversionError:
        return None


def _read_run(path: Path) -> Run:
    kind = _sniffed(path) or "run"
    if kind != "run":
        raise ConversionError(
            path,
            1,
            f"not a run: this looks like the format '{kind}'; "
            "a run has lines `query_id Q0 doc_id rank score tag`",
        )
    run: Run = converters.read(path, "run")
    return run


def _first_line(path: Path, query_id: str) -> int | None:
    first = query_id.encode()
    return next((number for number, line in iter_lines(path) if line.split(None, 1)[:1] == [first]), None)


def _passages(path: Path, wanted: Collection[str], shown: str) -> tuple[dict[str, str], tuple[Rejected, ...]]:
    rejected: list[Rejected] = []

    def refuse(error: ConversionError) -> None:
        rejected.append(Rejected(shown, error.line, error.reason))

    texts: dict[str, str] = {}
    try:
        for passage in _read_passages(path, refuse):
            if passage.doc_id in wanted and texts.setdefault(passage.doc_id, passage.text) != passage.text:
                rejected.append(
                    Rejected(
                        shown,
                        None,
                        f"passage '{passage.doc_id}' stands twice with different texts; the first one counts",
                    )
                )
    except ConversionError as error:
        # A truncated archive: what came before the end counts, the rest is named.
        refuse(error)
    return texts, tuple(rejected)


def _read_passages(path: Path, on_error: Callable[[ConversionError], None]) -> Iterator[Passage]:
    from converters.passages import read_passages
    from converters.rubric_jsonl import read_graded_passages

    if _sniffed(path) == "rubric":
        return iter(read_graded_passages(path))
    return iter(read_passages(path, on_error))


def _dataset_texts(dataset: str, wanted: Collection[str]) -> dict[str, str]:
    from converters.ir_dataset import dataset_passages

    return {doc_id: passage.text for doc_id, passage in dataset_passages(dataset, wanted).items()}


def _row_key(row: Rejected) -> tuple[str, int, str]:
    return row.file, row.line or 0, row.reason


def fingerprint(stamps: Mapping[Path, Stamp]) -> list[list[Any]]:
    """Stamps as sorted, JSON-ready rows: equal exactly when no input changed."""
    return sorted([os.fspath(path), *value] for path, value in stamps.items())
