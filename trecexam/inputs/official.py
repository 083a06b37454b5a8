"""Official judgments and the official leaderboard of a track, as they were read."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import converters
from converters.leaderboard import read_means
from converters.measure_values import ranks_of
from converters.records import NOT_JUDGED, Qrel, judgment
from converters.run import Run
from trecexam.inputs.sources import provenance_notes, written_by
from trecexam.inputs.typed_text import differing_in_form
from trecexam.results.text import CHANGES, METHOD, Note, plural, shorten_list

#: What it is called beside official measures; with values, the measure follows it.
LEADERBOARD = "official_leaderboard"
#: What to do where there is none.
HOW_TO_ADD = (
    'put official_leaderboard.json here, {"bm25": 2, "dense": 1} with rank 1 as the best, or '
    "official_leaderboard.txt with lines `run<TAB>rank`"
)


class OfficialLeaderboard(NamedTuple):
    """Ranks of runs (1 is best), and means by measure and run where the file has values."""

    ranks: Mapping[str, float]
    means: Mapping[str, Mapping[str, float]]

    @property
    def sides(self) -> dict[str, Mapping[str, float]]:
        """`official_leaderboard:MEASURE` -> run -> mean; or `official_leaderboard` -> run -> negated rank."""
        if not self.means:
            return {LEADERBOARD: {run: -rank for run, rank in self.ranks.items()}}
        return {f"{LEADERBOARD}:{measure}": scores for measure, scores in self.means.items()}


def of_leaderboard(name: str) -> bool:
    """Return True for an official measure of the official leaderboard."""
    return name.partition(":")[0] == LEADERBOARD


def read_leaderboard_file(path: Path) -> OfficialLeaderboard:
    """Read an official leaderboard."""
    means = read_means(path)
    entries = ranks_of(next(iter(means.values()))) if means else converters.read(path, "leaderboard")
    return OfficialLeaderboard({entry.run: entry.rank for entry in entries}, means)


def judged_labels(rows: Iterable[Qrel]) -> dict[str, dict[str, int]]:
    """Return query_id -> doc_id -> judgment; of a passage's judgments for several subtopics the best."""
    judged: dict[str, dict[str, int]] = {}
    for row in rows:
        given = judgment(row.relevance)
        if given is not None:
            of_query = judged.setdefault(row.query_id, {})
            of_query[row.doc_id] = max(given, of_query.get(row.doc_id, given))
    return judged


class PeoplesJudgment(NamedTuple):
    """A judgment of the track's people that counts, on the official scale; `who` says so, and `why`."""

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
        """query_id -> doc_id -> judgment, people's among them; without queries that have none."""
        judged = judged_labels(self.rows)
        for row in self.people:
            judged.setdefault(row.query_id, {})[row.doc_id] = row.label
        return judged

    def warnings(self) -> tuple[str, ...]:
        """Name labels of machines and negative labels, one kind per line."""
        lines = [Note(line, CHANGES) for line in self.provenance]
        if self.written_by and not lines:
            wrote = f"{self.source}: `trecexam {self.written_by}` wrote it"
            lines.append(Note(f"{wrote}, so labels of a machine are among the judgments", CHANGES))
        labels = [row.relevance for row in self.rows]
        for n, meaning in (
            (labels.count(NOT_JUDGED), f"the label {NOT_JUDGED}: pooled, not judged"),
            (sum(n < NOT_JUDGED for n in labels), f"a label below {NOT_JUDGED}: judged, not relevant"),
        ):
            if n:
                lines.append(Note(f"{self.source}: {plural(n, 'line')} with {meaning}", METHOD))
        return tuple(lines)


def read_official(path: Path) -> Official:
    """Read the judgments of a file that is not the track's."""
    return official_of(path, tuple(converters.read(path, "qrels")), str(path))


def official_of(path: Path, rows: tuple[Qrel, ...], shown: str) -> Official:
    """Return the judgments of a file, which people see as `shown`."""
    return Official(shown, rows, written_by(path), provenance_notes(path, shown))


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
    """Name runs from `never_judged`, of `n_runs` compared, whose `values` are 0 whatever they say."""
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
    """Return a line on passages in first ranks that `judged` (query_id -> doc_ids) lacks, if many."""
    shares: dict[str, float] = {}
    n_unjudged = n_ranks = 0
    for name, run in runs.items():
        of_run = [doc in judged[query_id] for query_id in judged for doc in run.ranking(query_id, _FIRST)]
        if of_run:
            shares[name] = of_run.count(False) / len(of_run)
        n_unjudged, n_ranks = n_unjudged + of_run.count(False), n_ranks + len(of_run)
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


def no_overlap(judgments: Official, pool: Mapping[str, Collection[str]], unit: str) -> str | None:
    """Say why judgments and a pool have nothing in common; None where they have.

    Args:
        unit: of the track.
    """
    source, labels = judgments.source, judgments.judged
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
    elif unit == "response":
        why = ": these are whole responses"
    return (
        f"{source}: no passage that it judges ({_some(judged)}) is in the pool ({_some(sorted(pooled))}){why}"
    )


def _some(ids: Collection[str]) -> str:
    return shorten_list(ids, 2) or "none"
