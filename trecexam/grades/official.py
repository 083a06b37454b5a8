"""The judgments of a track, official ones and people's, and whether they meet the pool at all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import converters
from converters.records import NOT_JUDGED, Qrel, judgment
from converters.run import Run
from trecexam.errors import TrecexamError
from trecexam.files.cache import memoized
from trecexam.files.stamps import located
from trecexam.folder import TrackFolder
from trecexam.grades.graded_track import GradedTrack
from trecexam.grades.overrides import NOT_POOLED, REFUSED
from trecexam.inputs.sources import provenance_notes, written_by
from trecexam.inputs.typed_text import differing_in_form
from trecexam.results.notes import CHANGES, METHOD, Note
from trecexam.results.text import plural, shorten_list


class PeoplesJudgment(NamedTuple):
    """A judgment that counts of people of the track, on the scale of the official judgments.

    Attributes:
        who: the names of those who say it.
        why: their reasons.
    """

    query_id: str
    doc_id: str
    label: int
    who: tuple[str, ...]
    why: tuple[str, ...]


@dataclass(frozen=True)
class Official:
    """Official judgments, as they are in their file, and people's beside them.

    Attributes:
        source: the file, as people see it; or the dataset.
        rows: the judgments of the file, in the file's order.
        written_by: the command that wrote them, see `written_by`; None: people did.
        provenance: whose labels they are, in lines; () where no file beside them says so.
        people: what people of the track judged that the file does not judge, see `track_judgments`.
        people_notes: how many judgments are whose, and which do not count, one per line.
    """

    source: str
    rows: tuple[Qrel, ...]
    written_by: str | None = None
    provenance: tuple[str, ...] = ()
    people: tuple[PeoplesJudgment, ...] = ()
    people_notes: tuple[str, ...] = ()

    @property
    def qrels(self) -> tuple[Qrel, ...]:
        """The lines of the file, then the judgments of people."""
        return (*self.rows, *(Qrel(*row[:3]) for row in self.people))

    @cached_property
    def judged(self) -> Mapping[str, Mapping[str, int]]:
        """query_id -> doc_id -> judgment, see `converters.records.judgment`.

        People's are among them. Queries without any are left out. Of a passage's judgments for several
        subtopics the best one counts.
        """
        judged: dict[str, dict[str, int]] = {}
        for row in self.rows:
            given = judgment(row.relevance)
            if given is not None:
                of_query = judged.setdefault(row.query_id, {})
                of_query[row.doc_id] = max(given, of_query.get(row.doc_id, given))
        for by_people in self.people:
            judged.setdefault(by_people.query_id, {})[by_people.doc_id] = by_people.label
        return judged

    def warnings(self) -> tuple[str, ...]:
        """Name labels of machines and negative labels, one kind per line."""
        lines = [Note(line, CHANGES) for line in self.provenance]
        if self.written_by and not lines:
            wrote = f"{self.source}: `trecexam {self.written_by}` wrote it"
            lines.append(Note(f"{wrote}, so labels of a machine are among the judgments", CHANGES))
        not_judged = sum(row.relevance == NOT_JUDGED for row in self.rows)
        junk = sum(row.relevance < NOT_JUDGED for row in self.rows)
        for n, meaning in (
            (not_judged, f"the label {NOT_JUDGED}: pooled, not judged"),
            (junk, f"a label below {NOT_JUDGED}: judged, not relevant"),
        ):
            if n:
                lines.append(Note(f"{self.source}: {plural(n, 'line')} with {meaning}", METHOD))
        return tuple(lines)


def no_overlap(
    track: GradedTrack, judgments: Official, pool: Mapping[str, Collection[str]] | None = None
) -> str | None:
    """Say in a line why these judgments and a pool of the track have nothing in common; None where they have.

    Args:
        pool: query_id -> doc_ids; None for what the runs have in their first ranks.
    """
    source, labels = judgments.source, judgments.judged
    pool = track.ranked_passages() if pool is None else pool
    if judgments.rows and not labels:
        return f"{source}: all its labels are {NOT_JUDGED}: pooled, not judged"
    common = [query_id for query_id in pool if query_id in labels]
    if not common:
        why = differing_in_form(labels, pool) or "; are query ids written in another form?"
        return (
            f"{source}: none of its {plural(len(labels), 'query')} ({_some(labels)}) is among the track's "
            f"({_some(pool)}){why}"
        )
    pooled = {doc_id for query_id in common for doc_id in pool[query_id]}
    if not pooled or any(not labels[query_id].keys().isdisjoint(pool[query_id]) for query_id in common):
        return None
    judged = sorted(doc_id for query_id in common for doc_id in labels[query_id])
    why = differing_in_form(judged, pooled) or "; are document ids written in another form?"
    if not pooled.isdisjoint(judged):
        why = " of the query that it judges it for; are query ids those of another file?"
    elif track.config.track.unit == "response":
        why = ": these are whole responses"
    return (
        f"{source}: no passage that it judges ({_some(judged)}) is in the pool ({_some(sorted(pooled))}){why}"
    )


def why_unjudged(track: GradedTrack) -> str | None:
    """Say why no passage that a run has, at any rank, is officially judged; None where one is."""
    judgments = official_judgments(track)
    for query_id, labels in judgments.judged.items():
        if any(not labels.keys().isdisjoint(run.ranking(query_id)) for run in track.runs.values()):
            return None
    return no_overlap(track, judgments) or "no passage that a run has is judged"


def never_judged(
    runs: Mapping[str, Run], judged: Mapping[str, Collection[str]], query_ids: Collection[str]
) -> list[str]:
    """Return the runs that rank no judged passage for any of these queries."""
    documents = {query_id: set(judged.get(query_id, ())) for query_id in query_ids}
    return [
        name
        for name, run in runs.items()
        if all(documents[query_id].isdisjoint(run.ranking(query_id)) for query_id in query_ids)
    ]


def never_judged_note(without: Sequence[str], n_runs: int, values: str = "official values") -> str:
    """Name runs that have 0 whatever they say: responses' own passages are in no qrels.

    Args:
        without: from `never_judged`, one or more.
        n_runs: all runs that are compared.
        values: those that are 0.
    """
    its, it = ("its", "it") if len(without) == 1 else ("their", "them")
    leave_out = f"; leave {it} out to compare the others" if len(without) < n_runs else ""
    line = (
        f"{shorten_list(without, 3, quote='')}: none of {its} passages is judged, so {its} {values} are "
        f"0{leave_out}"
    )
    return Note(line, CHANGES)


#: Ranks in which passages without a judgment are counted; the share of them that people are told of; and how
#: far runs' shares may lie apart until both ends are named.
_FIRST, _TELL, _APART = 10, 0.1, 0.1


def unjudged_note(runs: Mapping[str, Run], judged: Mapping[str, Collection[str]]) -> tuple[str, ...]:
    """Return a line on passages in the runs' first ranks that nobody judged, where they are many; else none.

    Args:
        judged: query_id -> judged doc_ids; only these queries count.
    """
    shares: dict[str, float] = {}
    n_unjudged = n_ranks = 0
    for name, run in runs.items():
        rankings = [(judged[query_id], run.ranking(query_id, _FIRST)) for query_id in judged]
        of_run = sum(map(len, (ranking for _, ranking in rankings)))
        lacking = sum(doc_id not in labels for labels, ranking in rankings for doc_id in ranking)
        if of_run:
            shares[name] = lacking / of_run
        n_unjudged, n_ranks = n_unjudged + lacking, n_ranks + of_run
    if not shares or max(shares.values()) < _TELL:
        return ()
    least, most = min(shares, key=shares.__getitem__), max(shares, key=shares.__getitem__)
    ends = f", from {shares[least]:.0%} ({least}) to {shares[most]:.0%} ({most})"
    ends = ends if shares[most] - shares[least] > _APART else ""
    line = (
        f"{n_unjudged / n_ranks:.0%} of the passages in the first {_FIRST} ranks are not judged{ends}, and "
        "most measures take them as not relevant; `trecexam holes` counts those of each run"
    )
    return (Note(line, CHANGES),)


def read_official(path: Path) -> Official:
    """Read the judgments of a file that is not the track's."""
    rows = tuple(converters.read(path, "qrels"))
    return Official(str(path), rows, written_by(path), provenance_notes(path))


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
    rows, source = track.official, str(folder.config.track.dataset) if file is None else folder.shown(file)
    command = None if file is None else written_by(file)
    whose = () if file is None else provenance_notes(file, source)
    return Official(source, rows, command, whose)


def track_judgments(track: GradedTrack, official: Official | None = None) -> Official:
    """Return the official judgments and, beside them, those of the track's people that count.

    People's judgments of whole passages count as `rule` in [judging] says. Where the official file judges the
    passage, too, the file's label stays, and a note names the difference.

    Args:
        official: in place of the track's official judgments.
    """
    return _own_judgments(track) if official is None else _with_people(track, official)


@memoized
def _own_judgments(track: GradedTrack) -> Official:
    return _with_people(track, official_judgments(track))


def _with_people(track: GradedTrack, official: Official) -> Official:
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


def _some(ids: Collection[str]) -> str:
    return shorten_list(ids, 2, dots=True) or "none"
