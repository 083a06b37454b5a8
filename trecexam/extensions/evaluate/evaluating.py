"""Evaluation of runs in one call without a track folder, for notebooks and pipelines."""

from __future__ import annotations

import dataclasses
import shutil
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from converters.errors import ConversionError
from trecexam.config import CONFIG_NAME, TrackConfig
from trecexam.errors import TrecexamError, plain_reason
from trecexam.extensions.evaluate.inputs import bank_files, grades_file, qrels_file, texts_file
from trecexam.extensions.evaluate.rows import PassageRow, QueryRow
from trecexam.extensions.evaluate.runs import add_runs, run_files
from trecexam.folder import TrackFolder
from trecexam.graders import Grader
from trecexam.grades.grading import Progress
from trecexam.grades.official import why_unjudged
from trecexam.grades.open_track import OpenTrack
from trecexam.inputs.track_graders import Measures
from trecexam.results.frames import Library
from trecexam.results.notes import LOST, Note, ranked
from trecexam.results.result import Result
from trecexam.results.table import Table
from trecexam.scaffold import Sources, make_track
from trecexam.scores.leaderboard import Leaderboard
from trecexam.track import Track, selection

if TYPE_CHECKING:
    from trecexam.features.correlation.comparison import LeaderboardComparison

#: Beginning of a track's error message -> what to do in a call of `evaluate`.
_REMEDIES = {
    "no test bank": "give `bank`, a file, rows, or a dict query_id -> list of questions",
    "nothing to compare": "give `official`, a file, rows, or a dict query_id -> doc_id -> label",
}


@dataclasses.dataclass(frozen=True, eq=False)
class Evaluation(Result, AbstractContextManager["Evaluation"]):
    """Evaluated runs: the leaderboard and its track.

    Attributes:
        leaderboard: leaderboard of the given runs by the given measures.
        notes: notes of the leaderboard on rejected inputs and on how to read the numbers.
        track: the track with all its methods. `close` removes a temporary track.
        close: closes the track, and removes a temporary one; also called at the end of a `with` block.
        is_temporary: True if the track is in a temporary folder.
    """

    leaderboard: Leaderboard
    notes: tuple[str, ...]
    track: Track
    close: Callable[[], object]
    is_temporary: bool

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _declare(self) -> Mapping[str, Table]:
        return self.leaderboard.tables

    def _for_people(self, *, wide: bool = False) -> tuple[Table, ...]:
        return self.leaderboard._for_people(wide=wide)

    def correlate(
        self,
        measures: Measures | None = None,
        official_measures: Measures | None = None,
        **options: Any,
    ) -> LeaderboardComparison:
        """Correlate measures (None: the leaderboard's) with the official side, see `Track.correlate`."""
        with _in_words_of_the_call(self.track.folder.root if self.is_temporary else None):
            return self.track.correlate(measures or self.leaderboard.measures, official_measures, **options)

    def per_query(self, *, library: Library = "pandas") -> Any:
        """Return the leaderboard's values by query: `Track.per_query` of its measures and runs."""
        board = self.leaderboard
        return self.track.per_query(board.measures, runs=[row.run for row in board.rows], library=library)


