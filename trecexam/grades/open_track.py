"""An opened track, and the view that each of its graders has of it: inputs, pool and stored grades."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple
from uuid import uuid4

import pyarrow as pa

from converters.errors import ConversionError
from converters.gold import KIND as GOLD
from trecexam.config import TrackConfig, purse_of
from trecexam.errors import TrackError, TrecexamError
from trecexam.extension import named, provided
from trecexam.files.cache import FileCache
from trecexam.files.kept import recall, remember
from trecexam.files.stamps import Stamp, stamp
from trecexam.folder import PACK, TrackFolder
from trecexam.graders import Grader, create
from trecexam.graders.base import Estimate, identity_digest, identity_json
from trecexam.graders.meter import Spent, Usage
from trecexam.graders.registry import is_standard, reading_fingerprint
from trecexam.graders.replies import FIRST
from trecexam.graders.writing.base import naming
from trecexam.graders.writing.kept_answers import AnswerFile
from trecexam.grades.diagnostics import none_is_read, nothing_read
from trecexam.grades.graded_track import GradedTrack
from trecexam.grades.grading import Graded, Grading, Progress, without_codes, without_errors
from trecexam.grades.judging_scale import judging_scale
from trecexam.grades.kept_codes import KeptCodes
from trecexam.grades.loaded_track import LoadedTrack
from trecexam.grades.measures import check_importance, check_measures
from trecexam.grades.overrides import Overrides, resolve
from trecexam.grades.sheets import UNREAD, Sheet
from trecexam.grades.store import GradeStore
from trecexam.grades.stored_grades import StoredGrades
from trecexam.grades.stored_sheets import sheets_of, with_new_grades
from trecexam.grades.value_cache import ValueCache
from trecexam.inputs.dropped_runs import DroppedRuns
from trecexam.inputs.input_files import sha256_of
from trecexam.inputs.inputs import (
    Needs,
    dropped_runs,
    input_digests,
    input_stamps,
    read_inputs,
    read_people,
    rejected_order,
    shared_paths,
)
from trecexam.inputs.kind import Kind
from trecexam.inputs.run_columns import RunColumns
from trecexam.inputs.texts import Texts
from trecexam.inputs.track_graders import ONLY, declared_kind, folder_of, grader_names, kind_of
from trecexam.inputs.track_inputs import TrackInputs
from trecexam.inputs.track_pool import TrackPool, cited_pool, track_pool
from trecexam.version import __version__

#: Settings of a grader that change no answer.
_NO_ANSWER = {
    *("concurrency", "timeout", "retries", "max_batch_tokens", "requests_per_minute", "tokens_per_minute"),
    *("price_in", "price_out", "budget", "budget_tokens"),
}


class _State(NamedTuple):
    """Equal at two moments exactly when loading gives the same graded track.

    Attributes:
        grades: changes when the store was closed, or another view graded cells with the same grader.
        stamps: the stamp of what counts of each input file.
        depth, bank_files: as of `GraderView.load`.
    """

    grades: tuple[int, int]
    stamps: Mapping[Path, Stamp]
    depth: int | None
    bank_files: Sequence[Path] | None


class OpenTrack(Mapping[str, "GraderView"]):
    """An opened track: its store, what was read of its files, and a view for each of its graders.

    Views are by name, in the order of trecexam.toml. Use it as a context manager: it holds the store open.

    Attributes:
        folder: paths of the track.
        files: what was made of each file.
        columns: columns of large runs.
        inputs: needs of graders -> the state of the files, and what was read of them.
        n_closed: how often the store was closed; a track that was loaded before has lost its answers.
        n_gradings: digest of a grader's identity -> how often cells were graded here. Several sections may
            name the same grader.
    """

    def __init__(
        self,
        folder: TrackFolder,
        grader: Grader | None = None,
        *,
        graders: Mapping[str, Grader] | None = None,
    ) -> None:
        """Make no grader yet.

        Args:
            grader: in place of the only grader that the settings name.
            graders: in place of graders that the settings name, by name.

        Raises:
            TrackError: the track has no such grader, or has several and `grader` is given.
        """
        self.folder = folder
        self.files = FileCache()
        self.columns = RunColumns(folder.shared_state / "runs", write=False)
        self.inputs: dict[Hashable, tuple[object, TrackInputs]] = {}
        self.n_closed = 0
        self.n_gradings: Counter[bytes] = Counter()
        names = grader_names(folder)
        if grader is not None and len(names) > 1:
            raise TrackError(
                f"this track has several graders ({', '.join(names)}): say which one it is in place of, as "
                f'graders={{"{names[0]}": ...}}',
                path=folder.config_path,
            )
        self._given = {**({} if grader is None else {names[0]: grader}), **(graders or {})}
        for name in self._given:
            folder_of(folder, name)
        self._views: dict[str, GraderView | None] = dict.fromkeys(names)
        self._texts: dict[Path | str | None, Texts] = {}
        self._store: GradeStore | None = None

    def __enter__(self) -> OpenTrack:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __getitem__(self, name: str) -> GraderView:
        """Return the view of a grader; a new one where the grader's recording changed.

        Raises:
            TrackError: there is no such grader.
            ConfigError: its settings do not go together.
        """
        view = self._views.get(name)
        if view is None or not view.is_current():
            view = GraderView(self, folder_of(self.folder, name), self._given.get(name))
            self._views[name] = view
        return view

    def __iter__(self) -> Iterator[str]:
        return iter(self._views)

    def __len__(self) -> int:
        return len(self._views)

    @property
    def first(self) -> GraderView:
        """The view of the first grader."""
        return self[next(iter(self))]

    def load(
        self,
        hold: Collection[Path] = (),
        names: Iterable[str] | None = None,
        *,
        updated: Mapping[str, GradedTrack] = MappingProxyType({}),
        unable: Mapping[str, TrecexamError | ConversionError] = MappingProxyType({}),
    ) -> LoadedTrack:
        """Load the track as its graders see it now; grades nothing.

        Args:
            hold: run files that are being written now.
            names: of the graders; None for all.
            updated: tracks that were loaded already, by grader.
            unable: why graders cannot go on that need not be tried again.
        """
        graded_tracks: dict[str, GradedTrack] = {}
        errors: dict[str, TrecexamError | ConversionError] = {}
        for name in self if names is None else names:
            try:
                if name in unable:
                    raise unable[name]
                graded_tracks[name] = updated[name] if name in updated else self[name].load(hold)
            except (TrecexamError, ConversionError) as error:
                errors[name] = error
        return LoadedTrack(self.folder, graded_tracks, errors)

    def last_loaded(self) -> Iterator[GradedTrack]:
        """Yield the graded track that each grader's view loaded last; loads none."""
        return (view.last[1] for view in self._views.values() if view is not None and view.last is not None)

    @property
    def store(self) -> GradeStore:
        """The grades; read-only until `open_to_write`."""
        if self._store is None:
            self._store = GradeStore(self.folder.store_path, write=False)
        return self._store

    def open_to_write(self) -> None:
        """Open the store for writing; a track that was loaded before must be loaded again.

        Raises:
            StoreError: it cannot be written.
        """
        if self._store is None or not self._store.write:
            self.close()
            self._store = GradeStore(self.folder.store_path, write=True)
            self.columns.open_to_write()

    def close_lost_store(self) -> None:
        """Close a store whose file was removed or replaced; the next access opens it again."""
        if self._store is not None and self._store.is_replaced():
            self.close()

    def close(self) -> None:
        """Close the store; tracks that were loaded have no raw answers any more."""
        if self._store is not None:
            self._store.close()
        self._store = None
        self.n_closed += 1

    def texts(self, folder: TrackFolder) -> Texts:
        """Return the passages of the track, as one of its graders has them."""
        source = folder.passages() or folder.config.track.dataset or folder.recorded()
        if source not in self._texts:
            self._texts[source] = Texts(folder)
        return self._texts[source]

    def gradings(self, purse: str, but: str = "") -> Iterator[Grading]:
        """Yield the gradings that the budget of a section pays for, without the grader `but`."""
        for name in self:
            # A grader that cannot be made sends no requests.
            with suppress(TrecexamError, ConversionError):
                if name != but and self[name].purse == purse:
                    yield self[name].grading

    def spent_by_graders(self, purse: str, cost: Callable[[Usage], float | None]) -> Spent:
        """Return what graders used of the budget of this section.

        Args:
            cost: gives the price where none of the track's graders has that budget.

        Raises:
            StoreError: the store cannot be read.
        """
        grading = next(self.gradings(purse), None)
        if grading is not None:
            return grading.spent()
        used = Usage(*self.store.paid(purse))
        return Spent(used.tokens_in + used.tokens_out, cost(used))


