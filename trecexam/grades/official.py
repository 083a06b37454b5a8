"""The judgments of a track, official ones and people's, and from which of them on a passage is relevant."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from trecexam.errors import TrecexamError
from trecexam.files.cache import memoized
from trecexam.files.stamps import located
from trecexam.folder import TrackFolder
from trecexam.grades.graded_track import GradedTrack
from trecexam.inputs.official import Official, PeoplesJudgment, no_overlap, official_of
from trecexam.inputs.overrides import NOT_POOLED, REFUSED
from trecexam.inputs.thresholds import Thresholds, thresholds_of
from trecexam.results.text import plural


def why_unjudged(track: GradedTrack) -> str | None:
    """Say why no passage that a run has, at any rank, is officially judged; None where one is."""
    judgments = official_judgments(track)
    for query_id, labels in judgments.judged.items():
        if any(not labels.keys().isdisjoint(run.ranking(query_id)) for run in track.runs.values()):
            return None
    return (
        no_overlap(judgments, track.ranked_passages(), track.config.track.unit)
        or "no passage that a run has is judged"
    )


@memoized
def official_judgments(track: GradedTrack) -> Official:
    """Return the track's official judgments; TrecexamError with what to do where it has none."""
    folder = track.folder
    file = folder.qrels()
    if track.official is None:
        for row in track.rejected:
            if file is not None and row.file == folder.shown(file):
                raise TrecexamError(
                    f"the official judgments were rejected: {row.reason}", path=file, line=row.line
                )
        raise TrecexamError(
            "no official judgments: put qrels.txt here or name a file with `qrels` in [track]",
            path=folder.root,
        )
    if file is None:
        return Official(str(folder.config.track.dataset), track.official)
    return official_of(file, track.official, folder.shown(file))


@memoized
def track_judgments(track: GradedTrack) -> Official:
    """Return the official judgments and, beside them, those of the track's people, see `with_people`."""
    return with_people(track, official_judgments(track))


def with_people(track: GradedTrack, official: Official) -> Official:
    """Return judgments and, beside them, those of the track's people that count.

    People's judgments of whole passages count as `rule` in [judging] says. Where `official` judges the
    passage, too, its label stays, and a note names the difference.
    """
    judgments = people_judgments(track)
    beside = [row for row in judgments if row.doc_id not in official.judged.get(row.query_id, ())]
    notes = tuple(_people_notes(track, official, judgments, beside))
    return replace(official, people=tuple(beside), people_notes=notes) if beside or notes else official


def _people_notes(
    track: GradedTrack,
    official: Official,
    judgments: Sequence[PeoplesJudgment],
    beside: Sequence[PeoplesJudgment],
) -> Iterator[str]:
    """Yield how many judgments are whose, and which do not count."""
    decisions, refused, scale = track.judgments.decisions, track.judgments.rejected, track.judging_scale
    if scale is None:
        return
    if beside:
        passages = {(row.query_id, row.doc_id) for row in beside}
        last = {(row.who, *row[:2]): row for _, row, state in decisions if state != REFUSED}
        judged = {key for key, row in last.items() if key[1:] in passages and row.rating is not None}
        judged |= {(name, row.query_id, row.doc_id) for row in beside for name in row.who}
        yield (
            f"{plural(len(beside), 'passage')} judged by people of this track "
            f"({_by_whom(name for name, *_ in judged)}) count like those of {official.source}"
        )
    if outside := {row[:2] for _, row, state in decisions if state == NOT_POOLED}:
        yield (
            f"not counted: {plural(len(outside), 'passage')} that people judged, in the first "
            f"{track.config.track.depth} ranks of no run of this track"
        )
    labels = {
        (row.query_id, row.doc_id): official.judged.get(row.query_id, {}).get(row.doc_id) for row in judgments
    }
    differing = [row for row in judgments if labels[row.query_id, row.doc_id] not in (None, row.label)]
    if differing:
        first, by_whom = differing[0], _by_whom(name for row in differing for name in row.who)
        yield (
            f"people judged {plural(len(differing), 'passage')} ({by_whom}) otherwise than "
            f"{official.source}, whose labels count ({first.query_id} {first.doc_id}: "
            f"{labels[first.query_id, first.doc_id]} there, {first.label} by {', '.join(first.who)})"
        )
    if refused:
        lines = f"{plural(len(refused), 'line')} of judgments.tsv"
        yield f"not counted: {lines}, the first is line {refused[0].line}: {refused[0].reason}"
    highest = max((row.relevance for row in official.rows), default=0)
    if judgments and scale.best < highest:
        yield (
            f"people judge on {scale}, as {scale.source} says, and {official.source} has labels up to "
            f"{highest}: both count as one scale"
        )


def people_judgments(track: GradedTrack) -> tuple[PeoplesJudgment, ...]:
    """Return people's judgments of whole passages that count, on the track's scale of judgments.

    Ratings in the grader's place are judgments, too, where the grader's scale is that of the judgments.
    """
    if track.judging_scale is None:
        return ()
    same = track.grader.scale.max_rating == track.judging_scale.best
    rated = {key: rows for key, rows in track.overrides.agreeing.items() if same and not key[2]}
    return tuple(
        PeoplesJudgment(
            query_id,
            doc_id,
            rows[-1].rating,
            tuple(dict.fromkeys(row.who for row in rows)),
            tuple(dict.fromkeys(row.why for row in rows)),
        )
        for (query_id, doc_id, _), rows in sorted({**rated, **track.judgments.agreeing}.items())
        if rows[-1].rating is not None
    )


def _by_whom(names: Iterable[str]) -> str:
    """Return how often each person is named, in words."""
    counts = Counter(names)
    return ", ".join(
        f"{name} {n:,}" for name, n in sorted(counts.items(), key=lambda each: (-each[1], each[0]))
    )


def shown_error(folder: TrackFolder, error: TrecexamError) -> str:
    """Say what is wrong with the official judgments, without a place of this machine."""
    if error.path is None or Path(error.path) == folder.root:
        return error.reason
    return located(folder.shown(Path(error.path)), error.line, error.reason)


def official_measures(track: GradedTrack) -> list[str]:
    """Return the measures on the official judgments: the settings', else nDCG@10, AP and P.

    AP and P count from the threshold of both sides, where labels and judgments are on the same scale.
    """
    at = relevance_thresholds(track)
    return track.config.official_measures(at.min_relevant if at.same_scale else None)


def relevance_thresholds(
    track: GradedTrack,
    min_rating: int | None = None,
    min_relevant: int | None = None,
    min_answers: int | None = None,
) -> Thresholds:
    """Return the thresholds of labels and judgments, see `thresholds_of`."""
    return thresholds_of(track.config.scores, *_scales(track), min_rating, min_relevant, min_answers)


@memoized
def _scales(track: GradedTrack) -> tuple[int, int | None]:
    """Return the best rating, and the best judgment; None without judgments."""
    # A user's own grader may go beyond the scale that it names.
    highest_ratings = (int(q.ratings.max(initial=0)) for q in track.ratings(human=False))
    judged = () if track.official is None else track_judgments(track).judged.values()
    best = max((label for labels in judged for label in labels.values()), default=None)
    return max((track.grader.scale.max_rating, *highest_ratings)), best
