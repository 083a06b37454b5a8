"""Find judgment holes, choose how their labels are made, and merge the labels into the judgments."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from converters.records import judgment
from trecexam.errors import GraderError, TrackError, TrecexamError, quoted, rejected_notes
from trecexam.extension import label_source
from trecexam.features.fill import rules
from trecexam.features.fill.records import (
    GRADER,
    LEARNED,
    NOTHING,
    Filled,
    HolesToFill,
    Machine,
    MergedLine,
    TaughtLabels,
)
from trecexam.features.fill.rules import RuleName, ScaleMap, label_confidences
from trecexam.files.track_lock import track_lock
from trecexam.grades.graded_track import GradedTrack
from trecexam.grades.grading import Progress, count_missing, grade, refuse_lost_grades
from trecexam.grades.official import track_judgments, with_people
from trecexam.grades.open_track import GraderView
from trecexam.inputs.official import Official, no_overlap, read_official
from trecexam.inputs.protected import refuse_protected
from trecexam.inputs.sources import (
    LEARNED_IDENTITY,
    UNJUDGED,
    provenance_beside,
    refuse_foreign,
    sources_beside,
    written_by,
)
from trecexam.results.text import CHANGES, LOST, METHOD, Note, plural, shorten_list
from trecexam.scores.labels import labels
from trecexam.scores.measures import NO_SUBTOPIC

#: Minimum number of passages for a fitted rule; below, a note warns.
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
    given_official = None if qrels is None else read_official(qrels)
    track = loader.load(bank_needed=False)
    official = track_judgments(track) if given_official is None else with_people(track, given_official)
    given_rule = _given_rule(track, rule, cuts)
    method, way_notes = _choose_way(track, official, by, mapped=rule is not None)
    pooled = track.ranked_passages()
    notes = [*official.warnings(), *official.people_notes]
    apart = no_overlap(official, pooled, track.config.track.unit)
    if apart is not None:
        if rule is None:
            raise TrecexamError(
                f"{apart} To fill the whole pool all the same, choose --map identity or --map thresholds"
            )
        notes.append(Note(apart, CHANGES))
    if method == GRADER and (lacking := _bank_lacking(loader)):
        if not official.people or by or rule or as_unjudged:
            raise lacking
        method = NOTHING
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
    # A person's rating of a whole passage is a label only with "identity".
    whole = {} if rule == "identity" else track.overrides.ratings
    rated = {(query_id, doc_id): row.who for (query_id, doc_id, item_id), row in whole.items() if not item_id}
    other_scale = Counter(rated[q, doc] for q, docs in holes.items() for doc in docs if (q, doc) in rated)
    if other_scale:
        excluded = {q: tuple(doc for doc in docs if (q, doc) not in rated) for q, docs in holes.items()}
        holes = {query_id: docs for query_id, docs in excluded.items() if docs}
        names = ", ".join(f"{who} {n:,}" for who, n in sorted(other_scale.items()))
        line = (
            f"not filled: {plural(other_scale.total(), 'hole')} that people rated as a whole on the "
            f"grader's scale 0..{track.grader.scale.max_rating} ({names}), which is not that of "
            f"{official.source}: judge these passages again, on the page or with `trecexam override`, or "
            "choose --map identity"
        )
        notes.append(Note(line, LOST))
    if foreign := [query_id for query_id in official.judged if query_id not in track.bank.items]:
        named = f"{_queries(foreign)} of {official.source}"
        notes.append(f"{named} not among the grader's queries; their lines stay as they are")
    if holes and any(row.iteration not in NO_SUBTOPIC for row in official.rows):
        subtopics = f"{official.source} judges subtopics (column 2)"
        notes.append(f"{subtopics}; new lines have 0 there and are of no subtopic")
    if not track.runs:
        notes.append(Note(f"no runs: drop some into {track.folder.runs}", CHANGES))
    chosen: ScaleMap | str = "people's judgments alone"
    rule_notes: tuple[str, ...] = ()
    if method == LEARNED:
        chosen = "learned from the official judgments"
    elif method == GRADER:
        try:
            chosen, rule_notes = choose_rule(track, official, given_rule, needed=bool(holes))
        except TrecexamError as error:
            raise TrecexamError("; ".join((str(error), *way_notes))) from None
    aside = {loader.folder.official_leaderboard(), None if qrels is None else loader.folder.qrels()}
    names_aside = {loader.folder.shown(path) for path in aside if path is not None}
    rejected = tuple(row for row in track.rejected if row.file not in names_aside)
    missing = count_missing(track, holes) if method == GRADER else 0
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
        method,
        other_scale.total(),
        (*remarks, *rule_notes, Note(f"labels, as of now: {chosen}", METHOD)),
        rejected,
    )


def _refuse_merged(qrels: Path | None) -> None:
    """Refuse qrels written by a command: automatic labels would count as human."""
    if qrels is not None and (command := written_by(qrels)) is not None:
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
    """Return "grader" or "learned", as requested or by the last cross-validation, and notes."""
    if by == GRADER or (by is None and mapped):
        return GRADER, ()
    best, summary, why = label_source(LEARNED).advice(track, official)
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
    """Return the error of a track without the bank that its grader needs, else None."""
    try:
        if loader.needs.bank:
            loader.folder.bank()
    except TrackError as error:
        return TrackError(f"{error.reason}; `--by learned` fills without one", path=error.path)
    return None


def _given_rule(track: GradedTrack, rule: RuleName | None, cuts: Mapping[int, int] | None) -> ScaleMap | None:
    """Return the rule if it needs no grades; None if it must be fitted.

    Without cuts (automatic label -> official label) "thresholds" has the track's min_rating, or for label
    "count" min_answers, -> min_relevant.
    """
    if rule == "identity":
        return rules.IDENTITY
    if rule in (None, "fitted"):
        return None
    scores, best = track.config.scores, track.grader.scale.max_rating
    least = scores.min_answers if scores.label == "count" else scores.min_rating
    if scores.label == "count":
        best = max(map(len, track.bank.items.values()), default=0)
    for label, official in (cuts or {}).items():
        if best and label > best:
            raise TrecexamError(
                f"--map {label}={official}: no passage has the label {label}; automatic labels here are on "
                f"the scale 0..{best}"
            )
    try:
        return rules.thresholds(cuts or {least: scores.min_relevant})
    except ValueError as error:
        raise TrecexamError(f"--map: {error}") from None


def choose_rule(
    track: GradedTrack, official: Official, given_rule: ScaleMap | None, *, needed: bool
) -> tuple[ScaleMap, tuple[str, ...]]:
    """Return the rule for labels, fitted on the pooled passages with a judgment and a grade, and notes on it.

    Args:
        needed: True if there are holes to label. Else the identity replaces a rule that cannot be fitted.
    """
    if given_rule is not None:
        return given_rule, ()
    # People's ratings in the grader's place say nothing about the grader.
    both = [
        (label, official.judged[query_id][doc_id])
        for query_id, of_docs in automatic_labels(track, human=False).items()
        for doc_id, label in of_docs.items()
        if doc_id in official.judged.get(query_id, ())
    ]
    try:
        rule = rules.fitted([label for label, _ in both], [judgment for _, judgment in both])
    except ValueError as error:
        if not needed:
            return rules.IDENTITY, ()
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

    `human`: use people's ratings in place of the grader's.
    """
    scores = track.config.scores
    return {
        q.query_id: labels(q, scores.label, scores.min_rating, scores.min_answers)
        for q in track.ratings(None if queries is None else list(queries), human=human)
    }


