"""Fills judgment holes: finds them, chooses the rule for their labels, merges, and says who said what."""

from __future__ import annotations

import gzip
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trecexam.errors import TrecexamError
from trecexam.features.fill.scale_rule import stated
from trecexam.features.fill.sources import merged_qrels, sources_table
from trecexam.files import atomic as files
from trecexam.line.grading import count_missing
from trecexam.line.loader import TrackLoader
from trecexam.line.official import Official, official_judgments, read_official
from trecexam.line.pool import pool
from trecexam.line.sources import sources_beside
from trecexam.tables.table import Table, to_tsv
from trecexam.tables.text import plural, shorten_list

if TYPE_CHECKING:
    from trecexam.features.fill.arithmetic.merging import Machine, MergedRow
    from trecexam.features.fill.arithmetic.scale_map import RuleName, ScaleMap
    from trecexam.files.stamps import Rejected
    from trecexam.line.loaded import LoadedTrack


#: What the second column of plain qrels holds.
NO_SUBTOPIC = frozenset(("0", "Q0"))
#: A rule fitted on fewer passages than this is called into question.
FEW = 50


@dataclass(frozen=True)
class Wanted:
    """What is to be filled, and how.

    Attributes:
        qrels: the official judgments, in place of the track's.
        depth: ranks of each run that are pooled; None for the track's.
        rule: how automatic labels become official ones; None: "fitted" where it can be, else "identity".
        cuts: automatic label -> official label, of "thresholds"; empty: min_rating -> min_relevant.
        as_unjudged: the new lines get a negative label.
    """

    qrels: Path | None = None
    depth: int | None = None
    rule: RuleName | None = None
    cuts: Mapping[int, int] = field(default_factory=dict)
    as_unjudged: bool = False


@dataclass(frozen=True)
class Found:
    """The holes of a track, before anything is graded.

    Attributes:
        wanted: what was asked for.
        official: the human judgments.
        holes: query_id -> doc_ids, sorted; only queries with holes.
        depth: first ranks of each run in which holes are filled.
        pool_depth: ranks in which grades are looked at, to fit a rule: at least the track's depth.
        pooled: passages in the first `depth` ranks, of which `judged` have an official judgment.
        missing: cells of the holes that have no grade yet.
        rule: what gives official labels for automatic ones, as far as there are grades now.
        notes: what people should know of it, a line each; of the rule, `rule_notes`.
        rejected: runs, or lines of them, that were not taken: their passages are not in the pool.
    """

    wanted: Wanted
    official: Official
    holes: Mapping[str, tuple[str, ...]]
    depth: int
    pool_depth: int
    pooled: int
    judged: int
    missing: int
    rule: ScaleMap
    notes: tuple[str, ...]
    rule_notes: tuple[str, ...]
    rejected: tuple[Rejected, ...]

    @property
    def n_holes(self) -> int:
        """How many passages are to be filled."""
        return sum(map(len, self.holes.values()))


@dataclass(frozen=True)
class Filled:
    """Merged judgments.

    Attributes:
        found: what was to be filled.
        rows: the lines and who said each; the official ones first, in their order.
        rule: what gave official labels for automatic ones.
        graded: cells that were graded for it now.
        filled: lines that are new.
        no_text: holes that remain since the passage has no gradable text.
        no_grade: holes that remain since the grader gave no rating.
        partly: filled passages that have no rating on some of the items, which count as not reached.
        notes: what people should know of it beside `found.notes`, a line each.
    """

    found: Found
    rows: tuple[MergedRow, ...]
    rule: ScaleMap
    graded: int
    filled: int
    no_text: int
    no_grade: int
    partly: int
    notes: tuple[str, ...]

    @property
    def complete(self) -> bool:
        """Whether no hole remains and every run was taken."""
        return not (self.no_text or self.no_grade or self.found.rejected)

    @property
    def qrels(self) -> bytes:
        """The merged qrels as a file."""
        return merged_qrels(self.rows)

    @cached_property
    def sources(self) -> Table:
        """Who said each line: a row for each, in the same order."""
        return sources_table(self.rows, str(self.rule))

    def write(self, output: Path, sources: Path) -> list[Path]:
        """Writes both files, or neither; what is there already with this content is left alone.

        Those whose names end in .gz are compressed.

        Raises:
            TrecexamError: they cannot be written; the old ones are as they were.
        """
        contents = {sources: to_tsv(self.sources).encode(), output: self.qrels}
        return files.replace_together(
            {
                path: gzip.compress(content, mtime=0) if path.suffix == ".gz" else content
                for path, content in contents.items()
            }
        )


