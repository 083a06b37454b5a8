"""Evaluates runs in one call without a track folder, for notebooks and pipelines."""

from __future__ import annotations

import dataclasses
import shutil
import weakref
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from numbers import Real
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from converters.errors import ConversionError
from trecexam.config import CONFIG_NAME, TrackConfig
from trecexam.errors import TrecexamError, plain_reason
from trecexam.extensions.evaluate.inputs import bank_files, grades_file, qrels_file, texts_file
from trecexam.extensions.evaluate.runs import add_runs, runs_by_name
from trecexam.folder import TrackFolder
from trecexam.graders import Grader
from trecexam.grades.grading import Progress
from trecexam.grades.official import why_unjudged
from trecexam.grades.open_track import OpenTrack
from trecexam.inputs.track_graders import Measures, names_of
from trecexam.results.frames import Framed, Library
from trecexam.results.text import LOST, Note, rank_of
from trecexam.scaffold import Sources, make_track
from trecexam.scores.leaderboard import Leaderboard
from trecexam.track import Track, selection

if TYPE_CHECKING:
    from trecexam.features.correlation.comparison import LeaderboardComparison


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Evaluation(Framed):
    """Evaluated runs. As a data frame and in a notebook it is the leaderboard.

    Attributes:
        leaderboard: of the runs that were given, by the measures that were given.
        track: the track beneath, with all its calls. A temporary one is removed with it, or by `close`.
    """

    leaderboard: Leaderboard
    track: Track
    _remove: Callable[[], object] | None = dataclasses.field(default=None, repr=False)

    def __repr__(self) -> str:
        return repr(self.leaderboard)

    def columns(self) -> Mapping[str, Any]:
        """Return the columns of the leaderboard."""
        return self.leaderboard.columns()

    @property
    def notes(self) -> tuple[str, ...]:
        """The leaderboard's notes: which inputs were rejected, and how to read the numbers."""
        return self.leaderboard.notes

    def correlate(
        self,
        measures: Measures | None = None,
        official_measures: Measures | None = None,
        **options: Any,
    ) -> LeaderboardComparison:
        """Correlate measures (None: the leaderboard's) with the official side, see `Track.correlate`."""
        return self.track.correlate(measures or self.leaderboard.measures, official_measures, **options)

    def per_query(self, *, library: Library = "pandas") -> Any:
        """The values that the leaderboard averages: `Track.per_query` of its measures and runs."""
        board = self.leaderboard
        return self.track.per_query(board.measures, runs=[row.run for row in board.rows], library=library)

    def close(self) -> None:
        """Closes the track, and removes a temporary one."""
        self.track.close()
        if self._remove is not None:
            self._remove()

    def __enter__(self) -> Evaluation:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _repr_html_(self) -> str:
        return self.leaderboard._repr_html_()


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
    """Grade and evaluate runs; the values are the same as in a track folder. Nothing is printed.

    Args:
        runs: a dict name -> run, each a file, a data frame, records or a dict of dicts (see
            `Track.add_run`); a folder of run files, or a list of them; or one data frame with the columns
            `run`, `query_id`, `doc_id` and `score`.
        bank: the test bank: a file or several, a dict query_id -> questions, rows, or items; see
            `trecexam.extensions.evaluate.inputs.bank_files`.
        passages: a file, a dict doc_id -> text, a data frame or records with `doc_id` and `text`.
        queries: a file, a dict query_id -> text, a data frame or records with `query_id` and `text`.
        official: judgments by people: a file, a dict query_id -> doc_id -> label, a data frame or records
            with `query_id`, `doc_id` and `relevance`; what `track.correlate` and others compare with.
        dataset: an ir_datasets id that replaces queries, passages and judgments.
        grader: the name of one (`trecexam graders`), or one of your own. None: "embedding", or "recorded"
            with `recorded`; in a folder that is a track already, the one that its settings name.
        recorded: grades that were made before: a file, or rows as `Track.grades` gives them.
        measures: None for the track's own; the first orders the runs.
        settings: those of trecexam.toml, section -> setting -> value, as {"track": {"depth": 10}}.
        folder: the track is made here and stays, grades too, with what an update writes in out/. Called
            again, it grades new cells only. Name one where a grader costs. None: a temporary folder.
        replace: runs of these names that are in the folder already may be replaced.
        progress: called after each graded batch.

    Raises:
        TrecexamError: with the reason in one line; with `folder`, what was graded is stored.
    """
    first = next(iter(runs.values()), None) if isinstance(runs, Mapping) else None
    if isinstance(first, Mapping) and all(isinstance(score, Real) for score in first.values()):
        # Query ids instead of names: the dict is one run.
        raise TrecexamError('runs: this dict is one run, query_id -> doc_id -> score; give {"NAME": run}')
    given: object = grader
    if not isinstance(given, str | Grader | None):
        what = "class" if isinstance(given, type) else type(given).__name__
        raise TrecexamError(f"grader: give a grader or its name, not a {what}")
    try:
        TrackConfig.model_validate(settings or {})
    except ValidationError as error:
        wrong = error.errors()[0]
        raise TrecexamError(f"settings: {'.'.join(map(str, wrong['loc']))}: {plain_reason(wrong)}") from None
    scratch = Path(mkdtemp(prefix="trecexam-"))
    root = scratch / "track" if folder is None else Path(folder)
    with ExitStack() as undo:
        undo.callback(shutil.rmtree, scratch, ignore_errors=True)
        try:
            qrels = None if official is None else qrels_file(official, scratch)
            sources = Sources(
                queries=None if queries is None else texts_file(queries, "queries", scratch),
                bank=() if bank is None else bank_files(bank, scratch),
                passages=None if passages is None else texts_file(passages, "passages", scratch),
                qrels=qrels,
                recorded=None if recorded is None else grades_file(recorded, scratch),
                dataset=dataset,
                grader=grader if isinstance(grader, str) else None,
                link=folder is None,
                settings={section: dict(values) for section, values in (settings or {}).items()},
            )
            if sources != Sources(link=sources.link) or not (root / CONFIG_NAME).exists():
                make_track(root, sources)
            # Code that the caller's own settings name is the caller's.
            opened = TrackFolder.open(root, trust_code=folder is None or settings is not None)
            paths = add_runs(opened, runs_by_name(runs), replace=replace)
            loaders = OpenTrack(opened, None if isinstance(grader, str) else grader)
            undo.callback(loaders.close)
            track = Track(loaders)
            board = _graded(track, paths, measures, progress, outputs=folder is not None)
        except (ConversionError, TrecexamError) as error:
            if folder is not None and isinstance(error, TrecexamError):
                raise
            if error.reason.startswith("no test bank"):
                reason = "no test bank: give `bank`, a file, rows, or a dict query_id -> list of questions"
                raise TrecexamError(reason) from None
            # The path of the temporary folder is useless to the caller.
            path = f"{error.path or ''}/".removeprefix(f"{root}/").removesuffix("/")
            raise TrecexamError(error.reason, path=path or None, line=error.line) from None
        kept = undo.pop_all()
    if folder is not None:
        shutil.rmtree(scratch, ignore_errors=True)
        return Evaluation(board, track)
    # The folder is removed when nothing refers to the track any more.
    return Evaluation(board, track, weakref.finalize(track, kept.close))


