"""Fills judgment holes: finds them, chooses the rule for their labels, merges, and says who said what."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from trecexam.errors import GraderError, TrackError, TrecexamError, quoted
from trecexam.features.fill.arithmetic import scale_map
from trecexam.features.fill.arithmetic.confidence import label_confidences
from trecexam.features.fill.arithmetic.merging import Machine, holes_of, merge, merge_labels, with_both
from trecexam.features.fill.arithmetic.scale_map import ScaleMap
from trecexam.features.fill.filled import Filled, FillRequest, HolesToFill
from trecexam.features.fill.protected_files import check_outputs, refuse_merged
from trecexam.features.fill.teaching import GRADER, LEARNED, NOTHING, the_teacher
from trecexam.features.fill.ways import check_request, choose_way, stated
from trecexam.files.stamps import Rejected
from trecexam.files.track_lock import TrackLock
from trecexam.line.assessment import Assessment
from trecexam.line.grading import Progress, count_missing
from trecexam.line.loader import TrackLoader
from trecexam.line.lost_grades import refuse_lost_grades
from trecexam.line.official import Official, no_overlap, read_official, track_judgments
from trecexam.line.pool import pool
from trecexam.line.rejected import rejected_notes
from trecexam.line.sources import sources_beside
from trecexam.line.stored_grades import unusable_lines
from trecexam.scores.labels import labels
from trecexam.tables.notes import CHANGES, LOST, METHOD, Note
from trecexam.tables.text import plural, shorten_list

#: What the second column of plain qrels holds.
NO_SUBTOPIC = frozenset(("0", "Q0"))
#: In place of a rule, where no label but people's is added.
BY_PEOPLE = "people's judgments alone"
#: A rule fitted on fewer passages than this is called into question.
FEW = 50


def fill(
    loader: TrackLoader,
    to_fill: HolesToFill | Path | str,
    *,
    output: Path | str | None = None,
    sources: Path | str | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Filled:
    """Grades the holes that have no grades yet, and merges their labels into the official judgments."""
    if isinstance(to_fill, Path | str):
        if output is not None:
            raise TrecexamError(f"two files for the merged qrels: {to_fill} and {output}; name one")
        output, to_fill = to_fill, find_holes(loader, FillRequest())
    if not isinstance(to_fill, HolesToFill):
        raise TypeError("fill() takes what track.fill.find() gave, or the path of the merged qrels")
    if output is not None:
        output = Path(output)
        if not output.name:
            raise TrecexamError("fill() needs the name of a file for the merged qrels", path=output)
        sources = sources_beside(output) if sources is None else Path(sources)
        check_outputs(loader.folder.root, to_fill, output, sources)
    graded = 0
    if to_fill.missing:
        with TrackLock(loader.folder.lock_path):
            refuse_lost_grades(loader)
            loader.track.open_to_write()
            track = loader.load(depth=to_fill.pool_depth)
            track, outcome = loader.grade(track, progress, only=to_fill.holes)
            if outcome.why:
                raise GraderError(outcome.why)
            graded = outcome.cells
    else:
        track = loader.load(depth=to_fill.pool_depth, bank_needed=to_fill.way == GRADER)
    filled = (
        merged(track, to_fill, graded)
        if to_fill.way == GRADER
        else _merged_without_grader(track, to_fill, progress)
    )
    if isinstance(output, Path) and isinstance(sources, Path):
        filled.write(output, sources)
        return filled.told(output, sources)
    return filled.told()


def find_holes(loader: TrackLoader, request: FillRequest) -> HolesToFill:
    """Find the pooled passages that nobody judged, and how `fill` would label them; grades nothing."""
    check_request(request)
    depth = request.depth or loader.config.track.depth
    refuse_merged(request.qrels or loader.folder.qrels())
    judgments = None if request.qrels is None else read_official(request.qrels)
    pool_depth = max(depth, loader.config.track.depth)
    track = loader.load(depth=pool_depth, bank_needed=False)
    judgments = track_judgments(track, judgments)
    method, way_notes = choose_way(track, judgments, request)
    queries = track.bank.query_ids
    pooled = pool(track.runs.values(), queries, depth)
    notes = [*judgments.warnings(), *judgments.people_notes]
    notes += _nothing_to_fit(track, judgments, pooled, request)
    if method == GRADER and (lacking := _bank_lacking(loader)):
        if not judgments.people or request.by or request.rule or request.as_unjudged:
            raise lacking
        method = NOTHING
        notes.append(f"only people's judgments are added; {lacking.reason}")
    holes = holes_of(pooled, judgments.judged)
    in_pool = sum(map(len, pooled.values()))
    judged = in_pool - sum(map(len, holes.values()))
    unjudged = {query_id: docs for query_id, docs in holes.items() if query_id not in judgments.judged}
    if unjudged:
        # A query with negative labels alone stops trec_eval, and would count in its means.
        left = "left out: negative labels alone stop trec_eval" if request.as_unjudged else "holes"
        line = (
            f"{_queries(list(unjudged))} without an official judgment: all "
            f"{sum(map(len, unjudged.values())):,} passages are {left}"
        )
        notes.append(Note(line, LOST if request.as_unjudged else CHANGES))
        if request.as_unjudged:
            holes = {query_id: docs for query_id, docs in holes.items() if query_id not in unjudged}
    holes, other_scale = _without_other_scale(track, request, holes)
    if other_scale:
        notes.append(_other_scale_note(track, judgments, other_scale))
    notes += _judgment_notes(track, judgments, holes)
    rule: ScaleMap | str = "learned from the official judgments" if method == LEARNED else BY_PEOPLE
    rule_notes: tuple[str, ...] = ()
    if method == GRADER:
        try:
            rule, rule_notes = choose_rule(track, judgments, request, needed=bool(holes))
        except TrecexamError as error:
            raise TrecexamError("; ".join((str(error), *way_notes))) from None
    rejected = _rejected(track, request)
    holes_to_fill = HolesToFill(
        request,
        judgments,
        holes,
        depth,
        pool_depth,
        in_pool,
        judged,
        count_missing(track, holes) if method == GRADER else 0,
        rule,
        (*way_notes, *notes),
        rejected,
        method,
        sum(other_scale.values()),
    )
    remarks = (*rejected_notes(rejected, len(rejected)), *holes_to_fill.remarks, holes_to_fill.summary())
    return replace(
        holes_to_fill,
        remarks=remarks,
        notes=(*remarks, *rule_notes, Note(f"labels, as of now: {rule}", METHOD)),
    )


def _bank_lacking(loader: TrackLoader) -> TrackError | None:
    """Return the error of a track without the bank that its grader needs; None where it has what it needs."""
    try:
        loader.check_bank()
    except TrackError as error:
        return TrackError(f"{error.reason}; `--by learned` fills without one", path=error.path)
    return None


def _nothing_to_fit(
    track: Assessment, judgments: Official, pooled: Mapping[str, Collection[str]], request: FillRequest
) -> Iterator[str]:
    """Why judgments and pool have nothing in common, where that is so; then no rule can be fitted."""
    reason = no_overlap(track, judgments, pooled)
    if reason is None:
        return
    if request.rule is None:
        raise TrecexamError(
            f"{reason} To fill the whole pool all the same, choose --map identity or --map thresholds"
        )
    yield Note(reason, CHANGES)


def _without_other_scale(
    track: Assessment, request: FillRequest, holes: dict[str, tuple[str, ...]]
) -> tuple[dict[str, tuple[str, ...]], Counter[str]]:
    """Leave out the holes that people rated on the grader's scale as a whole: no rule maps a person's rating.

    With the rule "identity" the grader's scale is that of the judgments, and the rating is the label.

    Returns:
        The other holes, and who rated how many of those that are left out.
    """
    if request.rule == "identity":
        return holes, Counter()
    rated = {(q, doc): row.who for (q, doc, item), row in track.overrides.ratings.items() if not item}
    left_out = Counter(rated[q, doc] for q, docs in holes.items() for doc in docs if (q, doc) in rated)
    others = {q: tuple(doc for doc in docs if (q, doc) not in rated) for q, docs in holes.items()}
    return {q: docs for q, docs in others.items() if docs}, left_out


def _other_scale_note(track: Assessment, judgments: Official, by_whom: Counter[str]) -> str:
    names = ", ".join(f"{who} {n:,}" for who, n in sorted(by_whom.items()))
    best = track.grader.scale.max_rating
    line = (
        f"not filled: {plural(sum(by_whom.values()), 'hole')} that people rated as a whole on the grader's "
        f"scale 0..{best} ({names}), which is not that of {judgments.source}: judge these passages again, on "
        "the page or with `trecexam override`, or choose --map identity"
    )
    return Note(line, LOST)


def _judgment_notes(
    track: Assessment, judgments: Official, holes: Mapping[str, Collection[str]]
) -> Iterator[str]:
    """Warnings about the judgments with this bank, and about the runs."""
    foreign = [query_id for query_id in judgments.judged if query_id not in track.bank.items]
    if foreign:
        named = f"{_queries(foreign)} of {judgments.source}"
        yield f"{named} not among the grader's queries; their lines stay as they are"
    if _has_subtopics(judgments) and holes:
        yield f"{judgments.source} judges subtopics (column 2); new lines have 0 there and are of no subtopic"
    if not track.runs:
        yield Note(f"no runs: drop some into {track.folder.runs}", CHANGES)


def choose_rule(
    track: Assessment, judgments: Official, request: FillRequest, *, needed: bool
) -> tuple[ScaleMap, tuple[str, ...]]:
    """The rule for labels, from the grades that there are, and what is to be said of it.

    It is fitted on the pooled passages with both an official judgment and a grade.

    Args:
        needed: whether there is anything to label. Else labels stay as they are where no rule can be fitted.

    Raises:
        TrecexamError: none was named, and none can be fitted; or the cuts are no rule.
    """
    named = stated(track.config.scores, request.rule, request.cuts)
    if named is not None:
        return named, ()
    # What people said in the grader's place is no measure of the grader.
    both = with_both(_automatic(track, human=False), judgments.judged)
    try:
        rule = scale_map.fitted(*both)
    except ValueError as error:
        if not needed:
            return scale_map.IDENTITY, ()
        raise TrecexamError(
            f"{judgments.source}: no rule gives official labels for the grader's: {error}; "
            f"`trecexam watch {quoted(track.folder.root)} --once` grades judged passages of the pool too, or "
            "choose --map identity or --map thresholds, or --by learned"
        ) from None
    if rule.n_both < FEW:
        few = f"the rule is fitted on {rule.n_both:,} passages only; see --map"
        return rule, (Note(few, CHANGES),)
    return rule, ()


def merged(track: Assessment, to_fill: HolesToFill, graded: int = 0) -> Filled:
    """Merges the labels of the holes, as far as they have grades, into the official judgments.

    Raises:
        TrecexamError: as `choose_rule`.
    """
    scores = track.config.scores
    # Grading a hole may have graded a judged passage of the same text: the rule follows the current grades,
    # so that it is the same when asked for again.
    rule, notes = choose_rule(track, to_fill.official, to_fill.request, needed=bool(to_fill.holes))
    automatic = _automatic(track, to_fill.holes)
    confidences = {}
    partly = no_text = no_grade = unusable = 0
    for q in track.ratings(list(to_fill.holes)):
        holes, labels = set(to_fill.holes[q.query_id]), automatic[q.query_id]
        unrated: Any = (q.ratings < 0).any(axis=1)
        partly += sum(
            doc in holes and doc in labels
            for doc, some in zip(q.doc_ids, unrated.tolist(), strict=True)
            if some
        )
        lost = holes - labels.keys()
        sheet = track.sheets[q.query_id]
        no_text += len(lost & sheet.without_text)
        no_grade += len(lost - sheet.without_text)
        distributions, odd = track.grades.distributions(sheet)
        unusable += odd
        confidences[q.query_id] = label_confidences(
            q, distributions, scores.label, scores.min_rating, scores.min_answers
        )
    rows = merge(
        to_fill.official.rows,
        to_fill.holes,
        automatic,
        rule,
        dict(_machines(track, to_fill.holes)),
        people=to_fill.official.people,
        overridden=_overridden(track, automatic),
        confidences=confidences,
        as_unjudged=to_fill.request.as_unjudged,
    )
    new = [row for row in rows if row.machine is not None]
    notes = (*notes, *unusable_lines(unusable))
    best = max((row.label for row in new), default=0)
    highest = max(row.relevance for row in to_fill.official.rows)
    if rule.rule == "identity" and best > highest and not to_fill.request.as_unjudged:
        notes = (
            *notes,
            f"there are labels up to {best}, and the highest official one is {highest}; see --map",
        )
    return Filled(to_fill, rows, rule, graded, len(new), no_text, no_grade, partly, notes)


def _automatic(
    track: Assessment, queries: Mapping[str, object] | None = None, *, human: bool = True
) -> dict[str, dict[str, int]]:
    scores = track.config.scores
    return {
        q.query_id: labels(q, scores.label, scores.min_rating, scores.min_answers)
        for q in track.ratings(None if queries is None else list(queries), human=human)
    }


def _overridden(
    track: Assessment, automatic: Mapping[str, Mapping[str, int]]
) -> dict[tuple[str, str], tuple[str, str]]:
    """(query_id, doc_id) -> who gave it its label, and why, where that is not the grader's own.

    A person's rating of a cell that leaves the label as the grader has it does not make it the person's.
    """
    machine = _automatic(track, automatic, human=False)
    reasons: dict[tuple[str, str], dict[str, list[str]]] = {}
    for (query_id, doc_id, item_id), row in sorted(track.overrides.ratings.items()):
        if item_id and machine.get(query_id, {}).get(doc_id) == automatic.get(query_id, {}).get(doc_id):
            continue
        reasons.setdefault((query_id, doc_id), {}).setdefault(row.who, []).append(row.why)
    return {
        passage: ("; ".join(whys), "; ".join(why for item_reasons in whys.values() for why in item_reasons))
        for passage, whys in reasons.items()
    }


def _machines(track: Assessment, queries: Mapping[str, object]) -> Iterator[tuple[str, Machine]]:
    """What grades each of the queries: their items may be of kinds with different prompts."""
    if not queries:
        return
    identity = track.grader.identity
    # Of a recording the model is known only once it is read, so it is not where there is nothing to say.
    model, prompt = track.grader.model_and_prompt or (identity.get("model"), None)
    for query_id in queries:
        prompts = (prompt,) if prompt else track.grades.prompts(track.sheets[query_id].items)
        yield query_id, Machine(str(identity["grader"]), str(model or ""), "; ".join(prompts))


def _rejected(track: Assessment, request: FillRequest) -> tuple[Rejected, ...]:
    """The inputs rejected, but for official ones that were not asked for."""
    folder = track.folder
    aside = {folder.official_leaderboard(), folder.qrels() if request.qrels is not None else None}
    names = {folder.shown(path) for path in aside if path is not None}
    return tuple(row for row in track.rejected if row.file not in names)


def _has_subtopics(judgments: Official) -> bool:
    return any(row.iteration not in NO_SUBTOPIC for row in judgments.rows)


def _queries(query_ids: list[str]) -> str:
    return f"{plural(len(query_ids), 'query')} ({shorten_list(query_ids, 3, dots=True)})"


def _merged_without_grader(
    track: Assessment, to_fill: HolesToFill, progress: Callable[[Progress], None] | None = None
) -> Filled:
    """Merges learned labels, or people's judgments alone, into the official judgments.

    Raises:
        TrecexamError: nothing can be learned here; the message says why.
    """
    official = to_fill.official
    if to_fill.way == NOTHING:
        rows = merge_labels(official.rows, {}, {}, Machine(""), people=official.people)
        return Filled(to_fill, rows, to_fill.rule, 0, 0, 0, to_fill.n_holes, 0)
    if progress is not None:
        progress(Progress(0, 0, loading="the encoder"))
    encoded = None if progress is None else (lambda done, of: progress(Progress(done, of, what="texts")))
    taught = the_teacher().labels(track, official, encoded)
    rows = merge_labels(
        official.rows,
        to_fill.holes,
        taught.labels,
        taught.machine,
        people=official.people,
        as_unjudged=to_fill.request.as_unjudged,
    )
    new = sum(row.machine is not None for row in rows)
    rated = {(q, doc) for q, doc, _ in track.overrides.ratings if doc in to_fill.holes.get(q, ())}
    line = (
        f"{plural(len(rated), 'hole')} that people rated in the grader's place: these ratings are on its "
        "scale, and count with --by grader only"
    )
    return Filled(
        to_fill,
        rows,
        taught.rule,
        0,
        new,
        to_fill.n_holes - new,
        0,
        0,
        (*taught.notes, *([Note(line, CHANGES)] if rated else [])),
    )