def check_outputs(inputs: Collection[Path], found: Found, output: Path, sources: Path) -> None:
    """Refuses to write over the official judgments, under whatever name, or over another input.

    Args:
        inputs: the track's input files.

    Raises:
        TrecexamError: with the file in the way.
    """
    if _same(output, sources):
        raise TrecexamError("the merged qrels and their sources need a file each", path=output)
    for path in (output, sources):
        for taken in (found.wanted.qrels, *inputs):
            if taken is not None and _same(path, taken):
                raise TrecexamError(
                    "is an input, and human judgments are never overwritten; name another file", path=path
                )


def find_holes(loader: TrackLoader, wanted: Wanted) -> Found:
    """Loads the track to the depth wanted and finds the holes; grades nothing.

    Raises:
        TrecexamError: there are no official judgments; or they have nothing in common with the pool, and no
            rule was asked for that would go without; or they are merged ones; or as `choose_rule`.
        ConversionError: the judgments cannot be read.
    """
    from trecexam.features.fill.arithmetic.merging import holes_of

    depth = wanted.depth or loader.config.track.depth
    _refuse_merged(wanted.qrels or loader.folder.qrels())
    judgments = None if wanted.qrels is None else read_official(wanted.qrels)
    pool_depth = max(depth, loader.config.track.depth)
    track = loader.load(depth=pool_depth)
    judgments = judgments or official_judgments(track)
    queries = track.bank.query_ids
    pooled = pool(track.runs.values(), queries, depth)
    # Negative lines stay as they are: they are somebody's, though trec_eval takes them for no judgment.
    notes = [f"{line}; these lines stay as they are" for line in judgments.cautions()]
    strangers = judgments.meets(pooled)
    if strangers is not None:
        if wanted.rule is None:
            raise TrecexamError(
                f"{strangers} To fill the whole pool all the same, choose --map identity or --map thresholds"
            )
        notes.append(strangers)
    holes = holes_of(pooled, judgments.labels)
    unjudged = [query_id for query_id in holes if query_id not in judgments.labels]
    if unjudged:
        count = sum(len(holes[query_id]) for query_id in unjudged)
        # A query with negative labels alone stops trec_eval, and would count in its means.
        left = "are left out: negative labels alone stop trec_eval" if wanted.as_unjudged else "are all holes"
        notes.append(
            f"{_queries(unjudged)} of the bank have no official judgment; their {count:,} passages {left}"
        )
        if wanted.as_unjudged:
            holes = {query_id: docs for query_id, docs in holes.items() if query_id in judgments.labels}
    foreign = [query_id for query_id in judgments.labels if query_id not in track.bank.items]
    if foreign:
        notes.append(
            f"{_queries(foreign)} of {judgments.source} not in the bank; their lines stay as they are"
        )
    if _has_subtopics(judgments) and holes:
        notes.append(
            f"{judgments.source} judges subtopics (column 2); new lines have 0 there and are of no subtopic"
        )
    if not track.runs:
        notes.append(f"no runs: drop some into {track.folder.runs}")
    in_pool = sum(map(len, pooled.values()))
    judged = in_pool - sum(map(len, holes_of(pooled, judgments.labels).values()))
    rule, rule_notes = choose_rule(track, judgments, wanted)
    return Found(
        wanted,
        judgments,
        holes,
        depth,
        pool_depth,
        in_pool,
        judged,
        count_missing(track, holes),
        rule,
        tuple(notes),
        rule_notes,
        _rejected(track, wanted),
    )


def choose_rule(track: LoadedTrack, judgments: Official, wanted: Wanted) -> tuple[ScaleMap, tuple[str, ...]]:
    """The rule for labels, from the grades that there are, and what is to be said of it.

    It is fitted on the pooled passages with both an official judgment and a grade.

    Raises:
        TrecexamError: "fitted" was asked for, and cannot be; or the cuts are no rule.
    """
    from trecexam.features.fill.arithmetic import scale_map
    from trecexam.features.fill.arithmetic.merging import with_both

    named = stated(track.config.scores, wanted.rule, wanted.cuts)
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
        if wanted.rule == "fitted":
            raise TrecexamError(f"{judgments.source}: {why} --map identity or --map thresholds") from None
        return scale_map.IDENTITY, (f"{why} --map thresholds; until then labels stay as they are",)
    if rule.n_both < FEW:
        return rule, (f"the rule is fitted on {rule.n_both:,} passages only; see --map",)
    return rule, ()


