"""Fills judgment holes: grades them, and merges their labels into the official judgments."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from converters.records import judgment
from trecexam.errors import GraderError, TrecexamError
from trecexam.features.fill.arithmetic.confidence import label_confidences
from trecexam.features.fill.filled import Filled, HolesToFill, MergedLine
from trecexam.features.fill.finding import automatic_labels, choose_rule, find_holes
from trecexam.features.fill.teaching import GRADER, LEARNED, Machine, the_teacher
from trecexam.files.track_lock import track_lock
from trecexam.grades.graded_track import GradedTrack
from trecexam.grades.grading import Progress, grade, refuse_lost_grades
from trecexam.grades.open_track import GraderView
from trecexam.grades.stored_grades import unusable_lines
from trecexam.inputs.official import Official
from trecexam.inputs.protected import refuse_protected
from trecexam.inputs.sources import UNJUDGED, refuse_foreign, sources_beside
from trecexam.results.notes import CHANGES, LOST, METHOD, Note
from trecexam.results.text import plural


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
        track = loader.load(bank_needed=to_fill.way == GRADER)
    if to_fill.way == GRADER:
        filled = _filled_by_grader(track, to_fill, graded)
    elif to_fill.way == LEARNED:
        filled = _filled_by_learning(track, to_fill, progress)
    else:
        rows = _merged(to_fill.official, ())
        filled = Filled(to_fill, rows, to_fill.rule, no_grade=to_fill.n_holes)
    if merged is not None:
        filled.write(merged)
    return replace(filled, notes=tuple(_notes(filled, merged)))


def _check_output(root: Path, qrels: Path | None, output: Path) -> None:
    """Refuse to write over judgments, another file of a track, or what is stored.

    Args:
        root: the track's folder.
        qrels: the official judgments, if they are not the track's.

    Raises:
        TrecexamError: with the file in the way.
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
    """Merge the labels of the holes, as far as they have grades, into the official judgments.

    Raises:
        TrecexamError: as `choose_rule`.
    """
    scores = track.config.scores
    # Grading a hole may have graded a judged passage of the same text: the rule follows the current grades,
    # so that it is the same when asked for again.
    rule, notes = choose_rule(track, to_fill.official, to_fill.given_rule, needed=bool(to_fill.holes))
    automatic = automatic_labels(track, to_fill.holes)
    persons = _overridden(track, automatic)
    machines = dict(_machines(track, to_fill.holes))
    new: list[MergedLine] = []
    partly = no_text = unusable = 0
    for q in track.ratings(list(to_fill.holes)):
        query_id, of_docs, sheet = q.query_id, automatic[q.query_id], track.sheets[q.query_id]
        distributions, odd = track.grades.distributions(sheet)
        unusable += odd
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
    more = [*notes, *unusable_lines(unusable)]
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
    """Merge learned labels into the official judgments.

    Raises:
        TrecexamError: nothing can be learned here; the message says why.
    """
    if progress is not None:
        progress(Progress(0, 0, loading="the encoder"))
    encoded = None if progress is None else (lambda done, of: progress(Progress(done, of, what="texts")))
    taught = the_teacher().labels(track, to_fill.official, encoded)
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
    kept = (
        MergedLine(
            *(qrel.query_id, qrel.iteration, qrel.doc_id, qrel.relevance),
            UNJUDGED if judgment(qrel.relevance) is None else "human",
        )
        for qrel in official.rows
        if (qrel.query_id, qrel.doc_id) not in replaced
    )
    return (*kept, *added)


def _notes(filled: Filled, output: Path | None) -> Iterator[str]:
    """Yield all that people should know of merged judgments."""
    found = filled.found
    yield from found.remarks
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
        by_people = len(found.official.people)
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
    """Return (query_id, doc_id) -> who gave a passage a label other than the grader's own, and why.

    A person's rating of a cell that leaves the label as the grader has it does not make it the person's.
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
    identity, known = track.grader.identity, None
    for query_id in queries:
        # Of a recording the model is known only once it is read, so it is not where there is nothing to say.
        known = known or track.grader.model_and_prompt or (identity.get("model"), None)
        model, prompt = known
        prompts = (prompt,) if prompt else track.grades.prompts(track.sheets[query_id].items)
        yield query_id, Machine(str(identity["grader"]), str(model or ""), "; ".join(prompts))