class GraderView:
    """A track as one grader sees it: the grader, its settings, and the graded track.

    Attributes:
        track: the opened track.
        folder: paths and settings for this grader.
        name: the grader's name in the track.
        purse: the settings section whose budget pays.
        is_own: True for the grader of the settings.
    """

    def __init__(
        self, track: OpenTrack, folder: TrackFolder, grader: Grader | None = None, purse: str | None = None
    ) -> None:
        """Make no grader yet.

        Args:
            grader: in place of the grader that the settings name.
            purse: None for the grader's own.
        """
        self.track = track
        self.folder = folder_of(folder)
        self.name = self.folder.grader or ONLY
        self.purse = purse or purse_of(self.folder.whole, self.folder.grader)
        self.is_own = grader is None
        self._given = grader
        self._recording = self._recording_stamp()
        # Before the grader is made: the grader reads this content of the prompt, or a later one.
        self._prompt_digest = _digest(self.folder.prompt())
        self._run_values: Mapping[str, ValueCache] = defaultdict(ValueCache)
        #: The last loaded track and its state.
        self.last: tuple[_State, GradedTrack] | None = None
        #: The sheets of the last loaded track, and the state of the grades in these.
        self._sheets: tuple[tuple[int, int] | None, Mapping[str, Sheet]] = None, {}

    def is_current(self) -> bool:
        """Return False where the grader's recording changed: the settings then name another grader."""
        return not self.is_own or self._recording == self._recording_stamp()

    def _recording_stamp(self) -> Stamp | None:
        # An error is raised where the recording is read.
        with suppress(TrecexamError):
            path = self.folder.recorded()
            return None if path is None else stamp(path)
        return None

    @cached_property
    def grader(self) -> Grader:
        """The grader of the settings, or the given one."""
        if self._given is not None:
            return self._given
        if (self.folder.root / PACK).is_file():
            stored: Grader | None = provided("packs").stored_grader(self.folder, self._make)
            return stored or self._make()
        return self._make()

    def _make(self) -> Grader:
        """Make the grader that the settings name."""
        folder, config = self.folder, self.folder.config
        with naming(folder.section):
            kind = declared_kind(folder)
            make = None if kind is None else kind.graders.get(config.grader.name)
            if make is not None:
                made: Grader = named(make)(config.grader, folder.root)
                return made
            return create(config.grader, folder.root, config.ray, trust_code=folder.trust_code)

    @cached_property
    def config(self) -> TrackConfig:
        """The settings, on the scale of the grader.

        Raises:
            ConfigError: they do not go with that scale.
        """
        folder, grader = self.folder, self.grader
        return folder.config.suited(grader.score_settings, *grader.scale, folder.config_path)

    @cached_property
    def kind(self) -> Kind:
        """The kind of grading.

        Raises:
            ConfigError: the grader asks about other things than the settings say.
        """
        return kind_of(self.folder, self.grader.item_kinds)

    @cached_property
    def needs(self) -> Needs:
        """The inputs that the grader needs."""
        name, grader = self.folder.grader, self.grader
        runs = "all" if name is None else self.folder.whole.graders[name].runs
        return Needs(
            # The only grader of a track grades all items that it can.
            frozenset(grader.item_kinds if name is None else grader.item_kinds & self.kind.item_kinds),
            grader.needs_query_text,
            grader.known_passages,
            self.kind,
            "responses" if self.config.track.unit == "response" else runs,
        )

    @cached_property
    def _dropped(self) -> DroppedRuns:
        return dropped_runs(self.folder, self.needs, self.track.files, self.track.columns)

    @cached_property
    def _kept_codes(self) -> KeptCodes | None:
        """Codes as the last update left them; None where they may be read otherwise tomorrow."""
        grader, config = self.grader, self.folder.config.grader
        # Replies are read by code: code of others has no fingerprint.
        is_builtin = self.is_own and is_standard(config.name) and GOLD not in grader.item_kinds
        if grader.free_text and not is_builtin:
            return None
        identity, settings = identity_json(grader.identity), config.model_dump(mode="json")
        reader = [__version__, reading_fingerprint(), identity, settings, self._prompt_digest]
        return KeptCodes(self.folder.state / "codes", reader)

    @property
    def store(self) -> GradeStore:
        """The grades; read-only until `OpenTrack.open_to_write`."""
        return self.track.store

    @cached_property
    def grading(self) -> Grading:
        """The grader at work."""
        return Grading(self.grader, self._open_store, self.purse, self._beside, self._by_writers)

    def _open_store(self) -> GradeStore:
        return self.track.store

    def _beside(self) -> Iterator[Grader]:
        """Yield the track's other graders that the same budget pays for."""
        return (grading.grader for grading in self.track.gradings(self.purse, but=self.name))

    def _by_writers(self) -> Usage:
        return AnswerFile(self.folder.answers_path).spent(self.purse)

    def stamps(
        self, hold: Collection[Path] = (), bank_files: Sequence[Path] | None = None
    ) -> dict[Path, Stamp]:
        """Return the stamp of what counts of each input file.

        Args:
            hold: files that are being written now: their earlier content counts, if there is any.
            bank_files: in place of the track's own.
        """
        return input_stamps(self.folder, bank_files, {path: self._dropped.stamp_of(path) for path in hold})

    def forget_missing(self) -> None:
        """Forget what was read of files that are gone."""
        self.track.files.forget_missing()
        self._dropped.forget_missing()

    def _state(self, hold: Collection[Path], depth: int | None, bank_files: Sequence[Path] | None) -> _State:
        return _State(self._grades_state(), self.stamps(hold, bank_files), depth, bank_files)

    def _grades_state(self) -> tuple[int, int]:
        return self.track.n_closed, self.track.n_gradings[identity_digest(self.grader.identity)]

    def load(
        self,
        hold: Collection[Path] = (),
        depth: int | None = None,
        bank_files: Sequence[Path] | None = None,
        *,
        bank_needed: bool = True,
    ) -> GradedTrack:
        """Load the graded track as it is now; grades nothing. While nothing changes, it is the same one.

        Args:
            hold: run files that are being written now.
            depth: ranks of each run that are pooled; None for the track's.
            bank_files: None for the track's. Only the track's own bank must have what its measures need.
            bank_needed: False gives a track without a bank, too: its queries have no items then.

        Raises:
            TrecexamError, ConversionError: the bank or the passages are missing or unreadable.
        """
        if bank_needed and bank_files is None:
            self.check_bank()
        state = self._state(hold, depth, bank_files)
        if self.last is not None and self.last[0] == state:
            return self.last[1]
        # Before another one is made, so that no two are in memory.
        self.last = None
        track = self._load(state, hold)
        if self._state(hold, depth, bank_files) == state:
            self.last = state, track
        return track

    def check_bank(self) -> None:
        """Refuse a track without the bank that its grader needs.

        Raises:
            TrackError: there is none, or a named one is missing.
        """
        if self.needs.bank:
            self.folder.bank()

    def _load(self, state: _State, hold: Collection[Path]) -> GradedTrack:
        folder, config, grader, files = self.folder, self.config, self.grader, self.track.files
        check_measures(config, folder.config_path)
        inputs = self._read(state, hold)
        human, judged, refused = read_people(folder, files)
        digests = input_digests(folder, files, hold, state.bank_files)
        now = self.stamps(hold, state.bank_files)
        for path in state.stamps.keys() | now.keys():
            if state.stamps.get(path) != now.get(path):
                # Nobody knows which content was read: the next update reads it again.
                digests[folder.shown(path)] = f"changed while it was read, {uuid4()}"
        if state.bank_files is None:
            check_importance(config.measures(), inputs.bank, inputs.bank_files)
        depth = state.depth or config.track.depth
        pool = self._pool(inputs, depth)
        # Otherwise Arrow keeps what the pool was made with, twice what all runs take, for a while.
        pa.default_memory_pool().release_unused()
        of_pool, rule = (inputs.bank, pool.doc_ids, pool.keys), config.judging.rule
        cited = inputs.asked.cited_by({row.query_id for _, row in human})
        name, best = folder.shown(folder.overrides()), grader.scale.max_rating
        overrides = resolve(human, name, *of_pool, best, rule, cited=cited)
        name, scale = folder.shown(folder.judgments()), judging_scale(config, inputs.official)
        judgments = Overrides()
        if scale is not None:
            judgments = resolve(judged, name, *of_pool, best, rule, own_scale=scale)
        grades = StoredGrades(self.store, grader, self._kept_codes)
        before = self._sheets[1] if self._sheets[0] == state.grades else {}
        sheets = sheets_of(before, grades, inputs.asked, pool, overrides)
        self._sheets = state.grades, sheets
        rejected = tuple(sorted((*inputs.rejected, *refused), key=rejected_order))
        uncounted = (*pool.rejected, *overrides.rejected, *judgments.rejected, *pool.no_text)
        return GradedTrack(
            inputs=inputs,
            name=self.name,
            kind=self.kind,
            folder=folder,
            config=config,
            grader=grader,
            depth=depth,
            pool=pool.queries,
            texts=pool.texts,
            notes=(*inputs.dropped.notes, *pool.notes),
            sheets=sheets,
            overrides=overrides,
            judgments=judgments,
            judging_scale=scale,
            digests=digests,
            rejected=rejected,
            not_taken=(*rejected, *uncounted),
            grades=grades,
            run_values=self._run_values,
        )

    def _read(self, state: _State, hold: Collection[Path]) -> TrackInputs:
        """Read the inputs, or return those of another grader with the same needs."""
        folder, needs, known = self.folder, self.needs, self.needs.known_queries
        settings = folder.config.track.model_dump_json(exclude={"depth", "pool_judged", "min_text"})
        key = (
            *(needs.kinds, needs.query_text, needs.runs, self.kind.name, folder.config.grader.citations),
            *(settings, folder.recorded(), state.bank_files),
        )
        paths = [*shared_paths(folder, state.bank_files), folder.recorded()]
        files = known and frozenset(known), {path: state.stamps.get(path) for path in paths if path}
        read, cache = self.track.inputs, self.track.files
        if key not in read or read[key][0] != files:
            # Before others are read, so that no two are in memory.
            read.pop(key, None)
            inputs = read_inputs(folder, needs, hold, state.bank_files, files=cache, dropped=self._dropped)
            read[key] = files, inputs
        return read[key][1]

    def _pool(self, inputs: TrackInputs, depth: int) -> TrackPool:
        """Return the pool of these inputs, as another grader made it where that is the same."""
        track, passages = self.config.track, self.grader.known_passages
        ids = None if passages is None else tuple((query, frozenset(of)) for query, of in passages.items())
        key = depth, track.pool_judged, track.min_text, ids
        if key not in inputs.pools:
            texts = self.track.texts(self.folder)
            inputs.pools[key] = (
                track_pool(self.folder, inputs, self.grader, texts, depth)
                if inputs.asked.citing is None
                else cited_pool(self.folder, inputs, self.grader, texts)
            )
        pool: TrackPool = inputs.pools[key]
        return pool

    def refreshed(self, track: GradedTrack) -> GradedTrack:
        """Return the track with grades that were stored since for cells without one, or with an error."""
        grades = StoredGrades(self.store, self.grader)
        return self._followed(
            track, replace(track, sheets=with_new_grades(track.sheets, grades), grades=grades)
        )

    def _followed(self, track: GradedTrack, fresh: GradedTrack) -> GradedTrack:
        """Keep `fresh` in place of `track`."""
        grades = self._grades_state()
        is_last = self.last is not None and self.last[1] is track
        self.last = (self.last[0]._replace(grades=grades), fresh) if self.last and is_last else None
        self._sheets = grades, fresh.sheets
        return fresh

    def grade(
        self,
        track: GradedTrack,
        progress: Callable[[Progress], None] | None = None,
        stop: Callable[[], bool] | None = None,
        only: Mapping[str, Collection[str]] | None = None,
    ) -> tuple[GradedTrack, Graded]:
        """Grade the cells that have no grade yet, see `Grading.run`; return the track with its new grades.

        The track must be loaded with the store open to write.
        """
        track, section = self.with_new_settings(track), self.folder.section
        if track.counts.missing:
            # Before the first: where the grader fails, grades of this track are old all the same.
            self.track.n_gradings[identity_digest(self.grader.identity)] += 1
        with naming(section):
            outcome = self.grading.run(track, progress, stop, only)
        if self.purse == section:
            outcome = outcome._replace(why=outcome.why.replace("[grader]", f"[{section}]"))
        track = self.refreshed(track)
        if none_is_read(track):
            self._remember_settings()
            # A stopped grading goes on with the rest. Recordings do not depend on a setting.
            if self.grader.free_text and (track.counts.unparsed >= FIRST or outcome.complete):
                why = "; ".join(filter(None, (outcome.why, nothing_read(track))))
                outcome = outcome._replace(complete=False, why=why)
        return track, outcome

    def with_new_settings(self, track: GradedTrack) -> GradedTrack:
        """Forget replies of which none could be read, where the grader's settings changed since."""
        if not none_is_read(track):
            return track
        ((identity, settings),) = self._settings.items()
        if recall(self.folder.unread_path).get(identity, settings) == settings:
            return track
        track.grades.forget(track.sheets, UNREAD)
        return self._followed(track, without_codes(track, UNREAD))

    def _remember_settings(self) -> None:
        if recall(self.folder.unread_path) != self._settings:
            # Where this cannot be written, a change of settings goes unnoticed; --retry-errors asks again.
            with suppress(TrecexamError):
                remember(self.folder.unread_path, self._settings)

    @property
    def _settings(self) -> dict[str, str]:
        """The grader's digest -> a digest of its settings that can change an answer."""
        settings = self.config.grader.model_dump(mode="json", exclude=_NO_ANSWER)
        return {identity_digest(self.grader.identity).hex(): identity_digest(settings).hex()}

    def estimate(self, track: GradedTrack, *, retry_errors: bool = False) -> Estimate:
        """Return what `grade` would take.

        Args:
            retry_errors: as if answers that are errors were forgotten.
        """
        return self.grading.estimate(without_errors(track) if retry_errors else track)

    def keep_codes(self, track: GradedTrack) -> None:
        """Keep the codes of a loaded track for the next process, where its store is open to write."""
        if self._kept_codes is not None and self.store.write:
            codes_by_token = {sheet.token: sheet.codes for sheet in track.sheets.values()}
            self._kept_codes.write(self.store.at_rest(settle=True), codes_by_token)

    def forget_errors(self) -> int:
        """Drop the grader's answers with the status "error", and return their number.

        Where no reply can be read, all replies are dropped, too. The track must be loaded again.
        """
        n_replies = 0
        # Without a bank, there are no cells.
        with suppress(TrecexamError, ConversionError):
            track = self.load()
            n_replies = track.grades.forget(track.sheets, UNREAD) if none_is_read(track) else 0
        self.last, self._sheets = None, (None, {})
        grader_id = StoredGrades(self.store, self.grader).grader_id
        return n_replies + (0 if grader_id is None else self.store.forget(grader_id, "error"))


def _digest(path: Path | None) -> str | None:
    """Return the sha256 (hex) of a file; None where there is no readable one."""
    with suppress(ConversionError, OSError):
        return None if path is None else sha256_of(path)
    return None
