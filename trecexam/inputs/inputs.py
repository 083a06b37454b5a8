"""Reads the files of a track folder: accepted inputs, and why the others were rejected."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal, TypeVar

import converters
from converters.bank import read_bank, read_bank_queries
from converters.errors import ConversionError, Lost
from converters.ir_dataset import dataset_qrels, dataset_queries
from converters.overrides import read_overrides
from converters.records import HumanRating, Item, Qrel
from converters.run import Run
from trecexam.bank import Bank
from trecexam.bank.model import QUERY, asked, item_by_query
from trecexam.errors import LackingError, TrackError, quoted
from trecexam.files.cache import FileCache
from trecexam.files.stamps import Rejected, Stamp, dangling_link, sha256_of, stamp
from trecexam.folder import TrackFolder
from trecexam.inputs.dropped_files import judges_answers
from trecexam.inputs.dropped_runs import DroppedRuns, TakenRuns
from trecexam.inputs.kind import Asked, ItemSources, Kind
from trecexam.inputs.official import OfficialLeaderboard, judged_labels, read_leaderboard_file
from trecexam.inputs.run_columns import RunColumns
from trecexam.inputs.sources import provenance_beside, sources_beside
from trecexam.inputs.track_graders import each_once, grader_names, usable_folders
from trecexam.results.text import plural, shorten_list

T = TypeVar("T")


@dataclass(frozen=True)
class Needs:
    """The inputs that a grader needs.

    Attributes:
        kinds: kinds of items that the grader grades; see `trecexam.bank.model`.
        query_text: a query without a text has no items.
        known_queries: queries of a recording, which alone have items; None for all.
        kind: makes the items where these are not in the bank; None for items of the bank.
        runs: runs that are graded and ranked.
    """

    kinds: frozenset[str] = frozenset(("question", "nugget"))
    query_text: bool = False
    known_queries: Collection[str] | None = None
    kind: Kind | None = None
    runs: Literal["all", "responses", "ranked"] = "all"

    @property
    def bank(self) -> bool:
        """True where the grader has nothing to grade without a bank."""
        return QUERY not in self.kinds and (self.kind is None or self.kind.queries is None)

    @property
    def whole_answers(self) -> bool:
        """True for a grader of whole answers, which come with their texts."""
        return judges_answers(self.kinds)


@dataclass(frozen=True, eq=False)
class TrackInputs:
    """The inputs of a track at one moment, but texts of passages and people's ratings.

    Graders with the same needs share one.

    Attributes:
        dropped: runs and whole answers that are graded and ranked.
        left_out_runs: the number of runs that the settings `unit` and `runs` leave out.
        bank_files: files of the bank.
        query_texts: query_id -> text, as far as it is known.
        own_queries: queries of the track's file or dataset, as far as it can be read.
        official: official judgments, None where there are none.
        official_leaderboard: None where there is none.
        asked: the items to grade.
        rejected: inputs that were rejected, sorted.
        pools: pools that were made of these inputs.
    """

    dropped: TakenRuns
    left_out_runs: int
    bank_files: tuple[Path, ...]
    query_texts: Mapping[str, str]
    own_queries: frozenset[str]
    official: tuple[Qrel, ...] | None
    official_leaderboard: OfficialLeaderboard | None
    asked: Asked
    rejected: tuple[Rejected, ...]
    pools: dict[Hashable, Any] = field(default_factory=dict, init=False, repr=False)

    @property
    def runs(self) -> Mapping[str, Run]:
        """Runs by display name, sorted by name."""
        return self.dropped.runs

    @property
    def bank(self) -> Bank:
        """The items to grade."""
        return self.asked.bank

    @property
    def official_ranks(self) -> Mapping[str, float] | None:
        """run -> its official rank, 1 is best; None without an official leaderboard."""
        return None if self.official_leaderboard is None else self.official_leaderboard.ranks

    @cached_property
    def judged(self) -> Mapping[str, Mapping[str, int]]:
        """query_id -> doc_id -> official judgment; without queries that have none."""
        return judged_labels(self.official or ())

    @property
    def judged_queries(self) -> Collection[str]:
        """Queries with official judgments."""
        return self.judged.keys()


def shared_paths(folder: TrackFolder, bank_files: Sequence[Path] | None = None) -> list[Path]:
    """List the input files that are the same for all graders."""
    optional = (folder.queries(), folder.passages(), folder.qrels(), folder.official_leaderboard())
    return [
        *(folder.bank(optional=True) if bank_files is None else bank_files),
        *filter(None, optional),
        *folder.run_files(),
    ]


def input_paths(folder: TrackFolder, bank_files: Sequence[Path] | None = None) -> list[Path]:
    """List all input files, and trecexam.toml."""
    judgments = folder.judgments() if _has_judgments(folder) else None
    paths = (folder.recorded(), folder.prompt(), folder.metric(), folder.overrides(), judgments)
    return [*shared_paths(folder, bank_files), *filter(None, paths), folder.config_path]


def input_stamps(
    folder: TrackFolder,
    bank_files: Sequence[Path] | None = None,
    held: Mapping[Path, Stamp | None] | None = None,
) -> dict[Path, Stamp]:
    """Return the stamp of every input file, and of files on the source of judgments.

    Args:
        bank_files: in place of the track's own.
        held: files that are being written now, with the stamp of the content that still counts.
    """
    official, held = folder.qrels(), held or {}
    beside = [sources_beside(official), provenance_beside(official)] if official else []
    paths = [*input_paths(folder, bank_files), *beside]
    stamps = {path: held[path] if path in held else stamp(path) for path in paths}
    return {path: current for path, current in stamps.items() if current is not None}


def _has_judgments(folder: TrackFolder) -> bool:
    """Return True where people may judge whole passages on another scale than the grader's."""
    return bool(folder.config.judging.scale or folder.qrels() or folder.config.track.dataset)


