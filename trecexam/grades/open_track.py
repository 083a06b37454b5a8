"""An opened track, and the view that each of its graders has of it: inputs, pool and stored grades."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from uuid import uuid4

import pyarrow as pa

from converters.errors import ConversionError
from converters.gold import KIND as GOLD
from trecexam.config import TrackConfig
from trecexam.config.track_config import purse_of
from trecexam.errors import TrackError, TrecexamError
from trecexam.extension import named, provided
from trecexam.files.cache import FileCache
from trecexam.files.stamps import Stamp, sha256_of, stamp
from trecexam.folder import PACK, TrackFolder
from trecexam.graders import Grader, create, is_standard, reading_fingerprint
from trecexam.graders.base import identity_digest, identity_json
from trecexam.graders.meter import Spent, Usage
from trecexam.graders.writing.base import naming
from trecexam.grades.graded_track import GradedTrack, LoadedTrack
from trecexam.grades.sheets import Sheet
from trecexam.grades.store import GradeStore
from trecexam.grades.stored_grades import StoredGrades, read_codes, sheets_of, with_new_grades, write_codes
from trecexam.inputs.dropped_runs import DroppedRuns
from trecexam.inputs.inputs import (
    Needs,
    TrackInputs,
    input_digests,
    input_stamps,
    read_inputs,
    read_people,
    rejected_order,
    shared_paths,
)
from trecexam.inputs.kind import Kind
from trecexam.inputs.measures import check_importance, check_measures
from trecexam.inputs.overrides import Overrides, judging_scale, resolve
from trecexam.inputs.pool import Texts, TrackPool, cited_pool, track_pool
from trecexam.inputs.run_columns import RunColumns
from trecexam.inputs.track_graders import ONLY, declared_kind, folder_of, grader_names, kind_of
from trecexam.scores.value_cache import ValueCache
from trecexam.version import __version__


class OpenTrack(Mapping[str, "GraderView"]):
    """An opened track: its store, what was read of its files, and a view for each of its graders.

    Views are by name, in the order of trecexam.toml. Use it as a context manager: it holds the store open.

    Attributes:
        folder: paths of the track.
        files: what was made of each file.
        columns: columns of large runs.
        inputs: needs of graders -> the state of the files, and what was read of them.
        texts: source of passages -> the passages.
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
        """
        self.folder = folder
        self.files = FileCache()
        self.columns = RunColumns(folder.shared_state / "runs", write=False)
        self.inputs: dict[Hashable, tuple[object, TrackInputs]] = {}
        self.texts: dict[Path | str | None, Texts] = {}
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
        self._views: dict[str, tuple[Stamp | None, GraderView] | None] = dict.fromkeys(names)
        self._store: GradeStore | None = None

    def __enter__(self) -> OpenTrack:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __getitem__(self, name: str) -> GraderView:
        """Return the view of a grader; a new one where the grader's recording changed, which names it."""
        known, recording = self._views.get(name), None
        folder = folder_of(self.folder, name) if known is None else known[1].folder
        # An error is raised where the recording is read.
        with suppress(TrecexamError):
            path = folder.recorded()
            recording = None if path is None or name in self._given else stamp(path)
        if known is None or known[0] != recording:
            known = self._views[name] = recording, GraderView(self, folder, self._given.get(name))
        return known[1]

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
        views = (known[1] for known in self._views.values() if known is not None)
        return (view.last[2] for view in views if view.last is not None)

    @property
    def store(self) -> GradeStore:
        """The grades; read-only until `open_to_write`."""
        if self._store is None:
            self._store = GradeStore(self.folder.store_path, write=False)
        return self._store

    def open_to_write(self) -> None:
        """Open the store for writing; a track that was loaded before must be loaded again."""
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

    def usage(self, grader: Grader) -> Usage:
        """Return what a grader used so far."""
        return Usage(*self.store.usage(identity_digest(grader.identity)))

    def spent_by_graders(
        self, purse: str, cost: Callable[[Usage], float | None], but: Grader | None = None
    ) -> Spent:
        """Return what graders used of the budget of this section.

        Args:
            cost: gives the price of what graders used that the track does not have any more.
            but: without this grader.
        """
        graders: dict[bytes, Grader] = {}
        for name in self:
            # A grader that cannot be made sends no requests.
            with suppress(TrecexamError, ConversionError):
                if self[name].purse == purse:
                    graders[identity_digest(self[name].grader.identity)] = self[name].grader
        excluded = () if but is None else (identity_digest(but.identity),)
        rest = Usage(*self.store.paid(purse, {*excluded, *graders}))
        spent = Spent(rest.tokens_in + rest.tokens_out, cost(rest))
        for digest, grader in graders.items():
            if digest not in excluded and grader.meter is not None:
                spent = spent.plus(grader.meter.spent(self.usage(grader)))
        return spent


