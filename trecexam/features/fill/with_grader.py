"""Fills holes with the grader's labels: chooses the rule that makes official ones of them, and merges."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from trecexam.errors import TrecexamError
from trecexam.features.fill.arithmetic import scale_map
from trecexam.features.fill.arithmetic.confidence import label_confidences, label_probabilities
from trecexam.features.fill.arithmetic.merging import Machine, merge, with_both
from trecexam.features.fill.filled import Filled, FillRequest, HolesToFill
from trecexam.features.fill.scale_rule import stated
from trecexam.line.stored_grades import unusable_lines
from trecexam.scores.labels import labels

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from trecexam.features.fill.arithmetic.scale_map import ScaleMap
    from trecexam.line.loaded import LoadedTrack
    from trecexam.line.official import Official

#: A rule fitted on fewer passages than this is called into question.
FEW = 50


def choose_rule(
    track: LoadedTrack, judgments: Official, request: FillRequest
) -> tuple[ScaleMap, tuple[str, ...]]:
    """The rule for labels, from the grades that there are, and what is to be said of it.

    It is fitted on the pooled passages with both an official judgment and a grade.

    Raises:
        TrecexamError: "fitted" was asked for, and cannot be; or the cuts are no rule.
    """
    named = stated(track.config.scores, request.rule, request.cuts)
    if named is not None:
        return named, ()
    # What people said in the grader's place is no measure of the grader.
    both = with_both(_automatic(track, human=False), judgments.judged)
    try:
        rule = scale_map.fitted(*both)
    except ValueError as error:
        why = (
            f"no rule can be fitted: {error}; `trecexam watch {track.folder.root} --once` grades judged "
            "passages of the pool too, or choose"
        )
        if request.rule == "fitted":
            raise TrecexamError(f"{judgments.source}: {why} --map identity or --map thresholds") from None
        return scale_map.IDENTITY, (f"{why} --map thresholds; until then labels stay as they are",)
    if rule.n_both < FEW:
        return rule, (f"the rule is fitted on {rule.n_both:,} passages only; see --map",)
    return rule, ()


def merged_with_grader(track: LoadedTrack, to_fill: HolesToFill, graded: int = 0) -> Filled:
    """Merges the labels of the holes, as far as they have grades, into the official judgments.

    Raises:
        TrecexamError: as `choose_rule`.
    """
    scores = track.config.scores
    # Grading a hole may have graded a judged passage of the same text: the rule follows what is there now,
    # so that it is the same when asked for again.
    rule, notes = choose_rule(track, to_fill.official, to_fill.request)
    automatic = _automatic(track, to_fill.holes)
    confidences, gains = {}, {}
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
        how = (scores.label, scores.min_rating, scores.min_answers)
        distributions, odd = track.grades.distributions(sheet)
        unusable += odd
        confidences[q.query_id] = label_confidences(q, distributions, *how)
        if to_fill.request.expected:
            gains[q.query_id] = _expected(label_probabilities(q, distributions, *how), rule)
    rows = merge(
        to_fill.official.rows,
        to_fill.holes,
        automatic,
        rule,
        dict(_machines(track, to_fill.holes)),
        overridden=_overridden(track, automatic),
        confidences=confidences,
        gains=gains,
        as_unjudged=to_fill.request.as_unjudged,
    )
    new = rows[len(to_fill.official.rows) :]
    if to_fill.request.expected and new and not any(row.gain is not None for row in new):
        raise TrecexamError(
            "--expected: the grader gives no probabilities, so nothing but its labels can be expected; --by "
            "learned has expected labels (with --insist, where another way was found better)",
            path=track.folder.root,
        )
    notes = (*notes, *unusable_lines(unusable))
    best = max((row.label for row in new), default=0)
    highest = max(row.relevance for row in to_fill.official.rows)
    if rule.rule == "identity" and best > highest and not to_fill.request.as_unjudged:
        notes = (
            *notes,
            f"there are labels up to {best}, and the highest official one is {highest}; see --map",
        )
    return Filled(to_fill, rows, rule, graded, len(new), no_text, no_grade, partly, notes)


def _expected(chances: Mapping[str, NDArray[np.float64]], rule: ScaleMap) -> dict[str, float]:
    """doc_id -> the mean of the official labels that its automatic ones would get."""
    return {
        doc_id: sum(chance * rule(label) for label, chance in enumerate(of_doc.tolist()))
        for doc_id, of_doc in chances.items()
    }


def _automatic(
    track: LoadedTrack, queries: Mapping[str, object] | None = None, *, human: bool = True
) -> dict[str, dict[str, int]]:
    scores = track.config.scores
    return {
        q.query_id: labels(q, scores.label, scores.min_rating, scores.min_answers)
        for q in track.ratings(None if queries is None else list(queries), human=human)
    }


def _overridden(
    track: LoadedTrack, automatic: Mapping[str, Mapping[str, int]]
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
        place: ("; ".join(whys), "; ".join(why for given in whys.values() for why in given))
        for place, whys in reasons.items()
    }


def _machines(track: LoadedTrack, queries: Mapping[str, object]) -> Iterator[tuple[str, Machine]]:
    """What grades each of the queries: their items may be of kinds with different prompts."""
    if not queries:
        return
    identity = track.grader.identity
    # Of a recording the model is known only once it is read, so it is not where there is nothing to say.
    model, prompt = track.traits.model_and_prompt() or (identity.get("model"), None)
    for query_id in queries:
        prompts = (prompt,) if prompt else track.grades.prompts(track.sheets[query_id].items)
        yield query_id, Machine(str(identity["grader"]), str(model or ""), "; ".join(prompts))
