"""From a track folder to a `LoadedTrack`, again and again; unchanged parts are shared with the one before."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import fields, replace
from functools import cached_property
from pathlib import Path
from uuid import uuid4

from converters.errors import ConversionError
from converters.gold import KIND as GOLD
from trecexam.bank import Bank
from trecexam.config import TrackConfig
from trecexam.errors import TrecexamError
from trecexam.files.stamps import Rejected, stamp
from trecexam.graders import Grader, create
from trecexam.graders.base import identity_json
from trecexam.graders.registry import BUILT_IN
from trecexam.graders.traits import GraderTraits, traits_of
from trecexam.line.derived import DerivedValues
from trecexam.line.diagnostics import without_text
from trecexam.line.grading import Graded, Grading, Progress
from trecexam.line.inputs import InputReader, TrackInputs, sha256_of
from trecexam.line.judged_pool import judged_outside, judged_without_text
from trecexam.line.kept_codes import KeptCodes
from trecexam.line.loaded import LoadedTrack
from trecexam.line.measures import check_importance, check_measures
from trecexam.line.overrides import Overrides, resolve
from trecexam.line.pool import PooledQuery, pool_with_ranks
from trecexam.line.sheets import ERROR, MISSING, GradeSheet
from trecexam.line.store import GradeStore
from trecexam.line.stored_grades import StoredGrades
from trecexam.line.texts import Texts
from trecexam.line.value_cache import EvaluatedMeasures
from trecexam.track import TrackFolder
from trecexam.version import __version__

#: How often inputs are read where some are replaced meanwhile.
_READINGS = 3


class TrackLoader:
    """Loads one track. Use it as a context manager: it holds the store open."""

    def __init__(
        self, folder: TrackFolder, grader: Grader | None = None, *, share_with: Sequence[TrackLoader] = ()
    ) -> None:
        """A loader of this track.

        Args:
            grader: in place of the one that its settings name.
            share_with: loaders of the same folder with other graders; what they read is not read again.
        """
        self.folder = folder
        self._given_grader = grader
        self._share_with = share_with
        self._store: GradeStore | None = None
        self._sheets: Mapping[str, GradeSheet] = {}
        self._evaluated = EvaluatedMeasures()
        self._kept = DerivedValues()
        self._texts: Texts = share_with[0]._texts if share_with else Texts(folder)
        #: The track as it was loaded last, and the state of its inputs.
        self._last: tuple[object, LoadedTrack] | None = None
        self._recording = self._recording_now()

    def __enter__(self) -> TrackLoader:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the store; what was loaded can say no raw answers any more."""
        if self._store is not None:
            self._store.close()
        self._store, self._sheets, self._last = None, {}, None

    def renew(self) -> None:
        """Forgets the grader and what it made where its recording changed since: it is another one."""
        if self._given_grader is not None or self._recording == (now := self._recording_now()):
            return
        self.close()
        self._recording = now
        for name in ("config", "grader", "_prompt_digest", "inputs", "grading", "_kept_codes", "_min_text"):
            self.__dict__.pop(name, None)

    def _recording_now(self) -> object:
        # What cannot be found is said where it is read.
        with suppress(TrecexamError):
            path = self.folder.recorded()
            return path and stamp(path)
        return None

    @cached_property
    def config(self) -> TrackConfig:
        """The track's settings, on the scale of its grader.

        Raises:
            ConfigError: they do not go with that scale.
        """
        config = self.folder.config.suited(self.traits.score_settings)
        return config.on_scale(*self.traits.scale, self.folder.config_path)

    @cached_property
    def grader(self) -> Grader:
        """Who grades the track: the one that was given, or that its settings name."""
        config = self.folder.config
        # First: what the grader reads of it is this content, or a later one, whose codes nobody finds by it.
        _ = self._prompt_digest
        return self._given_grader or create(config.grader, self.folder.root, config.ray)

    @cached_property
    def _prompt_digest(self) -> str | None:
        """sha256 (hex) of the user's own prompt; None where there is none, or none that can be read."""
        prompt = self.folder.prompt()
        with suppress(ConversionError, OSError):
            return None if prompt is None else sha256_of(prompt)
        return None

    @property
    def has_own_grader(self) -> bool:
        """Whether the grader is the one that the track's settings name."""
        return self._given_grader is None

    @property
    def traits(self) -> GraderTraits:
        """What the grader says of itself."""
        return traits_of(self.grader)

    @cached_property
    def inputs(self) -> InputReader:
        """Reads the track's files."""
        traits = self.traits
        for loader in self._share_with:
            known = loader.__dict__.get("inputs")
            asked = traits.item_kinds, traits.needs_query_text, traits.known_passages
            if known and (known.kinds, known.with_query, known.known) == asked:
                return known  # type: ignore[no-any-return]
        return InputReader(
            self.folder,
            traits.item_kinds,
            with_query=traits.needs_query_text,
            known=traits.known_passages,
        )

    @property
    def store(self) -> GradeStore:
        """The grades; opened for reading only until `open_to_write`."""
        if self._store is None:
            self._store = GradeStore(self.folder.store_path, write=False)
        return self._store

    def let_go_of_lost_store(self) -> None:
        """Closes a store whose file is gone, or is another one by now; it is opened again as it is then."""
        if self._store is not None and self._store.is_replaced():
            self.close()

    def open_to_write(self) -> None:
        """Opens the store for writing, where it is not; what was loaded before must be loaded again.

        Raises:
            StoreError: it cannot be written.
        """
        if self._store is None or not self._store.write:
            self.close()
            self._store = GradeStore(self.folder.store_path, write=True)
            self.inputs.keep_columns()

    def load(
        self,
        hold: Collection[Path] = (),
        depth: int | None = None,
        bank_files: Sequence[Path] | None = None,
        select_runs: Callable[[TrackInputs], TrackInputs] | None = None,
    ) -> LoadedTrack:
        """The track as it is now; grades nothing. Where no input changed, it is the one of the last call.

        Args:
            hold: run files that are being written now.
            depth: ranks of each run that are pooled; None for the track's.
            bank_files: None for the track's. What the track's measures need is asked of its own bank alone.
            select_runs: gives the inputs with the runs that are meant, in place of all of the track.

        Raises:
            TrecexamError, ConversionError: the bank or the passages are missing or unreadable.
        """
        self.renew()
        if hold or depth or bank_files is not None or select_runs is not None:
            return self._load(hold, depth, bank_files, select_runs)
        state = self.inputs.state()
        if self._last is None or self._last[0] != state:
            # Before another one is made, so that no two are in memory.
            self._last = None
            track = self._load()
            if state == self.inputs.state():
                self._last = state, track
            return track
        return self._last[1]

    def _load(
        self,
        hold: Collection[Path] = (),
        depth: int | None = None,
        bank_files: Sequence[Path] | None = None,
        select_runs: Callable[[TrackInputs], TrackInputs] | None = None,
    ) -> LoadedTrack:
        check_measures(self.config, self.folder.config_path)
        inputs, digests = self._read(hold, bank_files)
        if select_runs is not None:
            inputs = select_runs(inputs)
        if bank_files is None:
            check_importance(self.config.measures(), inputs.bank, inputs.bank_files)
        depth = depth or self.config.track.depth
        pooled = pool_with_ranks(tuple(inputs.runs.values()), inputs.bank.query_ids, depth)
        doc_ids = {doc_id for of_query in pooled.values() for doc_id in of_query.doc_ids}
        # Where the runs that are meant are said, nothing but what they have is.
        outside = self._outside(inputs, pooled) if select_runs is None else {}
        texts, bad_passages = self._texts_of(doc_ids, set[str]().union(*outside.values()), inputs)
        # What store and grader know a passage by.
        by_id = self.traits.known_passages is not None
        keys = {doc_id: doc_id for doc_id in doc_ids.union(*outside.values())} if by_id else texts
        lost = doc_ids - keys.keys()
        no_text = tuple(without_text(self.folder, inputs, keys, depth)) if lost else ()
        gradable = {
            query_id: {doc_id for doc_id in judged if self._is_gradable(keys.get(doc_id))}
            for query_id, judged in outside.items()
        }
        no_text = (*no_text, *judged_without_text(self.folder, outside, gradable))
        pooled = {
            query_id: of_query.with_judged(gradable.get(query_id, ()))
            for query_id, of_query in pooled.items()
        }
        shown, best = self.folder.shown(self.folder.overrides()), self.traits.scale.max_rating
        docs_of = {query_id: of_query.doc_ids for query_id, of_query in pooled.items()}
        overrides = resolve(inputs.human, shown, inputs.bank, docs_of, keys, best)
        grades = StoredGrades(self.store, self.grader, self._kept_codes)
        self._sheets = self._sheets_of(grades, inputs.bank, docs_of, keys, overrides)
        return LoadedTrack(
            **{field.name: getattr(inputs, field.name) for field in fields(TrackInputs)},
            folder=self.folder,
            config=self.config,
            grader=self.grader,
            depth=depth,
            pool=pooled,
            texts=texts,
            sheets=self._sheets,
            overrides=overrides,
            digests=digests,
            not_taken=(*inputs.rejected, *bad_passages, *overrides.rejected, *no_text),
            grades=grades,
            evaluated=self._evaluated,
            kept=self._kept,
        )

    def _read(
        self, hold: Collection[Path], bank_files: Sequence[Path] | None
    ) -> tuple[TrackInputs, Mapping[str, str]]:
        """The inputs, and the digests of the very contents that were read."""
        changed: set[Path] = set()
        for _ in range(_READINGS):
            before = self.inputs.stamps(bank_files)
            inputs, digests = self.inputs.read(hold, bank_files), self.inputs.digests(hold, bank_files)
            after = self.inputs.stamps(bank_files)
            changed = {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
            changed -= set(hold)
            if not changed:
                break
        # Of a file that is replaced again and again none of its contents is known: the next update reads it.
        unknown = {self.folder.shown(path): f"changed while it was read, {uuid4()}" for path in changed}
        return inputs, {**digests, **unknown}

    def refreshed(self, track: LoadedTrack) -> LoadedTrack:
        """The same track with the grades that came since for cells without one, or with an error."""
        stale = [
            sheet
            for sheet in track.sheets.values()
            if ((sheet.codes == MISSING) | (sheet.codes == ERROR)).any()
        ]
        grades = StoredGrades(self.store, self.grader)
        matrices = grades.codes([(sheet.texts, sheet.items) for sheet in stale])
        changed = {
            sheet.query_id: replace(sheet, codes=codes)
            for sheet, codes in zip(stale, matrices, strict=True)
            if (codes != sheet.codes).any()
        }
        self._sheets = {query_id: changed.get(query_id, sheet) for query_id, sheet in track.sheets.items()}
        fresh = replace(track, sheets=self._sheets, grades=grades)
        # What else was loaded before may lack these grades.
        is_last = self._last is not None and self._last[1] is track
        self._last = (self._last[0], fresh) if self._last is not None and is_last else None
        return fresh

    @cached_property
    def grading(self) -> Grading:
        """The grader at work."""
        return Grading(self.grader, lambda: self.store)

    def grade(
        self,
        track: LoadedTrack,
        progress: Callable[[Progress], None] | None = None,
        stop: Callable[[], bool] | None = None,
        only: Mapping[str, Collection[str]] | None = None,
    ) -> tuple[LoadedTrack, Graded]:
        """Grades the cells that have no grade yet, see `Grading.run`; the track with its new grades.

        The track must be loaded with the store open to write.
        """
        outcome = self.grading.run(track, progress, stop, only)
        return self.refreshed(track), outcome

    @cached_property
    def _kept_codes(self) -> KeptCodes | None:
        """Codes as they were read last; None where what is read may be another thing tomorrow."""
        traits, config = self.traits, self.folder.config.grader
        # What of a model's words is a rating is decided by code: that of others has no version that we know.
        own = self._given_grader is None and config.name in BUILT_IN and GOLD not in traits.item_kinds
        if traits.free_text and not own:
            return None
        reader = [
            __version__,
            identity_json(self.grader.identity),
            config.model_dump(mode="json"),
            self._prompt_digest,
        ]
        return KeptCodes(self.folder.state / "codes", reader)

    def keep_codes(self, track: LoadedTrack) -> None:
        """Keeps the codes of a loaded track for the next process, where its store is open to write."""
        if self._kept_codes is not None and self.store.write:
            kept = {sheet.token: sheet.codes for sheet in track.sheets.values()}
            self._kept_codes.write(self.store.at_rest(settle=True), kept)

    def forget_errors(self) -> int:
        """Drops the grader's answers with the status "error"; how many. The track must be loaded again."""
        self._sheets, self._last = {}, None
        grader_id = StoredGrades(self.store, self.grader).grader_id
        return 0 if grader_id is None else self.store.forget(grader_id, "error")

    def _outside(self, inputs: TrackInputs, pooled: Mapping[str, PooledQuery]) -> dict[str, set[str]]:
        """Passages that are pooled though no run has them: judged ones, or all that a grader knows by id."""
        known = self.traits.known_passages
        if known is None:
            return judged_outside(inputs, pooled) if self.config.track.pool_judged else {}
        return {
            query_id: set(known[query_id]).difference(of_query.doc_ids)
            for query_id, of_query in pooled.items()
        }

    @cached_property
    def _min_text(self) -> int:
        """Characters that a text must have; ids may be of any length."""
        return 0 if self.traits.known_passages is not None else self.config.track.min_text

    def _is_gradable(self, text: str | None) -> bool:
        return text is not None and len(text) >= self._min_text

    def _texts_of(
        self, doc_ids: Collection[str], judged: Collection[str], inputs: TrackInputs
    ) -> tuple[Mapping[str, str], tuple[Rejected, ...]]:
        """The texts of these documents, as far as there are, and the passage lines not taken.

        Args:
            doc_ids: of the runs.
            judged: others, for which alone the track need not have passages.

        Raises:
            TrackError: some of the runs' are not those of generated responses, and the track has no passages
                at all.
        """
        own = inputs.own_texts
        if self.traits.known_passages is not None and self.folder.passages() is None:
            return own, ()
        others = set(doc_ids) - own.keys()
        whole_answers = self.inputs.whole_answers
        wanted = others
        if judged and self._texts.has_source and not whole_answers:
            wanted = others | (set(judged) - own.keys())
        # Where all that was dropped was refused, that is the news, and not the missing passages.
        if not wanted and (doc_ids or inputs.rejected or whole_answers):
            return own, ()
        texts, rejected = self._texts.of(wanted)
        return {**texts, **own}, rejected

    def _sheets_of(
        self,
        grades: StoredGrades,
        bank: Bank,
        pooled: Mapping[str, tuple[str, ...]],
        keys: Mapping[str, str],
        overrides: Overrides,
    ) -> dict[str, GradeSheet]:
        """The cells of every query; only where passages, texts or items changed grades are looked up."""
        sheets: dict[str, GradeSheet] = {}
        new: dict[str, tuple[tuple[str, ...], tuple[str | None, ...]]] = {}
        for query_id, doc_ids in pooled.items():
            gradable = tuple(text if self._is_gradable(text) else None for text in map(keys.get, doc_ids))
            known, human = self._sheets.get(query_id), overrides.queries.get(query_id)
            if known and (known.doc_ids, known.texts, known.items) == (
                doc_ids,
                gradable,
                bank.items[query_id],
            ):
                sheets[query_id] = known if known.overrides == human else replace(known, overrides=human)
            else:
                new[query_id] = doc_ids, gradable
        matrices = grades.codes([(of_query, bank.items[query_id]) for query_id, (_, of_query) in new.items()])
        for (query_id, (doc_ids, gradable)), codes in zip(new.items(), matrices, strict=True):
            sheets[query_id] = GradeSheet(
                query_id, doc_ids, gradable, bank.items[query_id], codes, overrides.queries.get(query_id)
            )
        return {query_id: sheets[query_id] for query_id in pooled}


@contextmanager
def opened(root: Path | str, grader: Grader | None = None) -> Iterator[TrackLoader]:
    """The loader of the track in `root`, closed again at the end."""
    with TrackLoader(TrackFolder.open(root), grader) as loader:
        yield loader