def input_digests(
    folder: TrackFolder, files: FileCache, hold: Collection[Path], bank_files: Sequence[Path] | None
) -> dict[str, str]:
    """Return the sha256 (hex) of every input file by its displayed path.

    Of held files it is the digest of the content that still counts.
    """
    digests = {}
    for path in input_paths(folder, bank_files):
        # A file may be removed at any moment.
        with contextlib.suppress(OSError, ConversionError):
            if path not in hold or files.has("sha256", path):
                digests[folder.shown(path)] = files.get("sha256", path, sha256_of, frozen=path in hold)
    return dict(sorted(digests.items()))


def read_inputs(
    folder: TrackFolder,
    needs: Needs,
    hold: Collection[Path] = (),
    bank_files: Sequence[Path] | None = None,
    *,
    files: FileCache | None = None,
    dropped: DroppedRuns | None = None,
) -> TrackInputs:
    """Read all inputs but texts of passages and people's ratings.

    Args:
        hold: run files that are being written now; their earlier content, if any, still counts.
        bank_files: in place of the track's own.
        files: files that were read before.
        dropped: the reader of the drop folder.

    Raises:
        ConversionError: the bank cannot be read.
        TrackError: there is nothing to grade.
    """
    files = files or FileCache()
    columns = RunColumns(folder.shared_state / "runs", write=False)
    dropped = dropped or DroppedRuns(folder, files, columns, whole_answers=needs.whole_answers)
    paths = folder.bank(optional=True) if bank_files is None else bank_files
    whole, texts, rejected = _read_bank(folder, files, paths)
    optional = partial(_read_optional, folder, files, rejected)
    queries: dict[str, str] = optional(folder.queries(), "queries", _read_queries) or {}
    official: tuple[Qrel, ...] | None = optional(
        folder.qrels(), "qrels", lambda path: tuple(converters.read(path, "qrels"))
    )
    if dataset := folder.config.track.dataset:
        try:
            if folder.queries() is None:
                queries = _read_dataset(folder, files, "queries", lambda: _texts_of(dataset))
            if folder.qrels() is None:
                official = (
                    _read_dataset(folder, files, "qrels", lambda: tuple(dataset_qrels(dataset))) or None
                )
        except ConversionError as error:
            rejected.append(Rejected(error.path, error.line, error.reason, "file"))
    texts |= queries
    if not needs.bank:
        # Otherwise means would be over queries of a bank that this grader is not asked about.
        items = {query_id: of for query_id, of in whole.items.items() if query_id in queries}
        whole = replace(whole, items=items) if items else whole
    bank, reasons = _graded_bank(folder, needs, whole, texts, paths, official)
    rejected += reasons
    board = optional(folder.official_leaderboard(), "ranks", read_leaderboard_file)
    taken = dropped.read(bank, texts, hold, rejected)
    asked_about = Asked(bank)
    if needs.kind is not None and needs.kind.items is not None:
        asked_about = needs.kind.items(ItemSources(whole, texts, taken.responses, folder.config))
    n_runs = len(taken.runs)
    if needs.runs != "all":
        names = [name for name in taken.runs if (name in taken.generated) == (needs.runs == "responses")]
        taken = replace(
            taken,
            runs={name: taken.runs[name] for name in names},
            run_files={name: taken.run_files[name] for name in names},
            run_contents={name: taken.run_contents[name] for name in names},
        )
    return TrackInputs(
        dropped=taken,
        left_out_runs=n_runs - len(taken.runs),
        bank_files=tuple(paths),
        query_texts=texts,
        own_queries=frozenset(queries),
        official=official,
        official_leaderboard=board,
        asked=asked_about,
        rejected=tuple(sorted(rejected, key=rejected_order)),
    )


