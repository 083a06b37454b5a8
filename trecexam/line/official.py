"""The official judgments that a command compares with, and whether they meet the pool at all."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import converters
from converters.records import Qrel
from trecexam.errors import TrecexamError
from trecexam.files.stamps import located
from trecexam.line.sources import provenance_notes, written_by
from trecexam.tables.text import plural, shorten_list

if TYPE_CHECKING:
    from converters.run import Run
    from trecexam.line.assessment import Assessment
    from trecexam.track import TrackFolder


@dataclass(frozen=True)
class Official:
    """Official judgments, as they are in their file.

    Attributes:
        source: the file, as people see it; or the dataset.
        rows: the judgments, in the file's order.
        written_by: the command that wrote them, see `written_by`; None: people did.
        provenance: whose labels they are, in lines; () where no file beside them says so.
    """

    source: str
    rows: tuple[Qrel, ...]
    written_by: str | None = None
    provenance: tuple[str, ...] = ()

    @cached_property
    def labels(self) -> Mapping[str, Mapping[str, int]]:
        """query_id -> doc_id -> label; the best one where a passage is judged for several subtopics."""
        labels: dict[str, dict[str, int]] = {}
        for row in self.rows:
            judged = labels.setdefault(row.query_id, {})
            judged[row.doc_id] = max(row.relevance, judged.get(row.doc_id, row.relevance))
        return labels

    @cached_property
    def judged(self) -> Mapping[str, Mapping[str, int]]:
        """`labels` without negative ones, which trec_eval reads as: in the pool, not judged."""
        return {
            query_id: {doc_id: label for doc_id, label in labels.items() if label >= 0}
            for query_id, labels in self.labels.items()
        }

    def warnings(self) -> tuple[str, ...]:
        """What makes these judgments other than people's judgments of all that they name, one per line."""
        lines = [*self.provenance]
        if self.written_by and not lines:
            lines.append(
                f"{self.source}: `trecexam {self.written_by}` wrote it, so labels of a machine are among the "
                "judgments"
            )
        negative = sum(label < 0 for labels in self.labels.values() for label in labels.values())
        if negative:
            have = "has" if negative == 1 else "have"
            lines.append(
                f"{self.source}: {plural(negative, 'passage')} {have} a negative label, which trec_eval "
                "reads as not judged"
            )
        return tuple(lines)

    def explain_no_overlap(
        self, pool: Mapping[str, Collection[str]], *, of_responses: bool = False
    ) -> str | None:
        """Says in a line why these judgments and this pool have nothing in common; None where they have.

        Args:
            pool: query_id -> pooled doc_ids.
            of_responses: whether whole responses are pooled, which no judgment of passages names.
        """
        if self.labels and not any(self.judged.values()):
            return f"{self.source}: all its labels are negative, which trec_eval reads as not judged"
        common = [query_id for query_id in pool if query_id in self.labels]
        if not common:
            return (
                f"{self.source}: none of its {plural(len(self.labels), 'query')} ({_some(self.labels)}) is "
                f"among the track's ({_some(pool)}); are query ids written in another form?"
            )
        if any(not self.labels[query_id].keys().isdisjoint(pool[query_id]) for query_id in common):
            return None
        pooled = {doc_id for query_id in common for doc_id in pool[query_id]}
        if not pooled:
            return None
        judged = sorted(doc_id for query_id in common for doc_id in self.labels[query_id])
        if not pooled.isdisjoint(judged):
            return (
                f"{self.source}: no passage that it judges for a query is in the pool of that query, only in "
                "that of another one; are query ids those of another file?"
            )
        why = ": these are whole responses" if of_responses else "; are document ids written in another form?"
        return (
            f"{self.source}: no passage that it judges ({_some(judged)}) is in the pool "
            f"({_some(sorted(pooled))}){why}"
        )


