"""Evaluates runs in one call without a track folder, for notebooks and pipelines."""

from __future__ import annotations

import dataclasses
import shutil
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from converters.errors import ConversionError
from trecexam.config import CONFIG_NAME, TrackConfig
from trecexam.errors import TrecexamError, plain_reason
from trecexam.extensions.evaluate.content import bank_files, input_file, run_files
from trecexam.folder import TrackFolder
from trecexam.graders import Grader
from trecexam.grades.grading import Progress
from trecexam.grades.official import why_unjudged
from trecexam.grades.open_track import OpenTrack
from trecexam.inputs.track_graders import Measures, names_of
from trecexam.results.frames import Framed, Library
from trecexam.results.text import LOST, Note, rank_of
from trecexam.scaffold import Sources, add_runs, make_track
from trecexam.scores.leaderboard import Leaderboard
from trecexam.track import Track, selection

if TYPE_CHECKING:
    from trecexam.features.correlation.comparison import LeaderboardComparison

#: Beginnings of errors that tell the owner of a folder which file to put there -> what a caller does.
_REMEDIES = {
    "no test bank": "give `bank`, a file, rows, or a dict query_id -> list of questions",
    "nothing to compare": "give `official`, a file, rows, or a dict query_id -> doc_id -> label",
}


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Evaluation(Framed):
    """Evaluated runs. As a data frame and in a notebook it is the leaderboard.

    Attributes:
        leaderboard: of the runs that were given, by the measures that were given.
        track: the track beneath, with all its calls. A temporary one is removed with it, or by `close`.
    """

    leaderboard: Leaderboard
    track: Track
    _temporary: Path | None
    _close: Callable[[], object]

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
        self, measures: Measures | None = None, official_measures: Measures | None = None, **options: Any
    ) -> LeaderboardComparison:
        """Correlate measures (None: the leaderboard's) with the official side, see `Track.correlate`."""
        with _in_words_of_the_call(self._temporary):
            return self.track.correlate(measures or self.leaderboard.measures, official_measures, **options)

    def per_query(self, *, library: Library = "pandas") -> Any:
        """The values that the leaderboard averages: `Track.per_query` of its measures and runs."""
        board = self.leaderboard
        return self.track.per_query(board.measures, runs=[row.run for row in board.rows], library=library)

    def close(self) -> None:
        """Close the track, and remove a temporary one."""
        self._close()

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
            `Track.add_run`); a folder of run files, or a list of them; or a data frame or records of all
            runs with `run`, `query_id`, `doc_id` and `score`.
        bank: the test bank: a file or several, a dict query_id -> questions, rows, or items; see
            `trecexam.extensions.evaluate.content.bank_files`.
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
    given: object = grader
    if not isinstance(given, str | Grader | None):
        raise TrecexamError(f"grader: give a grader or its name, not {given!r:.60}")
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
            queries=input_file("queries", queries, scratch),
            bank=bank_files(bank, scratch),
            passages=input_file("passages", passages, scratch),
            qrels=input_file("official", official, scratch),
            recorded=input_file("recorded", recorded, scratch),
            dataset=dataset,
            grader=grader if isinstance(grader, str) else None,
            link=folder is None,
            settings={section: dict(values) for section, values in (settings or {}).items()},
        )
        if sources != Sources(link=sources.link) or not (root / CONFIG_NAME).exists():
            make_track(root, sources)
        # Code that the caller's own settings name is the caller's.
        opened = TrackFolder.open(root, trust_code=folder is None or settings is not None)
        paths = add_runs(opened, run_files(runs), replace=replace)
        loaders = OpenTrack(opened, None if isinstance(grader, str) else grader)
        undo.callback(loaders.close)
        track = Track(loaders)
        names = _accepted(track, paths)
        # A measure that cannot be computed shows before hours of grading go by.
        measures = names_of(measures)
        track.leaderboard(measures, runs=names)
        done = (track.grading.grade if temporary else track.update)(progress=progress)
        if not done.complete:
            raise TrecexamError(done.why or "grading was stopped", path=root)
        board = _with_notes(track.leaderboard(measures, runs=names), track)
        # A temporary folder is removed when nothing refers to the track any more.
        return Evaluation(board, track, temporary, weakref.finalize(track, undo.pop_all().close))


@contextmanager
def _in_words_of_the_call(temporary: Path | None) -> Iterator[None]:
    """Raise errors as TrecexamErrors; those on a temporary track say what to give, and not its folder."""
    try:
        yield
    except (ConversionError, TrecexamError) as error:
        if temporary is None and isinstance(error, TrecexamError):
            raise
        for reason, remedy in _REMEDIES.items() if temporary else ():
            if error.reason.startswith(reason):
                raise TrecexamError(f"{reason}: {remedy}") from None
        path = f"{error.path or ''}/".removeprefix(f"{temporary}/").removesuffix("/")
        raise TrecexamError(error.reason, path=path or None, line=error.line) from None


def _accepted(track: Track, paths: Sequence[Path]) -> list[str]:
    """Return the names of the runs in these files; raise a TrecexamError where one is rejected."""
    names = {path: name for name, path in track.files.runs().items()}
    for row in track.files.rejected():
        path = track.folder.root / row.file
        if path in paths and path not in names:
            raise TrecexamError(f"run '{path.stem}': {row.reason}", path=path)
    return [names[path] for path in paths]


def _with_notes(board: Leaderboard, track: Track) -> Leaderboard:
    """Return the leaderboard with the track's notes, and a note on each rejected input."""
    loaded = selection(track).loaders.first.load()
    unjudged = None if loaded.official is None else why_unjudged(loaded)
    rejected = (Note(str(row), LOST) for row in track.files.rejected())
    notes = [*board.notes, *rejected, *track.status().notes, *([unjudged] if unjudged else [])]
    return dataclasses.replace(board, notes=tuple(sorted(notes, key=rank_of)))