def evaluate(
    runs: Any,
    bank: Any = None,
    passages: Any = None,
    *,
    queries: Any = None,
    official: Any = None,
    dataset: str | None = None,
    grader: str | Grader | None = None,
    recorded: Any = None,
    measures: Measures | None = None,
    settings: Mapping[str, Mapping[str, Any]] | None = None,
    folder: Path | str | None = None,
    replace: bool = False,
    progress: Callable[[Progress], None] | None = None,
) -> Evaluation:
    """Grade and evaluate runs, with the same values as in a track folder; print nothing.

    Args:
        runs: a dict name -> run, each a file, a data frame, records or a dict of dicts (see
            `Track.add_run`); a folder of run files, or a list of them; or rows of all runs, as one data frame
            or dicts, with `run`, `query_id`, `doc_id` and `score`.
        bank: the test bank: a file or several, a dict query_id -> questions, or rows; see
            `trecexam.extensions.evaluate.inputs.bank_files`.
        passages: a file, a dict doc_id -> text, a data frame or records with `doc_id` and `text`.
        queries: a file, a dict query_id -> text, a data frame or records with `query_id` and `text`.
        official: judgments by people: a file, a dict query_id -> doc_id -> label, a data frame or records
            with `query_id`, `doc_id` and `relevance`; used by `track.correlate` and similar methods.
        dataset: an ir_datasets id that replaces queries, passages and judgments.
        grader: name of a grader (see `trecexam graders`), or your own grader object. None: "embedding", or
            "recorded" with `recorded`; for an existing track, the grader in its settings.
        recorded: existing grades: a file, or rows as from `Track.grades`.
        measures: measure names, the first orders the runs; None for the track's own.
        settings: settings of trecexam.toml: section -> setting -> value, as {"track": {"depth": 10}}.
        folder: folder of a permanent track with grades and out/; a second call grades only new cells.
            Recommended for paid graders. None for a temporary folder.
        replace: allow replacing runs of the same names in the folder.
        progress: called after each graded batch.

    Raises:
        TrecexamError: with the reason in one line; with `folder`, grades so far are stored.
    """
    grader_object: object = grader
    if not isinstance(grader_object, str | Grader | None):
        what = "class" if isinstance(grader_object, type) else type(grader_object).__name__
        raise TrecexamError(f"grader: give a grader or its name, not a {what}")
    try:
        TrackConfig.model_validate(settings or {})
    except ValidationError as error:
        wrong = error.errors()[0]
        raise TrecexamError(f"settings: {'.'.join(map(str, wrong['loc']))}: {plain_reason(wrong)}") from None
    scratch = Path(mkdtemp(prefix="trecexam-"))
    temporary = scratch / "track" if folder is None else None
    root = temporary or Path(folder or "")
    with ExitStack() as undo, _in_words_of_the_call(temporary):
        undo.callback(shutil.rmtree, scratch, ignore_errors=True)
        sources = Sources(
            queries=None if queries is None else texts_file(queries, QueryRow, "queries", scratch),
            bank=() if bank is None else bank_files(bank, scratch),
            passages=None if passages is None else texts_file(passages, PassageRow, "passages", scratch),
            qrels=None if official is None else qrels_file(official, scratch),
            recorded=None if recorded is None else grades_file(recorded, scratch),
            dataset=dataset,
            grader=grader if isinstance(grader, str) else None,
            link=folder is None,
            settings={section: dict(values) for section, values in (settings or {}).items()},
        )
        if sources != Sources(link=sources.link) or not (root / CONFIG_NAME).exists():
            make_track(root, sources)
        # Trust code that the caller's settings name.
        opened = TrackFolder.open(root, trust_code=folder is None or settings is not None)
        paths = add_runs(opened, run_files(runs), replace=replace)
        loaders = OpenTrack(opened, None if isinstance(grader, str) else grader)
        undo.callback(loaders.close)
        track = Track(loaders)
        board = _graded(track, paths, measures, progress, outputs=folder is not None)
        cleanup = undo.pop_all()
    if folder is not None:
        shutil.rmtree(scratch, ignore_errors=True)
        return Evaluation(board, board.notes, track, track.close, is_temporary=False)
    # The folder is removed when the last reference to the track is gone.
    return Evaluation(board, board.notes, track, weakref.finalize(track, cleanup.close), is_temporary=True)


@contextmanager
def _in_words_of_the_call(temporary: Path | None) -> Iterator[None]:
    """Convert errors on files to TrecexamErrors, without the path of a temporary folder."""
    try:
        yield
    except (ConversionError, TrecexamError) as error:
        if temporary is None and isinstance(error, TrecexamError):
            raise
        for start, remedy in _REMEDIES.items() if temporary else ():
            if error.reason.startswith(start):
                raise TrecexamError(f"{start}: {remedy}") from None
        path = f"{error.path or ''}/".removeprefix(f"{temporary}/").removesuffix("/")
        raise TrecexamError(error.reason, path=path or None, line=error.line) from None


def _graded(
    track: Track,
    paths: Sequence[Path],
    measures: Measures | None,
    progress: Callable[[Progress], None] | None,
    *,
    outputs: bool,
) -> Leaderboard:
    """Grade all cells, and return the leaderboard of the runs in these files."""
    names = {path: name for name, path in track.files.runs().items()}
    if other_runs := {track.folder.shown(path): path for path in paths if path not in names}:
        for row in track.files.rejected():
            if row.file in other_runs:
                raise TrecexamError(row.reason, path=other_runs[row.file], line=row.line)
    runs = [names[path] for path in paths]
    # Fail on an impossible measure before hours of grading.
    track.leaderboard(measures, runs=runs)
    done = (track.update if outputs else track.grading.grade)(progress=progress)
    if not done.complete:
        raise TrecexamError(done.why or "grading was stopped", path=track.folder.root)
    board = track.leaderboard(measures, runs=runs)
    loaded = selection(track).loaders.first.load()
    unjudged = None if loaded.official is None else why_unjudged(loaded)
    notes = (
        *board.notes,
        *(() if unjudged is None else (unjudged,)),
        *(Note(str(row), LOST) for row in track.files.rejected()),
        *track.status().notes,
    )
    return dataclasses.replace(board, notes=(*ranked(notes),))