def no_overlap(
    track: Assessment, judgments: Official, pool: Mapping[str, Collection[str]] | None = None
) -> str | None:
    """Why these judgments and a pool of the track have nothing in common, in a line; None where they have.

    Args:
        pool: query_id -> doc_ids; None for what the runs have in their first ranks.
    """
    of_responses = track.config.track.unit == "response"
    pool = track.ranked_passages() if pool is None else pool
    return judgments.explain_no_overlap(pool, of_responses=of_responses)


def why_unjudged(track: Assessment) -> str | None:
    """Why no passage that a run has, at any rank, is officially judged, in a line; None where one is."""
    judgments = official_judgments(track)
    for query_id, labels in judgments.judged.items():
        if any(not labels.keys().isdisjoint(run.ranking(query_id)) for run in track.runs.values()):
            return None
    return no_overlap(track, judgments) or "no passage that a run has is judged"


def never_judged(
    runs: Mapping[str, Run], judged: Mapping[str, Collection[str]], query_ids: Collection[str]
) -> list[str]:
    """The runs that rank no judged passage for any of these queries.

    Args:
        judged: query_id -> judged doc_ids.
    """
    documents = {query_id: set(judged.get(query_id, ())) for query_id in query_ids}
    return [
        name
        for name, run in runs.items()
        if all(documents[query_id].isdisjoint(run.ranking(query_id)) for query_id in query_ids)
    ]


def never_judged_note(without: Sequence[str], n_runs: int, values: str = "official values") -> str:
    """A line on runs that have 0 whatever they say: responses' own passages are in no qrels.

    Args:
        without: from `never_judged`, one or more.
        n_runs: all runs that are compared.
        values: those that are 0.
    """
    its, it = ("its", "it") if len(without) == 1 else ("their", "them")
    leave_out = f"; leave {it} out to compare the others" if len(without) < n_runs else ""
    return (
        f"{shorten_list(without, 3, quote='')}: none of {its} passages is judged, so {its} {values} are "
        f"0{leave_out}"
    )


#: Ranks in which passages without a judgment are counted; the share of them that people are told of; and how
#: far runs' shares may lie apart until both ends are named.
_FIRST, _TELL, _APART = 10, 0.1, 0.1


def unjudged_note(
    runs: Mapping[str, Run], judged: Mapping[str, Collection[str]], root: Path | None = None
) -> tuple[str, ...]:
    """A line on passages in the runs' first ranks that nobody judged, where they are many; else none.

    Args:
        judged: query_id -> judged doc_ids; only these queries count.
        root: the track's folder, where there is one.
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
    counts = "counts those of a track's runs" if root is None else "counts those of each run"
    ends = ends if shares[most] - shares[least] > _APART else ""
    return (
        f"{n_unjudged / n_ranks:.0%} of the passages in the first {_FIRST} ranks are not judged{ends}, and "
        "most measures take them as not relevant; "
        f"`trecexam holes{'' if root is None else f' {root}'}` {counts}",
    )


def read_official(path: Path) -> Official:
    """The official judgments of a file that is not the track's.

    Raises:
        ConversionError: it cannot be read; with its line.
    """
    rows = tuple(converters.read(path, "qrels"))
    return Official(str(path), rows, written_by(path), provenance_notes(path))


def official_judgments(track: Assessment) -> Official:
    """The track's official judgments.

    Raises:
        TrecexamError: the track has none; with what to do.
    """
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
    # Kept, with the labels by query made from its rows.
    return track.derived("official judgments", ("official",), lambda: Official(source, rows, command, whose))


def shown_error(folder: TrackFolder, error: TrecexamError) -> str:
    """What is wrong with the official judgments, for what is kept: with no place of this machine in it."""
    if error.path is None or Path(error.path) == folder.root:
        return error.reason
    return located(folder.shown(Path(error.path)), error.line, error.reason)


def _some(ids: Collection[str]) -> str:
    return shorten_list(ids, 2, dots=True) or "none"
