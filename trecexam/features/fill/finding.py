"""Finds judgment holes, and chooses how their labels are made; grades nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from trecexam.errors import TrackError, TrecexamError, quoted
from trecexam.features.fill.arithmetic import scale_map
from trecexam.features.fill.arithmetic.scale_map import RuleName, ScaleMap
from trecexam.features.fill.filled import HolesToFill
from trecexam.features.fill.teaching import GRADER, LEARNED, NOTHING, the_teacher
from trecexam.grades.graded_track import GradedTrack
from trecexam.grades.grading import count_missing
from trecexam.grades.official import no_overlap, track_judgments
from trecexam.grades.open_track import GraderView
from trecexam.inputs.inputs import rejected_notes
from trecexam.inputs.official import Official, read_official
from trecexam.inputs.sources import LEARNED_IDENTITY, provenance_beside, sources_beside, written_by
from trecexam.results.notes import CHANGES, LOST, METHOD, Note
from trecexam.results.text import plural, shorten_list
from trecexam.scores.labels import labels

#: What the second column of plain qrels holds.
NO_SUBTOPIC = frozenset(("0", "Q0"))
#: A rule fitted on fewer passages than this is called into question.
FEW = 50


def find_holes(
    loader: GraderView,
    qrels: Path | None = None,
    rule: RuleName | None = None,
    cuts: Mapping[int, int] | None = None,
    *,
    as_unjudged: bool = False,
    by: str | None = None,
) -> HolesToFill:
    """Find the pooled passages that nobody judged, and how `fill` would label them; grades nothing."""
    if by not in (None, GRADER, LEARNED):
        raise TrecexamError(f"--by {by} is unknown: give grader or learned")
    _refuse_merged(qrels or loader.folder.qrels())
    given = None if qrels is None else read_official(qrels)
    track = loader.load(bank_needed=False)
    official = track_judgments(track, given)
    given_rule = _given_rule(track, rule, cuts)
    way, way_notes = _choose_way(track, official, by, mapped=rule is not None)
    pooled = track.ranked_passages()
    notes = [*official.warnings(), *official.people_notes]
    apart = no_overlap(track, official, pooled)
    if apart is not None:
        if rule is None:
            raise TrecexamError(
                f"{apart} To fill the whole pool all the same, choose --map identity or --map thresholds"
            )
        notes.append(Note(apart, CHANGES))
    if way == GRADER and (lacking := _bank_lacking(loader)):
        if not official.people or by or rule or as_unjudged:
            raise lacking
        way = NOTHING
        notes.append(f"only people's judgments are added; {lacking.reason}")
    holes: dict[str, tuple[str, ...]] = {}
    for query_id, doc_ids in pooled.items():
        judged = official.judged.get(query_id, {})
        if unjudged := tuple(doc_id for doc_id in doc_ids if doc_id not in judged):
            holes[query_id] = unjudged
    depth, in_pool = track.config.track.depth, sum(map(len, pooled.values()))
    n_judged = in_pool - sum(map(len, holes.values()))
    without = [query_id for query_id in holes if query_id not in official.judged]
    if without:
        # A query with negative labels alone stops trec_eval, and would count in its means.
        left = "left out: negative labels alone stop trec_eval" if as_unjudged else "holes"
        n_passages = sum(len(holes[query_id]) for query_id in without)
        line = f"{_queries(without)} without an official judgment: all {n_passages:,} passages are {left}"
        notes.append(Note(line, LOST if as_unjudged else CHANGES))
        if as_unjudged:
            holes = {query_id: docs for query_id, docs in holes.items() if query_id in official.judged}
    other_scale: Counter[str] = Counter()
    # With the rule "identity" the grader's scale is that of the judgments, and a person's rating the label.
    if rule != "identity":
        holes, other_scale = _without_other_scale(track, holes)
    if other_scale:
        names = ", ".join(f"{who} {n:,}" for who, n in sorted(other_scale.items()))
        line = (
            f"not filled: {plural(other_scale.total(), 'hole')} that people rated as a whole on the "
            f"grader's scale 0..{track.grader.scale.max_rating} ({names}), which is not that of "
            f"{official.source}: judge these passages again, on the page or with `trecexam override`, or "
            "choose --map identity"
        )
        notes.append(Note(line, LOST))
    notes += _judgment_notes(track, official, holes)
    chosen: ScaleMap | str = "people's judgments alone"
    rule_notes: tuple[str, ...] = ()
    if way == LEARNED:
        chosen = "learned from the official judgments"
    elif way == GRADER:
        try:
            chosen, rule_notes = choose_rule(track, official, given_rule, needed=bool(holes))
        except TrecexamError as error:
            raise TrecexamError("; ".join((str(error), *way_notes))) from None
    aside = {loader.folder.official_leaderboard(), None if qrels is None else loader.folder.qrels()}
    names_aside = {loader.folder.shown(path) for path in aside if path is not None}
    rejected = tuple(row for row in track.rejected if row.file not in names_aside)
    missing = count_missing(track, holes) if way == GRADER else 0
    n_holes = sum(map(len, holes.values()))
    people = f" and {len(official.people):,} by people of this track" if official.people else ""
    summary = (
        f"{official.source}: {plural(len(official.rows), 'judgment')}{people}; of the "
        f"{plural(in_pool, 'passage')} pooled to depth {depth:,} {n_judged:,} are judged; "
        f"{plural(n_holes, 'hole')} to fill, {plural(missing, 'cell')} to grade"
    )
    remarks = (*rejected_notes(rejected, len(rejected)), *way_notes, *notes, summary)
    return HolesToFill(
        official,
        holes,
        depth,
        in_pool,
        n_judged,
        missing,
        chosen,
        given_rule,
        qrels,
        as_unjudged,
        remarks,
        way,
        other_scale.total(),
        (*remarks, *rule_notes, Note(f"labels, as of now: {chosen}", METHOD)),
        rejected,
    )


def _refuse_merged(qrels: Path | None) -> None:
    """Refuse what a command wrote: a machine's lines would pass for a person's.

    Raises:
        TrecexamError: with what to name instead.
    """
    command = None if qrels is None else written_by(qrels)
    if qrels is not None and command is not None:
        beside = (provenance_beside(qrels), sources_beside(qrels))
        note = next((path.name for path in beside if path.exists()), LEARNED_IDENTITY)
        raise TrecexamError(
            f"`trecexam {command}` wrote it, as {note} beside it says, so not all lines are "
            "people's; name the official judgments that it was made from",
            path=qrels,
        )


def _choose_way(
    track: GradedTrack, official: Official, by: str | None, *, mapped: bool
) -> tuple[str, tuple[str, ...]]:
    """Return "grader" or "learned", and notes: as requested, else the best of the last cross-validation.

    Raises:
        TrecexamError: nothing is requested, and leaving holes was found best.
    """
    if by == GRADER or (by is None and mapped):
        return GRADER, ()
    best, summary, why = the_teacher().advice(track, official)
    notes = []
    if by == LEARNED:
        if best is None:
            check = f"`trecexam learn {quoted(track.folder.root)}`"
            notes.append(why or f"nobody has checked that learned labels are good here: run {check}")
        elif best != LEARNED:
            notes.append(f"learned labels are not the best way here; cross-validation: {summary}")
        if mapped:
            notes.append("learned labels are on the official scale already: --map changes nothing")
    elif best == NOTHING:
        raise TrecexamError(
            "cross-validation here found that leaving holes orders the runs better than filling them "
            f"({summary}): --by learned or --by grader fills them all the same",
            path=track.folder.root,
        )
    elif best is not None:
        whose = "learned" if best == LEARNED else "the grader's"
        notes.append(f"filled by {whose} labels; cross-validation here: {summary}")
    elif why:
        notes.append(f"{why}; until then the grader fills")
    return by or best or GRADER, tuple(Note(line, CHANGES) for line in notes)


def _bank_lacking(loader: GraderView) -> TrackError | None:
    """Return the error of a track without the bank that its grader needs; None where it has what it needs."""
    try:
        loader.check_bank()
    except TrackError as error:
        return TrackError(f"{error.reason}; `--by learned` fills without one", path=error.path)
    return None


def _without_other_scale(
    track: GradedTrack, holes: Mapping[str, tuple[str, ...]]
) -> tuple[dict[str, tuple[str, ...]], Counter[str]]:
    """Leave out the holes that people rated on the grader's scale as a whole: no rule maps a person's rating.

    Returns:
        The other holes, and who rated how many of those that are left out.
    """
    rated = {(q, doc): row.who for (q, doc, item), row in track.overrides.ratings.items() if not item}
    left_out = Counter(rated[q, doc] for q, docs in holes.items() for doc in docs if (q, doc) in rated)
    others = {q: tuple(doc for doc in docs if (q, doc) not in rated) for q, docs in holes.items()}
    return {q: docs for q, docs in others.items() if docs}, left_out


def _judgment_notes(
    track: GradedTrack, official: Official, holes: Mapping[str, Collection[str]]
) -> Iterator[str]:
    """Yield warnings about the judgments with this bank, and about the runs."""
    foreign = [query_id for query_id in official.judged if query_id not in track.bank.items]
    if foreign:
        named = f"{_queries(foreign)} of {official.source}"
        yield f"{named} not among the grader's queries; their lines stay as they are"
    if holes and any(row.iteration not in NO_SUBTOPIC for row in official.rows):
        yield f"{official.source} judges subtopics (column 2); new lines have 0 there and are of no subtopic"
    if not track.runs:
        yield Note(f"no runs: drop some into {track.folder.runs}", CHANGES)


def _given_rule(track: GradedTrack, rule: RuleName | None, cuts: Mapping[int, int] | None) -> ScaleMap | None:
    """Return the rule that needs no grades; None where it is to be fitted.

    Args:
        cuts: automatic label -> official label, of "thresholds"; none: the track's min_rating (label
            "count": min_answers) -> min_relevant.

    Raises:
        TrecexamError: the cuts are no rule.
    """
    if rule == "identity":
        return scale_map.IDENTITY
    if rule in (None, "fitted"):
        return None
    scores = track.config.scores
    least = scores.min_answers if scores.label == "count" else scores.min_rating
    try:
        return scale_map.thresholds(cuts or {least: scores.min_relevant})
    except ValueError as error:
        raise TrecexamError(f"--map: {error}") from None


def choose_rule(
    track: GradedTrack, official: Official, given_rule: ScaleMap | None, *, needed: bool
) -> tuple[ScaleMap, tuple[str, ...]]:
    """Return the rule for labels, from the grades that there are, and notes on it.

    It is fitted on the pooled passages with both an official judgment and a grade.

    Args:
        needed: whether there is anything to label. Else labels stay as they are where no rule can be fitted.

    Raises:
        TrecexamError: none was given, and none can be fitted.
    """
    if given_rule is not None:
        return given_rule, ()
    # What people said in the grader's place is no measure of the grader.
    both = [
        (label, official.judged[query_id][doc_id])
        for query_id, of_docs in automatic_labels(track, human=False).items()
        for doc_id, label in of_docs.items()
        if doc_id in official.judged.get(query_id, ())
    ]
    try:
        rule = scale_map.fitted([label for label, _ in both], [judgment for _, judgment in both])
    except ValueError as error:
        if not needed:
            return scale_map.IDENTITY, ()
        raise TrecexamError(
            f"{official.source}: no rule gives official labels for the grader's: {error}; "
            f"`trecexam watch {quoted(track.folder.root)} --once` grades judged passages of the pool too, or "
            "choose --map identity or --map thresholds, or --by learned"
        ) from None
    if rule.n_both < FEW:
        few = f"the rule is fitted on {rule.n_both:,} passages only; see --map"
        return rule, (Note(few, CHANGES),)
    return rule, ()


def automatic_labels(
    track: GradedTrack, queries: Collection[str] | None = None, *, human: bool = True
) -> dict[str, dict[str, int]]:
    """Return query_id -> doc_id -> label on the rubric's scale, by the track's settings.

    Args:
        queries: only these; None for all.
        human: with the ratings of people in the grader's place.
    """
    scores = track.config.scores
    return {
        q.query_id: labels(q, scores.label, scores.min_rating, scores.min_answers)
        for q in track.ratings(None if queries is None else list(queries), human=human)
    }


def _queries(query_ids: list[str]) -> str:
    return f"{plural(len(query_ids), 'query')} ({shorten_list(query_ids, 3, dots=True)})"