def merged(track: LoadedTrack, found: Found, graded: int = 0) -> Filled:
    """Merges the labels of the holes, as far as they have grades, into the official judgments.

    Raises:
        TrecexamError: as `choose_rule`.
    """
    from trecexam.features.fill.arithmetic.confidence import label_confidences
    from trecexam.features.fill.arithmetic.merging import merge

    scores = track.config.scores
    # Grading a hole may have graded a judged passage of the same text: the rule follows what is there now,
    # so that it is the same when asked for again.
    rule, notes = choose_rule(track, found.official, found.wanted)
    automatic = _automatic(track, found.holes)
    confidences = {}
    partly = no_text = no_grade = 0
    for q in track.ratings(list(found.holes)):
        holes, labels = set(found.holes[q.query_id]), automatic[q.query_id]
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
        confidences[q.query_id] = label_confidences(
            q, track.grades.distributions(sheet), scores.label, scores.min_rating, scores.min_answers
        )
    rows = merge(
        found.official.rows,
        found.holes,
        automatic,
        rule,
        dict(_machines(track, found.holes)),
        overridden=_overridden(track, automatic),
        confidences=confidences,
        as_unjudged=found.wanted.as_unjudged,
    )
    new = rows[len(found.official.rows) :]
    best = max((row.label for row in new), default=0)
    highest = max(row.relevance for row in found.official.rows)
    if rule.rule == "identity" and best > highest and not found.wanted.as_unjudged:
        notes = (
            *notes,
            f"there are labels up to {best}, and the highest official one is {highest}; see --map",
        )
    return Filled(found, rows, rule, graded, len(new), no_text, no_grade, partly, notes)


def _automatic(
    track: LoadedTrack, queries: Mapping[str, object] | None = None, *, human: bool = True
) -> dict[str, dict[str, int]]:
    from trecexam.scores.labels import labels

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
    said: dict[tuple[str, str], dict[str, list[str]]] = {}
    for (query_id, doc_id, item_id), row in sorted(track.overrides.said.items()):
        if item_id and machine.get(query_id, {}).get(doc_id) == automatic.get(query_id, {}).get(doc_id):
            continue
        said.setdefault((query_id, doc_id), {}).setdefault(row.who, []).append(row.why)
    return {
        place: ("; ".join(whys), "; ".join(why for given in whys.values() for why in given))
        for place, whys in said.items()
    }


def _machines(track: LoadedTrack, queries: Mapping[str, object]) -> Iterator[tuple[str, Machine]]:
    """What grades each of the queries: their items may be of kinds with different prompts."""
    from trecexam.features.fill.arithmetic.merging import Machine

    if not queries:
        return
    identity = track.grader.identity
    # Of a recording the model is known only once it is read, so it is not where there is nothing to say.
    model, prompt = track.traits.model_and_prompt() or (identity.get("model"), None)
    for query_id in queries:
        prompts = (prompt,) if prompt else track.grades.prompts(track.sheets[query_id].items)
        yield query_id, Machine(str(identity["grader"]), str(model or ""), "; ".join(prompts))


def _rejected(track: LoadedTrack, wanted: Wanted) -> tuple[Rejected, ...]:
    """The inputs not taken, but for official ones that were not asked for."""
    folder = track.folder
    aside = {folder.official_leaderboard(), folder.qrels() if wanted.qrels is not None else None}
    names = {folder.shown(path) for path in aside if path is not None}
    return tuple(row for row in track.rejected if row.file not in names)


def _refuse_merged(qrels: Path | None) -> None:
    """Refuses what `fill` wrote: the lines of a machine would pass for a person's, and the rule be fitted on
    them.

    Raises:
        TrecexamError: with what to name instead.
    """
    if qrels is not None and sources_beside(qrels).exists():
        raise TrecexamError(
            f"`trecexam fill` wrote it, as {sources_beside(qrels).name} beside it says, so not all lines are "
            "people's; name the official judgments that it was made from",
            path=qrels,
        )


def _has_subtopics(judgments: Official) -> bool:
    return any(row.iteration not in NO_SUBTOPIC for row in judgments.rows)


def _queries(query_ids: list[str]) -> str:
    return f"{plural(len(query_ids), 'query')} ({shorten_list(query_ids, 3, dots=True)})"


def _same(one: Path, other: Path) -> bool:
    """Whether both names are, or would be, the same file."""
    try:
        return one.samefile(other)
    except OSError:
        return one.resolve() == other.resolve()