def read_people(
    folder: TrackFolder, files: FileCache
) -> tuple[tuple[tuple[int, HumanRating], ...], tuple[tuple[int, HumanRating], ...], list[Rejected]]:
    """Read people's ratings in the grader's place, and their judgments of whole passages.

    Returns:
        (line, rating) of both files, and the rejected lines. Whether a rating counts is decided later.
    """
    rows, rejected = [], list[Rejected]()
    for path in (folder.overrides(), folder.judgments() if _has_judgments(folder) else None):
        there = path if path is not None and (path.exists() or path.is_symlink()) else None
        value = _read_optional(folder, files, rejected, there, "overrides", read_overrides_file)
        accepted, refused = value or ((), [])
        rows.append(accepted)
        rejected += _refused(folder, there, refused)
    return rows[0], rows[1], rejected


def _read_optional(
    folder: TrackFolder,
    files: FileCache,
    rejected: list[Rejected],
    path: Path | None,
    kind: str,
    read: Callable[[Path], T],
) -> T | None:
    """Return the value of a file that a track need not have; else None, and the reason in `rejected`."""
    try:
        if path is not None and (dangling := dangling_link(path)):
            raise ConversionError(path, None, dangling)
        return None if path is None else files.get(kind, path, read)
    except ConversionError as error:
        rejected.append(Rejected(folder.shown(path or folder.root), error.line, error.reason, "file"))
    return None


def whole_bank(folder: TrackFolder, paths: Sequence[Path]) -> Bank:
    """Read all items of these files, whatever a grader asks about."""
    return _read_bank(folder, FileCache(), paths)[0]


def read_bank_file(path: Path) -> tuple[tuple[Item, ...], dict[str, str], list[ConversionError]]:
    """Read a bank file: items, texts of queries, and lines that are no items."""
    blank: list[ConversionError] = []
    try:
        items = tuple(read_bank(path, blank.append))
    except ConversionError as error:
        if error.line is None:
            raise
        # A track without a folder links its files.
        file = path.parent / path.readlink() if path.is_symlink() else path
        mend = f"mend the line; `trecexam bank check {quoted(file)}` names all such lines"
        raise ConversionError(path, error.line, f"{error.reason}; {mend}") from None
    return items, {query.query_id: query.text for query in read_bank_queries(path)}, blank


