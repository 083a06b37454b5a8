"""From a track folder to a `Assessment`, again and again; unchanged parts are shared with the one before."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Literal
from uuid import uuid4

import pyarrow as pa

from converters.errors import ConversionError
from trecexam.config import TrackConfig, purse_of
from trecexam.errors import TrecexamError
from trecexam.files.kept import recall, remember
from trecexam.files.stamps import stamp
from trecexam.folder import TrackFolder
from trecexam.graders import Grader
from trecexam.graders.base import Estimate, identity_digest
from trecexam.graders.replies import FIRST
from trecexam.graders.writing.base import naming
from trecexam.graders.writing.kept_answers import AnswerFile
from trecexam.line.assessment import Assessment
from trecexam.line.diagnostics import none_is_read, nothing_read
from trecexam.line.grading import Graded, Grading, Progress, without_codes, without_errors
from trecexam.line.inputs import InputReader
from trecexam.line.judging_scale import judging_scale
from trecexam.line.kind import Kind
from trecexam.line.measures import check_importance, check_measures
from trecexam.line.overrides import Overrides, resolve
from trecexam.line.shared_inputs import SharedInputs
from trecexam.line.sheets import UNREAD, Sheet
from trecexam.line.store import GradeStore
from trecexam.line.stored_grades import StoredGrades
from trecexam.line.stored_sheets import sheets_of, with_new_grades
from trecexam.line.track_grader import TrackGrader
from trecexam.line.track_graders import ONLY, folder_of
from trecexam.line.track_inputs import TrackInputs
from trecexam.line.track_pool import TrackPool, cited_pool, track_pool
from trecexam.line.value_cache import ValueCache

#: Settings of a grader that change no answer.
_PACE = frozenset(
    ("concurrency", "timeout", "retries", "max_batch_tokens", "requests_per_minute", "tokens_per_minute")
)
_MONEY = frozenset(("price_in", "price_out", "budget", "budget_tokens"))


class TrackLoader:
    """Loads one track. Use it as a context manager: it holds the store open."""

    def __init__(
        self,
        folder: TrackFolder,
        grader: Grader | None = None,
        *,
        shared: SharedInputs | None = None,
        purse: str | None = None,
        graders: Mapping[str, TrackLoader] | None = None,
    ) -> None:
        """A loader of this track, as one of its graders sees it.

        Args:
            folder: where the track has several graders and none is meant, the first is.
            grader: in place of the one that its settings name.
            shared: what other loaders of the same folder read: it is not read again.
            purse: the section whose budget pays; None for that of the track's grader.
            graders: the loaders of the track's graders, by name; None for this one alone.
        """
        self.folder = folder = folder_of(folder)
        self.graders: Mapping[str, TrackLoader] = {self.name: self} if graders is None else graders
        #: Who made it closes it.
        self._owns_shared = shared is None
        #: The section whose budget pays for what it grades.
        self.purse = purse or purse_of(folder.whole, folder.grader)
        self.shared = shared or SharedInputs(folder)
        self.track_grader = TrackGrader(folder, grader)
        self._inputs: InputReader | None = None
        self._grading: Grading | None = None
        self._opened = self.shared.opened
        self._seen_graded = 0
        self._sheets: Mapping[str, Sheet] = {}
        self._run_values: Mapping[str, ValueCache] = defaultdict(ValueCache)
        #: The track as it was loaded last, and the state of its inputs.
        self._last: tuple[object, Assessment] | None = None

    def __enter__(self) -> TrackLoader:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the store; what was loaded can say no raw answers any more."""
        self._forget_loaded()
        if self._owns_shared:
            self.shared.close()

    def _forget_loaded(self) -> None:
        self._sheets, self._last = {}, None

    def renew(self) -> None:
        """Forgets the grader and what it made where its recording changed since: it is another one."""
        if not self.track_grader.is_current():
            self._forget_loaded()
            self.track_grader, self._inputs, self._grading = TrackGrader(self.folder), None, None

    @property
    def config(self) -> TrackConfig:
        """The track's settings, on the scale of its grader.

        Raises:
            ConfigError: they do not go with that scale.
        """
        return self.track_grader.config

    @property
    def grader(self) -> Grader:
        """Who grades the track."""
        return self.track_grader.grader

    @property
    def kind(self) -> Kind:
        """What it grades.

        Raises:
            ConfigError: the grader asks about other things than the settings say.
        """
        return self.track_grader.kind

    @property
    def name(self) -> str:
        """The grader's name in the track."""
        return self.folder.grader or ONLY

    @property
    def inputs(self) -> InputReader:
        """Reads the track's files."""
        if self._inputs is None:
            grader = self.grader
            # The one grader of a track asks about whatever it can.
            one_of_several = self.folder.grader is not None
            self._inputs = InputReader(
                self.folder,
                grader.item_kinds & self.kind.item_kinds if one_of_several else grader.item_kinds,
                with_query=grader.needs_query_text,
                known_query_ids=grader.known_passages,
                shared=self.shared,
                kind=self.kind,
            )
        return self._inputs

    @property
    def store(self) -> GradeStore:
        """The grades; opened for reading only until `open_to_write`."""
        self._forget_closed()
        return self.shared.store

    def _forget_closed(self) -> None:
        """Forget what was loaded from a store that is closed by now."""
        if self._opened != self.shared.opened:
            self._forget_loaded()
            self._opened = self.shared.opened

    def let_go_of_lost_store(self) -> None:
        """Closes a store whose file is gone, or is another one by now; it is opened again."""
        if self.shared.lost:
            self.shared.close()

    def open_to_write(self) -> None:
        """Opens the store for writing, where it is not; what was loaded before must be loaded again.

        Raises:
            StoreError: it cannot be written.
        """
        self.shared.open_to_write()

    def load(
        self,
        hold: Collection[Path] = (),
        depth: int | None = None,
        bank_files: Sequence[Path] | None = None,
        *,
        bank_needed: bool = True,
    ) -> Assessment:
        """The current track; grades nothing. Where no input changed, it is the one of the last call.

        Args:
            hold: run files that are being written now.
            depth: ranks of each run that are pooled; None for the track's.
            bank_files: None for the track's. Only the track's own bank must have what its measures need.
            bank_needed: False gives a track without a bank, too: its queries have no items then.

        Raises:
            TrecexamError, ConversionError: the bank or the passages are missing or unreadable.
        """
        self.renew()
        if bank_needed and bank_files is None:
            self.inputs.check_bank()
        self._forget_closed()
        if self._seen_graded != self._graded:
            # Another section of trecexam.toml names the same grader, and it graded some of the cells.
            self._forget_loaded()
            self._seen_graded = self._graded
        if hold or depth or bank_files is not None:
            return self._load(hold, depth, bank_files)
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
    ) -> Assessment:
        check_measures(self.config, self.folder.config_path)
        inputs, digests = steady_inputs(self.inputs, hold, bank_files)
        n_runs = len(inputs.runs)
        inputs = inputs.of_runs(self._runs)
        left_out_runs = n_runs - len(inputs.runs)
        if bank_files is None:
            check_importance(self.config.measures(), inputs.bank, inputs.bank_files)
        depth = depth or self.config.track.depth
        pool = self._pool(inputs, depth)
        # Otherwise Arrow keeps what the pool was made with, twice what all runs take, for a while.
        pa.default_memory_pool().release_unused()
        judging, bank_and_pool = self.config.judging, (inputs.bank, pool.doc_ids, pool.keys)
        file_name, best = self.folder.shown(self.folder.overrides()), self.grader.scale.max_rating
        cited = inputs.asked.cited_by({row.query_id for _, row in inputs.human})
        overrides = resolve(inputs.human, file_name, *bank_and_pool, best, judging.rule, cited=cited)
        file_name = self.folder.shown(self.folder.judgments())
        scale = judging_scale(self.config, inputs.official)
        judgments = (
            Overrides()
            if scale is None
            else resolve(inputs.judged, file_name, *bank_and_pool, best, judging.rule, own_scale=scale)
        )
        grades = StoredGrades(self.store, self.grader, self.track_grader.kept_codes)
        self._sheets = sheets_of(self._sheets, grades, inputs.asked, pool, overrides)
        return Assessment(
            runs=inputs.runs,
            run_files=inputs.run_files,
            run_contents=inputs.run_contents,
            own_texts=inputs.own_texts,
            documents=inputs.documents,
            answers=inputs.answers,
            generated=inputs.generated,
            responses=inputs.responses,
            notes=(*inputs.notes, *pool.notes),
            bank_files=inputs.bank_files,
            query_texts=inputs.query_texts,
            official=inputs.official,
            official_leaderboard=inputs.official_leaderboard,
            own_queries=inputs.own_queries,
            rejected=inputs.rejected,
            pools=inputs.pools,
            asked=inputs.asked,
            human=inputs.human,
            judged=inputs.judged,
            name=self.name,
            kind=self.kind,
            folder=self.folder,
            config=self.config,
            grader=self.grader,
            depth=depth,
            pool=pool.queries,
            texts=pool.texts,
            sheets=self._sheets,
            overrides=overrides,
            judgments=judgments,
            judging_scale=scale,
            digests=digests,
            not_taken=(
                *inputs.rejected,
                *pool.rejected,
                *overrides.rejected,
                *judgments.rejected,
                *pool.no_text,
            ),
            grades=grades,
            run_values=self._run_values,
            left_out_runs=left_out_runs,
        )

    @property
    def _runs(self) -> Literal["all", "responses", "ranked"]:
        """Which of the track's runs are graded and ranked."""
        name = self.folder.grader
        if self.config.track.unit == "response":
            return "responses"
        return "all" if name is None else self.folder.whole.graders[name].runs

    def _pool(self, inputs: TrackInputs, depth: int) -> TrackPool:
        """The pool of these inputs, as other graders have it where they look at the same."""
        track, passages = self.config.track, self.grader.known_passages
        ids = None if passages is None else tuple((query, frozenset(of)) for query, of in passages.items())
        # Without passages a recording has the texts.
        recorded = None if self.folder.passages() else self.folder.recorded()
        texts = recorded and (recorded, stamp(recorded))
        of = (depth, self._runs, track.pool_judged, track.min_text, ids, texts, self.inputs.whole_answers)
        if of not in inputs.pools:
            passages_texts = self.shared.texts(self.folder)
            inputs.pools[of] = (
                track_pool(self.folder, inputs, self.grader, passages_texts, depth)
                if inputs.asked.citing is None
                else cited_pool(self.folder, inputs, self.grader, passages_texts)
            )
        pool: TrackPool = inputs.pools[of]
        return pool

    @property
    def _graded(self) -> int:
        """How many cells the grader graded since the track was opened, by whichever loader."""
        # With one loader nobody else grades.
        return self.shared.graded[identity_digest(self.grader.identity)] if self.shared.several else 0

    def refreshed(self, track: Assessment) -> Assessment:
        """The same track with the grades that came since for cells without one, or with an error."""
        grades = StoredGrades(self.store, self.grader)
        self._sheets = with_new_grades(track.sheets, grades)
        return self._followed(track, replace(track, sheets=self._sheets, grades=grades))

    def _followed(self, track: Assessment, fresh: Assessment) -> Assessment:
        """What comes after `track`; what else was loaded before may lack its grades."""
        is_last = self._last is not None and self._last[1] is track
        self._last = (self._last[0], fresh) if self._last is not None and is_last else None
        return fresh

    @property
    def grading(self) -> Grading:
        """The grader at work."""
        if self._grading is None:
            self._grading = Grading(
                self.grader,
                lambda: self.store,
                self.purse,
                lambda: (each.grader for each in sharing_budget(self.graders, self.purse, self.name)),
                lambda: AnswerFile(self.folder.answers_path).spent(self.purse),
            )
        return self._grading

    def grade(
        self,
        track: Assessment,
        progress: Callable[[Progress], None] | None = None,
        stop: Callable[[], bool] | None = None,
        only: Mapping[str, Collection[str]] | None = None,
    ) -> tuple[Assessment, Graded]:
        """Grades the cells that have no grade yet, see `Grading.run`; the track with its new grades.

        The track must be loaded with the store open to write.
        """
        track, section = self.with_new_settings(track), self.folder.section
        with naming(section):
            outcome = self.grading.run(track, progress, stop, only)
        self.shared.graded[identity_digest(self.grader.identity)] += outcome.cells
        self._seen_graded = self._graded
        if self.purse == section:
            outcome = outcome._replace(why=outcome.why.replace("[grader]", f"[{section}]"))
        track = self.refreshed(track)
        if none_is_read(track):
            self._remember_settings()
            # A grading that a person stopped goes on with the rest.
            # What others than models say (recordings) is no fault of a setting.
            if self.grader.free_text and (track.counts.unparsed >= FIRST or outcome.complete):
                why = "; ".join(filter(None, (outcome.why, nothing_read(track))))
                outcome = outcome._replace(complete=False, why=why)
        return track, outcome

    def with_new_settings(self, track: Assessment) -> Assessment:
        """Forget replies of which none could be read, where the grader's settings changed since."""
        if not none_is_read(track):
            return track
        before = recall(self.folder.unread_path).get(self._identity_digest)
        if before is None or before == self._settings_digest:
            return track
        track.grades.forget(track.sheets, UNREAD)
        fresh = self._followed(track, without_codes(track, UNREAD))
        self._sheets = fresh.sheets
        return fresh

    def _remember_settings(self) -> None:
        settings = {self._identity_digest: self._settings_digest}
        if recall(self.folder.unread_path) != settings:
            # Where that cannot be written, a change of settings goes unnoticed; --retry-errors asks again.
            with suppress(TrecexamError):
                remember(self.folder.unread_path, settings)

    @property
    def _identity_digest(self) -> str:
        return identity_digest(self.grader.identity).hex()

    @property
    def _settings_digest(self) -> str:
        """A digest of the grader's settings that can change an answer, in the identity or not."""
        return identity_digest(self.config.grader.model_dump(mode="json", exclude={*_PACE, *_MONEY})).hex()

    def estimate(self, track: Assessment, *, retry_errors: bool = False) -> Estimate:
        """What `grade` would take, of answers that are errors too if these are graded again."""
        return self.grading.estimate(without_errors(track) if retry_errors else track)

    def keep_codes(self, track: Assessment) -> None:
        """Keeps the codes of a loaded track for the next process, where its store is open to write."""
        kept_codes = self.track_grader.kept_codes
        if kept_codes is not None and self.store.write:
            codes_by_token = {sheet.token: sheet.codes for sheet in track.sheets.values()}
            kept_codes.write(self.store.at_rest(settle=True), codes_by_token)

    def forget_errors(self) -> int:
        """Drops the grader's answers with the status "error"; how many. The track must be loaded again.

        Where no reply can be read, all replies are dropped, too.
        """
        n_replies = 0
        # Without a bank, there are no cells.
        with suppress(TrecexamError, ConversionError):
            track = self.load()
            n_replies = track.grades.forget(track.sheets, UNREAD) if none_is_read(track) else 0
        self._forget_loaded()
        grader_id = StoredGrades(self.store, self.grader).grader_id
        return n_replies + (0 if grader_id is None else self.store.forget(grader_id, "error"))