class GraderView:
    """A track as one grader sees it: the grader, its settings, and the graded track.

    Attributes:
        track: the opened track.
        folder: paths and settings for this grader.
        name: the grader's name in the track.
        purse: the settings section whose budget pays.
        is_own: True for the grader of the settings.
        last: what was loaded last: from which files, the state of its grades, and the track.
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
        # Before the grader is made: the grader reads this content of the prompt, or a later one.
        self._prompt_digest: str | None = None
        with suppress(ConversionError, OSError):
            prompt = self.folder.prompt()
            self._prompt_digest = None if prompt is None else sha256_of(prompt)
        self._run_values: Mapping[str, ValueCache] = defaultdict(ValueCache)
        self.last: tuple[object, object, GradedTrack] | None = None

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
            return create(config.grader, folder.root, config.elsewhere, trust_code=folder.trust_code)

    @cached_property
    def config(self) -> TrackConfig:
        """The settings, on the scale of the grader; a ConfigError where they do not go with that scale."""
        folder, grader = self.folder, self.grader
        return folder.config.suited(grader.score_settings, *grader.scale, folder.config_path)

    @cached_property
    def kind(self) -> Kind:
        """The kind of grading; a ConfigError where the grader asks about other things than settings say."""
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
        whole = self.needs.whole_answers
        return DroppedRuns(self.folder, self.track.files, self.track.columns, whole_answers=whole)

    def _codes_key(self) -> str | None:
        """Return the key of kept codes; None where answers may be read otherwise tomorrow."""
        grader, config, at_rest = self.grader, self.folder.config.grader, self.track.store.at_rest()
        # Replies are read by code: code of others has no fingerprint.
        is_builtin = self.is_own and is_standard(config.name) and GOLD not in grader.item_kinds
        if at_rest is None or (grader.free_text and not is_builtin):
            return None
        identity, settings = identity_json(grader.identity), config.model_dump(mode="json")
        key = [__version__, reading_fingerprint(), identity, settings, self._prompt_digest, at_rest]
        return hashlib.sha256(json.dumps(key).encode()).hexdigest()

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

    def _grades_state(self) -> object:
        """Return another value when the store was opened again, or any view changed grades of the grader."""
        grader_id = self.track.store.grader_id(identity_digest(self.grader.identity))
        return self.track.store, grader_id, self.track.store.n_changes[grader_id]

    def load(
        self,
        hold: Collection[Path] = (),
        bank_files: Sequence[Path] | None = None,
        *,
        bank_needed: bool = True,
    ) -> GradedTrack:
        """Load the graded track as it is now; grades nothing. While nothing changes, it is the same one.

        Args:
            hold: run files that are being written now.
            bank_files: None for the track's. Only the track's own bank must have what its measures need.
            bank_needed: False gives a track without a bank, too: its queries have no items then.

        Raises:
            TrecexamError, ConversionError: the bank or the passages are missing or unreadable.
        """
        if bank_needed and bank_files is None and self.needs.bank:
            self.folder.bank()
        stamps = self.stamps(hold, bank_files)
        before: Mapping[str, Sheet] = {}
        if self.last is not None and self.last[1] == self._grades_state():
            if self.last[0] == (stamps, bank_files):
                return self.last[2]
            before = self.last[2].sheets
        # Before another one is made, so that no two are in memory.
        self.last = None
        return self._load(stamps, hold, bank_files, before)

    def _load(
        self,
        stamps: Mapping[Path, Stamp],
        hold: Collection[Path],
        bank_files: Sequence[Path] | None,
        before: Mapping[str, Sheet],
    ) -> GradedTrack:
        folder, config, grader, files = self.folder, self.config, self.grader, self.track.files
        check_measures(config, folder.config_path)
        inputs = self._read(stamps, hold, bank_files)
        human, judged, refused = read_people(folder, files)
        digests = input_digests(folder, files, hold, bank_files)
        if bank_files is None:
            check_importance(config.measures(), inputs.bank, inputs.bank_files)
        pool = self._pool(inputs)
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
        # An opened track has the codes of the sheets before.
        kept = {} if before else read_codes(folder.state / "codes", self._codes_key())
        grades = StoredGrades(self.track.store, grader)
        now = self.stamps(hold, bank_files)
        for path in stamps.keys() | now.keys():
            if stamps.get(path) != now.get(path):
                # Nobody knows which content was read: the next update reads it again.
                digests[folder.shown(path)] = f"changed while it was read, {uuid4()}"
        rejected = tuple(sorted((*inputs.rejected, *refused), key=rejected_order))
        uncounted = (*pool.rejected, *overrides.rejected, *judgments.rejected, *pool.no_text)
        track = GradedTrack(
            inputs=inputs,
            name=self.name,
            kind=self.kind,
            folder=folder,
            config=config,
            grader=grader,
            depth=config.track.depth,
            pool=pool.queries,
            texts=pool.texts,
            notes=(*inputs.dropped.notes, *pool.notes),
            sheets=sheets_of(before, kept, grades, inputs.asked, pool, overrides),
            overrides=overrides,
            judgments=judgments,
            judging_scale=scale,
            digests=digests,
            rejected=rejected,
            not_taken=(*rejected, *uncounted),
            grades=grades,
            run_values=self._run_values,
        )
        self.last = (stamps, bank_files) if now == stamps else None, self._grades_state(), track
        return track

    def _read(
        self, stamps: Mapping[Path, Stamp], hold: Collection[Path], bank_files: Sequence[Path] | None
    ) -> TrackInputs:
        """Read the inputs, or return those of another grader with the same needs."""
        folder, needs, known = self.folder, self.needs, self.needs.known_queries
        settings = folder.config.track.model_dump_json(exclude={"depth", "pool_judged", "min_text"})
        key = (
            *(needs.kinds, needs.query_text, needs.runs, self.kind.name, folder.config.grader.citations),
            *(settings, folder.recorded(), bank_files),
        )
        paths = [*shared_paths(folder, bank_files), folder.recorded()]
        files = known and frozenset(known), {path: stamps.get(path) for path in paths if path}
        read, cache = self.track.inputs, self.track.files
        if key not in read or read[key][0] != files:
            # Before others are read, so that no two are in memory.
            read.pop(key, None)
            inputs = read_inputs(folder, needs, hold, bank_files, files=cache, dropped=self._dropped)
            read[key] = files, inputs
        return read[key][1]

    def _pool(self, inputs: TrackInputs) -> TrackPool:
        """Return the pool of these inputs, as another grader made it where that is the same."""
        track, passages = self.config.track, self.grader.known_passages
        ids = None if passages is None else tuple((query, frozenset(of)) for query, of in passages.items())
        key = track.depth, track.pool_judged, track.min_text, ids
        if key not in inputs.pools:
            folder = self.folder
            source = folder.passages() or folder.config.track.dataset or folder.recorded()
            texts = self.track.texts.setdefault(source, Texts(folder))
            inputs.pools[key] = (
                track_pool(self.folder, inputs, self.grader, texts, track.depth)
                if inputs.asked.citing is None
                else cited_pool(self.folder, inputs, self.grader, texts)
            )
        pool: TrackPool = inputs.pools[key]
        return pool

    def refreshed(self, track: GradedTrack) -> GradedTrack:
        """Return the track with grades that were stored since for cells without one, or with an error."""
        grades = StoredGrades(self.track.store, self.grader)
        fresh = replace(track, sheets=with_new_grades(track.sheets, grades), grades=grades)
        is_last = self.last is not None and self.last[2] is track
        self.last = self.last[0] if self.last is not None and is_last else None, self._grades_state(), fresh
        return fresh

    def keep_codes(self, track: GradedTrack) -> None:
        """Keep the codes of a loaded track for the next process, where its store is open to write."""
        if self.track.store.write:
            self.track.store.settle()
            codes = {sheet.token: sheet.codes for sheet in track.sheets.values()}
            write_codes(self.folder.state / "codes", self._codes_key(), codes)