def read_overrides_file(path: Path) -> tuple[tuple[tuple[int, HumanRating], ...], list[ConversionError]]:
    """Read (line, rating) of each rating, and the errors of other lines."""
    refused: list[ConversionError] = []
    return tuple(read_overrides(path, refused.append)), refused


def query_texts(folder: TrackFolder) -> dict[str, str]:
    """Read query_id -> text of every query of the track, whether it has items or not."""
    path, dataset = folder.queries(), folder.config.track.dataset
    texts = _read_queries(path) if path else _texts_of(dataset) if dataset else {}
    for bank in folder.bank(optional=True):
        with contextlib.suppress(ConversionError):
            for query in read_bank_queries(bank):
                texts.setdefault(*query)
    return texts


def _read_dataset(folder: TrackFolder, files: FileCache, kind: str, read: Callable[[], T]) -> T:
    """Read a part of the dataset once; where that fails, the next call tries again."""
    try:
        return files.get(f"dataset {kind}", folder.config_path, lambda _: read())
    except ConversionError:
        files.forget(f"dataset {kind}")
        raise


def _texts_of(dataset: str) -> dict[str, str]:
    return {query.query_id: query.text for query in dataset_queries(dataset)}


def _read_queries(path: Path) -> dict[str, str]:
    return {query.query_id: query.text for query in converters.read(path, "queries")}


def _read_bank(
    folder: TrackFolder, files: FileCache, paths: Sequence[Path]
) -> tuple[Bank, dict[str, str], list[Rejected]]:
    """Read the bank, texts of its queries, and lines that are no items, or raise a ConversionError."""
    items: list[Item] = []
    first: dict[str, str] = {}
    queries: dict[str, str] = {}
    rejected: list[Rejected] = []
    for path in paths:
        file_items, texts, blank = files.get("bank", path, read_bank_file)
        file_name = folder.shown(path)
        for item in file_items:
            if (other := first.setdefault(item.item_id, file_name)) != file_name:
                reason = f"item id '{item.item_id}' is in {other} too; ids must differ over all bank files"
                raise ConversionError(path, None, reason)
        items += file_items
        queries.update(texts)
        rejected += _refused(folder, path, blank)
    if folder.config.track.facets:
        items = [item_by_query(item) for item in items]
        # The text of a facet is none of its query.
        queries = {item.query_id: queries[item.query_id] for item in items if item.query_id in queries}
    return Bank.from_items(items), queries, rejected


def _graded_bank(
    folder: TrackFolder,
    needs: Needs,
    bank: Bank,
    texts: Mapping[str, str],
    files: Sequence[Path],
    official: Sequence[Qrel] | None,
) -> tuple[Bank, list[Rejected]]:
    """Return the graded part of the bank, and queries not evaluated; where none is, raise a TrackError."""
    if needs.bank and not files:
        # Runs, texts and judgments can be worked with all the same.
        return Bank(dict.fromkeys(sorted({*texts, *(row.query_id for row in official or ())}), ())), []
    if needs.kind is not None and needs.kind.queries is not None:
        query_ids = needs.kind.queries(bank, texts)
        if not query_ids:
            raise _no_query_texts(folder, "no queries")
        return Bank(dict.fromkeys(query_ids, ()), bank.retired), []
    known = needs.known_queries
    graded = asked(bank, needs.kinds, texts, with_query=needs.query_text, known_query_ids=known)
    if not graded.query_ids:
        if bank.query_ids or graded.retired or not needs.bank or known is not None:
            raise _nothing_graded(folder, needs, bank, texts, graded, files)
        return graded, []
    rejected = []
    without = [query_id for query_id in bank.query_ids if query_id not in graded.items]
    if known is not None and without:
        recorded = folder.shown(folder.recorded() or folder.config_path)
        reason = (
            f"no grades of {len(without):,} of the bank's {len(bank.query_ids):,} queries, which are not "
            f"evaluated: {shorten_list(without)}"
        )
        rejected.append(Rejected(recorded, None, reason, "cell"))
    needs_text = known is None and (not needs.bank or needs.query_text)
    textless = without if needs_text else []
    root = folder.shown(folder.root)
    rejected += (Rejected(root, None, f"query '{query_id}' has no text", "cell") for query_id in textless)
    where = folder.shown(files[0]) if len(files) == 1 else "the bank"
    for query_id in graded.retired:
        if query_id not in graded.items and query_id not in textless:
            reason = f"all items of query '{query_id}' are retired: it is not evaluated"
            rejected.append(Rejected(where, None, reason, "cell"))
    return graded, rejected


