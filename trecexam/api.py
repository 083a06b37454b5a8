"""A track from Python: everything a command does is a call."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from converters.errors import ConversionError
from trecexam import accessors as groups
from trecexam.calls import named_as_called, on_graded, on_loaded, on_track
from trecexam.chosen import chosen_grader, took
from trecexam.errors import TrackError, TrecexamError, did_you_mean
from trecexam.extension import accessors, named
from trecexam.features.agreement.agreement import track_agreement
from trecexam.features.exporting import exports
from trecexam.features.fill.teaching import learned_leaderboard
from trecexam.features.holes.holes import holes_report
from trecexam.features.leaderboard.differences import differences
from trecexam.features.leaderboard.joint import joint_leaderboard
from trecexam.files.track_lock import TrackLock
from trecexam.graders.base import Estimate
from trecexam.line.evaluation import leaderboard
from trecexam.line.grading import Progress
from trecexam.line.loaded_track import TrackLoaders, of_each
from trecexam.line.loader import TrackLoader
from trecexam.line.status import Status, joint_status, status_line, status_of
from trecexam.of_extensions import OfExtensions
from trecexam.outputs.plotting import plot, plot_of_all
from trecexam.outputs.update_all import update_all
from trecexam.outputs.updates import Update
from trecexam.scores.leaderboard import Leaderboard
from trecexam.scores.measures import measure
from trecexam.track import TrackFolder

if TYPE_CHECKING:
    from trecexam.graders import Grader
    from trecexam.line.measure_names import Measures


def open_track(
    root: Path | str,
    *,
    grader: Grader | None = None,
    graders: Mapping[str, Grader] | None = None,
    trust_code: bool = False,
) -> Track:
    """The track in folder `root`.

    Args:
        grader: a grader of your own in place of the one that trecexam.toml names.
        graders: of a track that has several, graders of your own in place of those of these names.
        trust_code: run code that trecexam.toml names (`metric = "module:function"`): read it first.

    Raises:
        TrecexamError: it is no track folder, or its trecexam.toml is wrong.
    """
    folder = TrackFolder.open(root, trust_code=trust_code)
    return Track(TrackLoaders(folder, grader, graders=graders), chosen_grader.get())


@named_as_called
class Track(OfExtensions):
    """One track folder. What is read and computed is kept, so asking twice is cheap.

    The methods that read (`leaderboard`, `qrels` ...) use the grades that are in the store and never
    run a grader; `update` does. Of a track with several graders, `track["NAME"]` is what one of them says.
    """

    def __init__(self, loaders: TrackLoaders, grader: str | None = None) -> None:
        """Args: grader: the name of the one that is meant; None for the track as a whole."""
        if not isinstance(loaders, TrackLoaders):
            raise TrecexamError(f'use trecexam.open_track("{loaders}") to open a track folder')
        self._loaders = loaders
        self._grader = grader
        # Settings that do not go together are said here, and not by the first call.
        self.folder = (loaders.first if grader is None else loaders[grader]).folder

    def __getitem__(self, grader: str) -> Track:
        """The same track as one of its graders sees it.

        Raises:
            TrackError: there is no grader of this name, or it is no name.
        """
        if not isinstance(grader, str):
            raise TrackError(f"track[{grader!r}]: give a grader's name, one of {', '.join(self.graders)}")
        return Track(self._loaders, grader)

    @property
    def _loader(self) -> TrackLoader:
        """That of the grader that is meant, else of the first that can go on."""
        if not self._is_joint:
            return self._loaders[self._grader or self.graders[0]]
        loader = self._loaders.first_asked()
        took(loader.name, self.graders)
        return loader

    @property
    def _is_joint(self) -> bool:
        """Whether several graders are meant."""
        return self._grader is None and len(self._loaders) > 1

    @property
    def graders(self) -> tuple[str, ...]:
        """The names of those who grade it, in the order of trecexam.toml."""
        return tuple(self._loaders)

    def __iter__(self) -> Iterator[str]:
        """The names of its graders: `"umbrela" in track`, `for name in track`."""
        return iter(self.graders)

    def __enter__(self) -> Track:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the store; also done at the end of a `with` block."""
        self._loaders.close()

    @property
    def name(self) -> str:
        """The name of its folder."""
        return self.folder.root.resolve().name

    @property
    def queries(self) -> dict[str, str]:
        """query_id -> the query's text, of those that means are over; "" where none is known."""
        track = self._loader.load()
        return {query_id: track.query_texts.get(query_id, "") for query_id in track.bank.query_ids}

    @property
    def measures(self) -> tuple[str, ...]:
        """The leaderboard's own measures; the first orders it. Of several graders as `NAME:MEASURE`."""
        if not self._is_joint:
            return tuple(str(measure(each)) for each in self._loader.load().measures)
        of_each = self._loaders.load().assessments.items()
        return tuple(f"{name}:{measure(column)}" for name, each in of_each for column in each.measures)

    def __repr__(self) -> str:
        try:
            return f"<Track {self.name!r}: {status_line(self.status())}>"
        except (TrecexamError, ConversionError) as error:
            return f"<Track {self.name!r}, which cannot be read: {error}>"

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """What an extension adds by this name: `track.exam`, `track.bank`.

            Raises:
                AttributeError: none does; it names what there is in its place.
            """
            at = None if name.startswith("_") else accessors().get(name)
            if at is None:
                public = [each for each in dir(self) if not each.startswith("_")]
                hint = did_you_mean(name, public, "dir(track) names what it has")
                hint = f'use track["{name}"]' if name in self.graders else hint
                raise AttributeError(f"a track has no '{name}'; {hint}")
            made = self.__dict__[name] = named(at)(self)
            return made

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *accessors()})

    # Runs, grading, and what there is.

    def update(
        self,
        *,
        progress: Callable[[Progress], None] | None = None,
        stop: Callable[[], bool] | None = None,
        doing: Callable[[str], None] = lambda stage: None,
        regrade: bool = False,
    ) -> Update:
        """Grades what has no grade yet and writes `out/`: what `trecexam watch --once` does.

        Args:
            progress: called after each graded batch.
            doing: called with what is done next: reading, grading, each output.
            regrade: where the store is gone, cells that were graded once may be graded again by a grader that
                costs.

        Raises:
            LockedError: a daemon is running on this track.
            StoreError: the store is gone or an older one, and what it had would be paid for again.
            TrecexamError, ConversionError: with the reason.
        """
        with TrackLock(self.folder.lock_path):
            return update_all(
                self._loaders,
                progress,
                stop,
                only=self._grader,
                doing=doing,
                regrade=regrade,
            )

    def estimate(self, *, retry_errors: bool = False) -> Estimate:
        """What `update` would have to grade: cells and, with a server, calls, tokens and money.
        Asks nobody. Of several graders it is the sum of those that can go on.

        Args:
            retry_errors: as if answers that are errors were forgotten, see `grading.forget_errors`.

        Raises:
            TrecexamError, ConversionError: none can.
        """
        if not self._is_joint:
            return self._loader.estimate(self._loader.load(), retry_errors=retry_errors)
        each_one = of_each(self._loaders, lambda each: each.estimate(each.load(), retry_errors=retry_errors))
        return reduce(Estimate.plus, each_one)

    def status(self) -> Status:
        """What the track holds, how far grading is, and who grades it now; of several graders each, and the
        sum.
        """
        return joint_status(self._loaders) if self._is_joint else status_of(self._loader)

    @property
    def grading(self) -> groups.Grading:
        """How far grading is, and what it takes: `counts()`, `grade()`, `estimate_time()` ..."""
        return groups.Grading(self)

    @property
    def files(self) -> groups.Files:
        """What was read: `runs()`, `rejected()` ..."""
        return groups.Files(self)

    @property
    def export(self) -> groups.Export:
        """What other tools take: data frames, subtopics, the pool."""
        return groups.Export(self)

    @property
    def correlate(self) -> groups.Correlate:
        """How far the grades agree with the official side: `correlate()`."""
        return groups.Correlate(self)

    @property
    def fill(self) -> groups.Fill:
        """Fills judgment holes: `fill(fill.find())`."""
        return groups.Fill(self)

    @property
    def verify(self) -> groups.Verify:
        """What the scores are made of: `verify.grading()`, `grid()`, `missing()`, `spurious()` ..."""
        return groups.Verify(self)

    @property
    def override(self) -> groups.Override:
        """A person's rating in place of the grader's: `override(...)`; `override.ratings()` has them."""
        return groups.Override(self)

    # Scores, and how far they agree with the official side.

    _graded_leaderboard = on_track(joint_leaderboard, leaderboard)
    _learned_leaderboard = on_loaded(learned_leaderboard)

    def leaderboard(
        self,
        measures: Measures | None = None,
        *,
        official: bool = False,
        runs: Collection[str] | None = None,
        labels: Literal["learned"] | None = None,
    ) -> Leaderboard:
        """Return means and standard errors per run, best first.

        Means are over all queries of the bank (official: of the judgments), as trec_eval -c. Of several
        graders the columns of each stand side by side, each over that grader's own queries.

        Args:
            measures: one or several; None for the track's own. Of several graders `NAME:MEASURE`.
            official: use the official judgments instead of the grades; the track needs no bank.
            runs: the runs that are shown, None for all.
            labels: "learned": expected nDCG@10 and AP, with the labels that `track.learn` wrote for missing
                judgments.

        Raises:
            TrecexamError: there is no such run; there are no official judgments or learned labels; or the
                arguments do not go together.
            ValueError: a measure cannot be computed.
        """
        if labels is None and not official:
            return self._graded_leaderboard(measures, runs=runs)
        if labels is None:
            name = None if self._is_joint else self._grader or self.graders[0]
            return leaderboard(self._loaders.load_judged(name), measures, official=True, runs=runs)
        if labels != "learned":
            raise TrecexamError(f"labels = {labels!r}: give 'learned'")
        if measures is not None:
            raise TrecexamError("learned labels give expected nDCG@10 and AP alone: leave out the measures")
        if official:
            raise TrecexamError(
                "learned labels are added to the official judgments: ask for `labels` or `official`, not both"
            )
        return self._learned_leaderboard(runs=runs)

    compare = on_graded(differences)
    per_query = on_loaded(exports.per_query)
    qrels = on_loaded(exports.qrels)
    grades = on_loaded(exports.grades)

    agreement = on_graded(track_agreement, human=False)
    holes = on_loaded(holes_report)
    plot = on_loaded(plot, plot_of_all)