def fill(
    loader: GraderView,
    to_fill: HolesToFill | Path | str,
    *,
    output: Path | str | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Filled:
    """Grade the holes that have no grades yet, and merge their labels into the official judgments."""
    if isinstance(to_fill, Path | str):
        if output is not None:
            raise TrecexamError(f"two files for the merged qrels: {to_fill} and {output}; name one")
        output, to_fill = to_fill, find_holes(loader)
    if not isinstance(to_fill, HolesToFill):
        raise TypeError("fill() takes what track.fill.find() gave, or the path of the merged qrels")
    merged = None if output is None else Path(output)
    if merged is not None:
        if not merged.name:
            raise TrecexamError("fill() needs the name of a file for the merged qrels", path=merged)
        _check_output(loader.folder.root, to_fill.qrels, merged)
    graded = 0
    if to_fill.missing:
        with track_lock(loader.folder.lock_path):
            refuse_lost_grades(loader)
            loader.track.open_to_write()
            track = loader.load()
            track, outcome = grade(loader, track, progress, only=to_fill.holes)
            if outcome.why:
                raise GraderError(outcome.why)
            graded = outcome.cells
    else:
        track = loader.load(bank_needed=to_fill.method == GRADER)
    if to_fill.method == GRADER:
        filled = _filled_by_grader(track, to_fill, graded)
    elif to_fill.method == LEARNED:
        filled = _filled_by_learning(track, to_fill, progress)
    else:
        rows = _merged(to_fill.official, ())
        filled = Filled(to_fill, rows, to_fill.rule, no_grade=to_fill.n_holes)
    if merged is not None:
        filled.write(merged)
    return replace(filled, notes=tuple(_notes(filled, merged)))


def _check_output(root: Path, qrels: Path | None, output: Path) -> None:
    """Refuse to overwrite judgments, another file of a track, or stored grades.

    `qrels` are the official judgments, if they are not the track's.
    """
    sources = sources_beside(output)
    for path in (output, sources):
        if qrels is not None and os.path.realpath(path) == os.path.realpath(qrels):
            raise TrecexamError("human judgments are never overwritten; name another file", path=path)
        refuse_protected(path, root)
    refuse_foreign(output, root)
    if output.exists() and output.stat().st_size and not sources.exists():
        raise TrecexamError(
            f"exists, and `fill` did not write it: there is no {sources.name}; name another or remove it",
            path=output,
        )


def _filled_by_grader(track: GradedTrack, to_fill: HolesToFill, graded: int) -> Filled:
    """Merge the labels of graded holes into the official judgments."""
    scores = track.config.scores
    # Grading a hole may have graded a judged passage of the same text: refit on the current grades, so that a
    # second call gives the same rule.
    rule, notes = choose_rule(track, to_fill.official, to_fill.given_rule, needed=bool(to_fill.holes))
    automatic = automatic_labels(track, to_fill.holes)
    persons = _overridden(track, automatic)
    machines = dict(_machines(track, to_fill.holes))
    new: list[MergedLine] = []
    partly = no_text = 0
    for q in track.ratings(list(to_fill.holes)):
        query_id, of_docs, sheet = q.query_id, automatic[q.query_id], track.sheets[q.query_id]
        distributions = track.grades.distributions(sheet)
        confidences = label_confidences(q, distributions, scores.label, scores.min_rating, scores.min_answers)
        row_of = {doc_id: row for row, doc_id in enumerate(q.doc_ids)}
        for doc_id in to_fill.holes[query_id]:
            rating = of_docs.get(doc_id)
            if rating is None:
                no_text += doc_id in sheet.without_text
                continue
            partly += bool((q.ratings[row_of[doc_id]] < 0).any())
            person = persons.get((query_id, doc_id))
            new.append(
                MergedLine(
                    *(query_id, "0", doc_id, rule(rating), "override" if person else "model"),
                    *machines[query_id],
                    rating,
                    None if person else confidences.get(doc_id),
                    str(rule),
                    *(person or ()),
                )
            )
    more = [*notes]
    best = max((row.label for row in new), default=0)
    highest = max(row.relevance for row in to_fill.official.rows)
    if rule.rule == "identity" and best > highest and not to_fill.as_unjudged:
        more.append(f"there are labels up to {best}, and the highest official one is {highest}; see --map")
    no_grade = to_fill.n_holes - len(new) - no_text
    rows = _merged(to_fill.official, new)
    return Filled(to_fill, rows, rule, graded, no_text, no_grade, partly, tuple(more))


def _filled_by_learning(
    track: GradedTrack, to_fill: HolesToFill, progress: Callable[[Progress], None] | None
) -> Filled:
    """Merge learned labels into the official judgments."""
    if progress is not None:
        progress(Progress(0, 0, loading="the encoder"))
    encoded = None if progress is None else (lambda done, of: progress(Progress(done, of, what="texts")))
    taught: TaughtLabels = label_source(LEARNED).labels(track, to_fill.official, encoded)
    new = [
        MergedLine(
            *(query_id, "0", doc_id, hole.label, "learned", *taught.machine, hole.gain, hole.confidence),
            taught.rule,
        )
        for query_id, doc_ids in to_fill.holes.items()
        for doc_id in doc_ids
        if (hole := taught.labels.get(query_id, {}).get(doc_id)) is not None
    ]
    notes = [*taught.notes]
    rated = {(q, doc) for q, doc, _ in track.overrides.ratings if doc in to_fill.holes.get(q, ())}
    if rated:
        line = (
            f"{plural(len(rated), 'hole')} that people rated in the grader's place: these ratings are on its "
            "scale, and count with --by grader only"
        )
        notes.append(Note(line, CHANGES))
    rows = _merged(to_fill.official, new)
    return Filled(to_fill, rows, taught.rule, no_text=to_fill.n_holes - len(new), notes=tuple(notes))


def _merged(official: Official, new: Iterable[MergedLine]) -> tuple[MergedLine, ...]:
    """Return the official lines in their order, then people's judgments and new lines, by query and document.

    An official line that says `NOT_JUDGED` gives way to the new line of its passage.
    """
    people = (
        MergedLine(
            *(row.query_id, "0", row.doc_id, row.label, "human"),
            who="; ".join(row.who),
            why="; ".join(row.why),
        )
        for row in official.people
    )
    added = sorted([*people, *new], key=lambda line: (line.query_id, line.doc_id))
    replaced = {(line.query_id, line.doc_id) for line in added}
    official_rows = (
        MergedLine(
            *(qrel.query_id, qrel.iteration, qrel.doc_id, qrel.relevance),
            UNJUDGED if judgment(qrel.relevance) is None else "human",
        )
        for qrel in official.rows
        if (qrel.query_id, qrel.doc_id) not in replaced
    )
    return (*official_rows, *added)


def _notes(filled: Filled, output: Path | None) -> Iterator[str]:
    """Yield the notes on merged judgments."""
    to_fill = filled.found
    yield from to_fill.remarks
    if filled.graded:
        yield Note(f"graded {plural(filled.graded, 'cell')}", METHOD)
    yield from filled.notes
    yield Note(f"labels: {filled.rule}", METHOD)
    if filled.partly:
        yield (
            f"{plural(filled.partly, 'passage')} without a rating on some items, which count as not reached"
        )
    if filled.no_text:
        no_text = f"not filled: {plural(filled.no_text, 'hole')} whose passage has no text to grade"
        yield Note(no_text, LOST)
    if filled.no_grade:
        yield Note(f"not filled: {plural(filled.no_grade, 'hole')} that no grader rated", LOST)
    if output is not None:
        by_people = len(to_fill.official.people)
        people = f", {plural(by_people, 'judgment')} by people of this track" if by_people else ""
        n_human = sum(row.source == "human" for row in filled.rows) - by_people
        written = (
            f"{output}: {plural(n_human, 'human judgment')} as before{people}, and "
            f"{plural(filled.filled, 'new line')}; who said what: {sources_beside(output)}"
        )
        yield Note(written, LOST)


def _overridden(
    track: GradedTrack, automatic: Mapping[str, Mapping[str, int]]
) -> dict[tuple[str, str], tuple[str, str]]:
    """Return (query_id, doc_id) -> people who changed the grader's label, and their reasons.

    Ratings of cells that leave the grader's label unchanged do not count.
    """
    machine = automatic_labels(track, automatic, human=False)
    reasons: dict[tuple[str, str], dict[str, list[str]]] = {}
    for (query_id, doc_id, item_id), row in sorted(track.overrides.ratings.items()):
        if item_id and machine.get(query_id, {}).get(doc_id) == automatic.get(query_id, {}).get(doc_id):
            continue
        reasons.setdefault((query_id, doc_id), {}).setdefault(row.who, []).append(row.why)
    return {
        passage: ("; ".join(whys), "; ".join(why for of_person in whys.values() for why in of_person))
        for passage, whys in reasons.items()
    }


def _machines(track: GradedTrack, queries: Iterable[str]) -> Iterator[tuple[str, Machine]]:
    """Yield the grader of each query: items may be of kinds with different prompts."""
    identity, model_and_prompt = track.grader.identity, None
    for query_id in queries:
        # The model of a recording is known only after reading it.
        model_and_prompt = model_and_prompt or track.grader.model_and_prompt or (identity.get("model"), None)
        model, prompt = model_and_prompt
        prompts = (prompt,) if prompt else track.grades.prompts(track.sheets[query_id].items)
        yield query_id, Machine(str(identity["grader"]), str(model or ""), "; ".join(prompts))


def _queries(query_ids: list[str]) -> str:
    return f"{plural(len(query_ids), 'query')} ({shorten_list(query_ids, 3)})"