def _nothing_graded(
    folder: TrackFolder,
    needs: Needs,
    bank: Bank,
    texts: Mapping[str, str],
    graded: Bank,
    files: Sequence[Path],
) -> TrackError:
    """Return the error of a bank without anything for the grader to grade."""
    of_kinds = asked(bank, needs.kinds, texts)
    if graded.retired and not of_kinds.query_ids:
        reason = 'every item that could be asked about is retired: take "retired" off some'
        return TrackError(reason, path=files[0])
    if needs.known_queries is not None:
        names = shorten_list(list(needs.known_queries))
        reason = f"the recording has grades of none of the bank's queries, but of {names}"
        return TrackError(reason, path=folder.root)
    if not needs.bank or of_kinds.query_ids:
        return _no_query_texts(folder, "this prompt asks with the query's text, and no query has one")
    if folder.write_bank is not None:
        return folder.no_bank_yet()
    return LackingError(
        f"this grader asks about items of the kind {' and '.join(sorted(needs.kinds))}, but the bank has "
        f"none: change `prompt` in [{folder.section}], or the bank",
        path=files[0] if len(files) == 1 else folder.root,
    )


def _no_query_texts(folder: TrackFolder, reason: str) -> TrackError:
    return TrackError(f"{reason}: put queries.tsv here, `query_id<TAB>text` lines", path=folder.root)


def _refused(folder: TrackFolder, path: Path | None, errors: Sequence[ConversionError]) -> list[Rejected]:
    name = "" if path is None else folder.shown(path)
    return [Rejected(name, error.line, error.reason, error.lost) for error in errors]


def rejected_order(row: Rejected) -> tuple[str, int, str]:
    """Return the key by which rejected inputs are sorted."""
    return row.file, row.line or 0, row.reason


def lost_in_words(lost: Mapping[Lost, int]) -> str:
    """Return how much was rejected, "2 files, 14 lines", from rows by what they lose; "" of none."""
    kinds: tuple[Lost, ...] = ("file", "line", "response")
    parts = [plural(lost[kind], kind) for kind in kinds if lost.get(kind)]
    parts += [f"{plural(lost['cell'], 'row')} on cells without a grade"] if lost.get("cell") else []
    return ", ".join(parts)


def merge_rejected(folder: TrackFolder, rejected: Mapping[str, Sequence[Rejected]]) -> tuple[Rejected, ...]:
    """Return what several graders did not take: rows of all once, other rows with their graders' names."""
    rows = each_once(rejected, lambda name, row: row._replace(reason=f"{name}: {row.reason}"))
    return (*rows, *_unread(folder))


def _unread(folder: TrackFolder) -> Iterator[Rejected]:
    """Files of people's ratings that no grader takes."""
    if len(grader_names(folder)) < 2:
        return
    read = {each.overrides() for each in usable_folders(folder).values()}
    for path in sorted(folder.root.glob("overrides*.tsv")):
        if path not in read:
            names = ", ".join(sorted(each.name for each in read))
            reason = (
                f"no grader takes these ratings of people; those of this track take {names}: rename it, or "
                "set `people` in the section of the grader that they are of"
            )
            yield Rejected(folder.shown(path), None, reason, "file")