def _graded(
    track: Track,
    paths: Mapping[str, Path],
    measures: Measures | None,
    progress: Callable[[Progress], None] | None,
    *,
    outputs: bool,
) -> Leaderboard:
    """Grade all cells, and return the leaderboard of these runs."""
    files = track.files.runs()
    for name, path in paths.items():
        if files.get(name) != path:
            reasons = (row.reason for row in track.files.rejected() if row.file == track.folder.shown(path))
            reason = next(reasons, f"gets another name in the track, because another file has run '{name}'")
            raise TrecexamError(f"run '{name}': {reason}", path=path)
    try:
        names = names_of(measures)
        # A measure that cannot be computed shows before hours of grading go by.
        track.leaderboard(names, runs=paths)
    except ConversionError:
        raise
    except ValueError as error:
        raise TrecexamError(str(error)) from None
    done = (track.update if outputs else track.grading.grade)(progress=progress)
    if not done.complete:
        raise TrecexamError(done.why or "grading was stopped", path=track.folder.root)
    board = track.leaderboard(names, runs=paths)
    loaded = selection(track).loaders.first.load()
    unjudged = None if loaded.official is None else why_unjudged(loaded)
    notes = (
        *board.notes,
        *(() if unjudged is None else (unjudged,)),
        *(Note(str(row), LOST) for row in track.files.rejected()),
        *track.status().notes,
    )
    return dataclasses.replace(board, notes=(*sorted(notes, key=rank_of),))