def sharing_budget(loaders: Mapping[str, TrackLoader], purse: str, beside: str = "") -> Iterator[Grading]:
    """Yield the gradings that the budget of a section pays for, without the grader named `beside`."""
    for name in loaders:
        # A grader that cannot be made asks for nothing.
        with suppress(TrecexamError, ConversionError):
            loader = loaders[name]
            if name != beside and loader.purse == purse:
                yield loader.grading


#: How often inputs are read where some are replaced meanwhile.
_READINGS = 3


def steady_inputs(
    reader: InputReader, hold: Collection[Path], bank_files: Sequence[Path] | None
) -> tuple[TrackInputs, Mapping[str, str]]:
    """The inputs, and file -> sha256 (hex) of what was read of it.

    Raises:
        TrecexamError, ConversionError: see `InputReader.read`.
    """
    changed: set[Path] = set()
    for _ in range(_READINGS):
        before = reader.stamps(bank_files)
        inputs, digests = reader.read(hold, bank_files), reader.digests(hold, bank_files)
        after = reader.stamps(bank_files)
        changed = {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
        changed -= set(hold)
        if not changed:
            break
    # Of a file that is replaced again and again none of its contents is known: the next update reads it.
    unknown = {reader.folder.shown(path): f"changed while it was read, {uuid4()}" for path in changed}
    return inputs, {**digests, **unknown}
