"""Fills judgment holes: finds them, chooses the rule for their labels, merges, and says who said what."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from trecexam.errors import GraderError, TrecexamError
from trecexam.features.fill.arithmetic.merging import holes_of
from trecexam.features.fill.filled import Filled, FillRequest, HolesToFill
from trecexam.features.fill.ways import check_request, choose_way, constant_label
from trecexam.features.fill.with_grader import choose_rule, merged_with_grader
from trecexam.features.fill.without_grader import merged_without_grader, rule_in_words
from trecexam.files.track_lock import TrackLock
from trecexam.learning.verdict import GRADER
from trecexam.line.grading import Progress, count_missing
from trecexam.line.loader import TrackLoader
from trecexam.line.lost_grades import refuse_lost_grades
from trecexam.line.official import Official, official_judgments, read_official
from trecexam.line.pool import pool
from trecexam.line.sources import LEARNED_IDENTITY, sources_beside, written_by
from trecexam.tables.text import plural, shorten_list

if TYPE_CHECKING:
    from trecexam.features.fill.arithmetic.scale_map import RuleName, ScaleMap
    from trecexam.files.stamps import Rejected
    from trecexam.line.loaded import LoadedTrack

#: What the second column of plain qrels holds.
NO_SUBTOPIC = frozenset(("0", "Q0"))


def check_outputs(
    inputs: Collection[Path], state: Path, to_fill: HolesToFill, output: Path, sources: Path
) -> None:
    """Refuses to write over the official judgments, by whatever name, another input or what is stored.

    Args:
        inputs: the track's input files.
        state: the folder of what the track stores.

    Raises:
        TrecexamError: with the file in the way.
    """
    if _same(output, sources):
        raise TrecexamError("the merged qrels and their sources need a file each", path=output)
    for path in (output, sources):
        if path.resolve().is_relative_to(state.resolve()):
            raise TrecexamError("is among what the track stores, as its grades; name another file", path=path)
        for input_file in (to_fill.request.qrels, *inputs):
            if input_file is not None and _same(path, input_file):
                raise TrecexamError(
                    "is an input, and human judgments are never overwritten; name another file", path=path
                )


def find_holes(
    loader: TrackLoader,
    qrels: Path | str | None = None,
    *,
    depth: int | None = None,
    rule: RuleName | None = None,
    cuts: Mapping[int, int] | None = None,
    as_unjudged: bool = False,
    by: str | None = None,
    insist: bool = False,
    expected: bool = False,
) -> HolesToFill:
    """The pooled passages that nobody judged, and how `fill` would label them; grades nothing.

    Args:
        qrels: official judgments in place of the track's.
        depth: ranks of each run that are pooled, in place of the track's.
        rule: how automatic labels become official ones. None: "fitted" on the passages with both, where
            there are such, else "identity".
        cuts: automatic label -> official label, for "thresholds", which they imply; None:
            min_rating -> min_relevant.
        as_unjudged: new lines get the label -1.
        by: what fills: "grader", "learned" (labels learned from the judgments) or "label:N" (each hole gets
            the label N). None: "learned" where the last cross-validation found it the best, else "grader".
        insist: "learned" also where the last cross-validation found another way better.
        expected: new lines have expected labels, with decimals, which trec_eval does not read.

    Raises:
        TrecexamError: there are no official judgments, or `fill` wrote them; they have nothing in common with
            the pool and no rule was named; the rule cannot be made; or arguments do not go together.
        ConversionError: `qrels` cannot be read.
    """
    path = None if qrels is None else Path(qrels)
    rule = "thresholds" if cuts and rule is None else rule
    request = FillRequest(path, depth, rule, dict(cuts or {}), as_unjudged, by, insist, expected)
    check_request(request)
    return _find_holes(loader, request)


def fill(
    loader: TrackLoader,
    to_fill: HolesToFill,
    *,
    output: Path | str | None = None,
    sources: Path | str | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Filled:
    """Grades the holes that have no grades yet, and merges their labels into the official judgments.

    No human label changes, and no judged passage is graded. Where nothing is left to grade, the track
    may be read-only or watched. Learned labels grade nothing; passages without a vector are encoded.

    Args:
        to_fill: what `find_holes` gave.
        output: where the merged qrels are written; None writes nothing.
        sources: where it is written who said each line; None for `output` with ".sources.tsv" after it.
        progress: called with how many cells are graded, or passages encoded, and of how many.

    Raises:
        LockedError: another process grades this track.
        StoreError: the store is gone or an older one, and what it had would be paid for again.
        TrecexamError: `output` or `sources` is an input, or cannot be written; a grader that cannot run;
            judgments that nothing can be learned from; expected labels of a grader without probabilities.
    """
    if output is not None:
        output = Path(output)
        sources = sources_beside(output) if sources is None else Path(sources)
        check_outputs(loader.inputs.stamps(), loader.folder.state, to_fill, output, sources)
    graded = 0
    if to_fill.missing:
        with TrackLock(loader.folder.lock_path):
            refuse_lost_grades(loader)
            loader.open_to_write()
            track = loader.load(depth=to_fill.pool_depth)
            track, outcome = loader.grade(track, progress, only=to_fill.holes)
            if outcome.why:
                raise GraderError(outcome.why)
            graded = outcome.cells
    else:
        track = loader.load(depth=to_fill.pool_depth)
    filled = (
        merged_with_grader(track, to_fill, graded)
        if to_fill.way == GRADER
        else merged_without_grader(track, to_fill, progress)
    )
    if isinstance(output, Path) and isinstance(sources, Path):
        filled.write(output, sources)
    return filled


def _find_holes(loader: TrackLoader, request: FillRequest) -> HolesToFill:
    """Loads the track to the depth asked for and finds the holes."""
    depth = request.depth or loader.config.track.depth
    _refuse_merged(request.qrels or loader.folder.qrels())
    judgments = None if request.qrels is None else read_official(request.qrels)
    pool_depth = max(depth, loader.config.track.depth)
    track = loader.load(depth=pool_depth)
    judgments = judgments or official_judgments(track)
    way, grades, way_notes = choose_way(track, judgments, request)
    queries = track.bank.query_ids
    pooled = pool(track.runs.values(), queries, depth)
    # Negative lines stay as they are: they are somebody's, though trec_eval takes them for no judgment.
    notes = [f"{line}; these lines stay as they are" for line in judgments.warnings()]
    notes += _no_overlap(judgments, pooled, request, way)
    holes = holes_of(pooled, judgments.labels)
    in_pool = sum(map(len, pooled.values()))
    judged = in_pool - sum(map(len, holes.values()))
    unjudged = {query_id: docs for query_id, docs in holes.items() if query_id not in judgments.labels}
    if unjudged:
        # A query with negative labels alone stops trec_eval, and would count in its means.
        left = (
            "are left out: negative labels alone stop trec_eval" if request.as_unjudged else "are all holes"
        )
        notes.append(
            f"{_queries(list(unjudged))} of the bank have no official judgment; their "
            f"{sum(map(len, unjudged.values())):,} passages {left}"
        )
        if request.as_unjudged:
            holes = {query_id: docs for query_id, docs in holes.items() if query_id not in unjudged}
    notes += _judgment_notes(track, judgments, holes)
    rule: ScaleMap | str = rule_in_words(way)
    rule_notes: tuple[str, ...] = ()
    if way == GRADER:
        rule, rule_notes = choose_rule(track, judgments, request)
    return HolesToFill(
        request,
        judgments,
        holes,
        depth,
        pool_depth,
        in_pool,
        judged,
        count_missing(track, holes) if way == GRADER else 0,
        rule,
        (*way_notes, *notes),
        rule_notes,
        _rejected(track, request),
        way,
        grades,
    )


def _no_overlap(
    judgments: Official, pooled: Mapping[str, Collection[str]], request: FillRequest, way: str
) -> Iterator[str]:
    """Why judgments and pool have nothing in common, where that is so; then no rule can be fitted."""
    reason = judgments.explain_no_overlap(pooled)
    if reason is None:
        return
    if request.rule is None and constant_label(way) is None:
        raise TrecexamError(
            f"{reason} To fill the whole pool all the same, choose --map identity or --map thresholds"
        )
    yield reason


def _judgment_notes(
    track: LoadedTrack, judgments: Official, holes: Mapping[str, Collection[str]]
) -> Iterator[str]:
    """What is odd about the judgments beside this bank, and about the runs."""
    foreign = [query_id for query_id in judgments.labels if query_id not in track.bank.items]
    if foreign:
        yield f"{_queries(foreign)} of {judgments.source} not in the bank; their lines stay as they are"
    if _has_subtopics(judgments) and holes:
        yield f"{judgments.source} judges subtopics (column 2); new lines have 0 there and are of no subtopic"
    if not track.runs:
        yield f"no runs: drop some into {track.folder.runs}"


def _rejected(track: LoadedTrack, request: FillRequest) -> tuple[Rejected, ...]:
    """The inputs not taken, but for official ones that were not asked for."""
    folder = track.folder
    aside = {folder.official_leaderboard(), folder.qrels() if request.qrels is not None else None}
    names = {folder.shown(path) for path in aside if path is not None}
    return tuple(row for row in track.rejected if row.file not in names)


def _refuse_merged(qrels: Path | None) -> None:
    """Refuses what `fill` or `learn` wrote: the lines of a machine would pass for a person's, and the rule be
    fitted on them.

    Raises:
        TrecexamError: with what to name instead.
    """
    command = None if qrels is None else written_by(qrels)
    if qrels is not None and command is not None:
        note = sources_beside(qrels).name if command == "fill" else LEARNED_IDENTITY
        raise TrecexamError(
            f"`trecexam {command}` wrote it, as {note} beside it says, so not all lines are "
            "people's; name the official judgments that it was made from",
            path=qrels,
        )


def _has_subtopics(judgments: Official) -> bool:
    return any(row.iteration not in NO_SUBTOPIC for row in judgments.rows)


def _queries(query_ids: list[str]) -> str:
    return f"{plural(len(query_ids), 'query')} ({shorten_list(query_ids, 3, dots=True)})"


def _same(path: Path, other: Path) -> bool:
    """Whether both names are, or would be, the same file."""
    try:
        return path.samefile(other)
    except OSError:
        return path.resolve() == other.resolve()
